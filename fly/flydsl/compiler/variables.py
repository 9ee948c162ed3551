"""FlyDSL's environment variables, as this project's options and variables.

Those of the compiler become keywords of `fly.jit`; the others stand for a variable of this project
while a function is compiled. Where both are set, this project's has precedence.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fly_common.command_line.options import KEYWORDS
from fly_common.errors import UsageError

from fly.flydsl.utils import env

# Names of FlyDSL's pull request 613 → keyword of `fly.jit`.
PASSES = {
    "llvm_pass_pipeline": "opt_pipeline",
    "llvm_pass_plugins": "opt_plugins",
    "llvm_codegen_passes": "insert",
    "llvm_codegen_insert_after": "insert",
    "llvm_codegen_plugins": "llc_options",
}
# Variable → keyword of `fly.jit`.
OPTIONS = {
    "FLYDSL_COMPILE_OPT_LEVEL": "opt_level",
    **{f"FLYDSL_COMPILE_{name.upper()}": keyword for name, keyword in PASSES.items()},
}
# Variable → variable of this project.
VARIABLES = {
    "FLYDSL_COMPILE_LLVM_DIR": "FLY_LLVM_DIR",
    "FLYDSL_RUNTIME_CACHE_DIR": "FLY_CACHE_DIR",
    "FLYDSL_RUNTIME_ENABLE_CACHE": "FLY_CACHE",
}
_lock = threading.RLock()


def given() -> tuple[tuple[str, str], ...]:
    """The variables that select options, as they are set now: a function is compiled for each."""
    return tuple((name, os.environ[name]) for name in OPTIONS if os.environ.get(name))


def options(set_now: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The keywords of `fly.jit` for these variables. UsageError for a value that is none."""
    made: dict[str, Any] = {}
    for name, text in set_now:
        keyword = OPTIONS[name]
        if os.environ.get(KEYWORDS[keyword].variable):
            continue
        if keyword == "opt_level":
            if text not in ("0", "1", "2", "3"):
                raise UsageError(f"{name}={text}: must be 0, 1, 2 or 3")
            made[keyword] = int(text)
        elif keyword == "opt_pipeline":
            made[keyword] = text
        else:
            kind = name.removeprefix("FLYDSL_COMPILE_").lower()
            made.setdefault(keyword, []).extend(CONVERSIONS[kind](_listed(text)))
    return made


def _listed(text: str) -> list[str]:
    return [part for part in text.replace(os.pathsep, ",").split(",") if part]


def at_the_end(passes: list[str]) -> list[str]:
    """`insert=` of passes that run on the final machine code, in their order. One that names its
    place, as `insert=` does, keeps it."""
    return [one if "=" in one else f"pre-emit={one}" for one in passes]


def after(places: list[str]) -> list[str]:
    """`insert=` of `ANCHOR=PASS`: each pass behind a machine pass."""
    for one in places:
        if "=" not in one:
            raise UsageError(f"llvm_codegen_insert_after: {one} is not ANCHOR=PASS")
    return [f"after:{one}" for one in places]


def loaded(plugins: list[str]) -> list[str]:
    """The options of code generation that load plugins."""
    return [f"-load={os.path.abspath(one)}" for one in plugins]


# What each name of pull request 613 that is a list becomes in the list of this project's keyword.
CONVERSIONS = {
    "llvm_pass_plugins": list,
    "llvm_codegen_passes": at_the_end,
    "llvm_codegen_insert_after": after,
    "llvm_codegen_plugins": loaded,
}


def _stands_for(name: str, text: str) -> str | None:
    if name == "FLYDSL_RUNTIME_ENABLE_CACHE":
        return None if env.runtime.enable_cache else "off"
    return text


@contextmanager
def applied() -> Iterator[None]:
    """This project's variables have the values of FlyDSL's."""
    wanted = {}
    for name, ours in VARIABLES.items():
        text = os.environ.get(name)
        if text and not os.environ.get(ours):
            value = _stands_for(name, text)
            if value is not None:
                wanted[ours] = value
    if not wanted:
        yield
        return
    with _lock:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
