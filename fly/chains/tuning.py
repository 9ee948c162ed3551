"""What `@fly.jit` does differently in LLVM for one function: pipelines, plugins, options, passes.

Each can be said in the decorator or by an environment variable, for all functions at once; the
decorator wins. A list in a variable is separated as `PATH` is where it holds files, by line breaks
or semicolons where it holds insertions, and as a shell separates words where it holds options.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted

LEVELS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Tuning:
    """`opt_level` is opt's -O, None leaves opt out. `opt_pipeline` is a pipeline in opt's own
    words ("default<O3>,my-pass") and takes the level's place; `opt_plugins` are libraries of
    passes that it loads. `opt_options` and `llc_options` are LLVM's own, for opt and for code
    generation. `insert`, `replace` and `disable_passes` change the machine pipeline, in the words of
    `fly-llc --insert`, `--replace` and `--disable-pass`."""

    opt_level: int | None = 3
    opt_pipeline: str | None = None
    opt_plugins: tuple[str, ...] = ()
    opt_options: tuple[str, ...] = ()
    llc_options: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    disable_passes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.opt_level not in (None, *LEVELS) or isinstance(self.opt_level, bool):
            raise UsageError(f"opt_level={quoted(self.opt_level)}: must be 0, 1, 2, 3 or None")
        for name in ("opt_options", "llc_options"):
            for option in getattr(self, name):
                if not option.startswith("-"):
                    raise UsageError(
                        f"{name}: {quoted(option)} is no option: they begin with a dash"
                    )

    def opt_words(self) -> list[str] | None:
        """opt's arguments; None where it has nothing to do."""
        if self.opt_pipeline is not None:
            main = [f"-passes={self.opt_pipeline}"]
        elif self.opt_level is not None:
            main = [f"-O{self.opt_level}"]
        elif self.opt_plugins or self.opt_options:
            raise UsageError(
                "opt_level=None leaves opt out, and opt_plugins or opt_options want it"
            )
        else:
            return None
        plugins = [f"-load-pass-plugin={os.path.abspath(path)}" for path in self.opt_plugins]
        return ["-S", *plugins, *main, *self.opt_options]

    def llc_fields(self) -> tuple[tuple[str, Any], ...]:
        """Fields of fly-llc's options that differ from their defaults."""
        chosen = {
            "flags": self.llc_options,
            "insert": self.insert,
            "replace": self.replace,
            "disable": self.disable_passes,
        }
        return tuple((name, value) for name, value in chosen.items() if value)


def _level(text: str) -> int | None:
    if text.lower() == "none":
        return None
    if text not in map(str, LEVELS):
        raise UsageError(f"FLY_OPT_LEVEL={text}: must be 0, 1, 2, 3 or none")
    return int(text)


def _paths(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(os.pathsep) if part)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(r"[;\n]", text) if part.strip())


def _words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


# option of the decorator → environment variable, how it is read
VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "opt_level": ("FLY_OPT_LEVEL", _level),
    "opt_pipeline": ("FLY_OPT_PIPELINE", str),
    "opt_plugins": ("FLY_OPT_PLUGINS", _paths),
    "opt_options": ("FLY_OPT_OPTIONS", _words),
    "llc_options": ("FLY_LLC_OPTIONS", _words),
    "insert": ("FLY_LLC_INSERT", _lines),
    "replace": ("FLY_LLC_REPLACE", _lines),
    "disable_passes": ("FLY_LLC_DISABLE_PASSES", _lines),
}
assert list(VARIABLES) == [field.name for field in fields(Tuning)]


class Unsaid:
    """What an option of the decorator is where nobody gave it: None means something."""

    def __repr__(self) -> str:
        return "(unsaid)"


UNSAID = Unsaid()


def read(said: dict[str, Any]) -> Tuning:
    """The tuning of a function whose decorator said `said`, in the environment of now."""
    values: dict[str, Any] = {}
    for name, (variable, parse) in VARIABLES.items():
        if said.get(name, UNSAID) is not UNSAID:
            values[name] = said[name]
        elif text := os.environ.get(variable):
            values[name] = parse(text)
    return Tuning(**values)


def check(said: dict[str, Any]) -> dict[str, Any]:
    """What the decorator said, lists as tuples. UsageError for what is no list of words."""
    made = {}
    for name, value in said.items():
        if value is UNSAID:
            continue
        if name in ("opt_level", "opt_pipeline"):
            made[name] = value
            continue
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise UsageError(f"{name}={quoted(value)}: must be a list of words")
        made[name] = tuple(os.fspath(word) for word in value)
    Tuning(**made)
    return made
