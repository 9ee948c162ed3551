"""The LLVM options of one `@fly.jit` function: pipelines, plugins, options, passes.

Each can be set by the decorator, or for all functions by an environment variable. The decorator
takes precedence. In a variable, files are separated as in `PATH`, insertions by line breaks or
semicolons, and options as shell words.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from fly_common.command_line.options import KEYWORDS
from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import fields_of, record

LEVELS = (0, 1, 2, 3)


class Keywords(TypedDict, total=False):
    """Keyword arguments of `@fly.jit` that `Tuning` holds (`fly_common.command_line.options`)."""

    asserts: bool
    opt_level: int | None
    opt_pipeline: str | None
    opt_plugins: Sequence[str | os.PathLike[str]]
    opt_options: Sequence[str]
    llc_options: Sequence[str]
    insert: Sequence[str]
    replace: Sequence[str]
    disable_passes: Sequence[str]


@record
class Tuning:
    """`asserts` says whether kernels check their asserts. `opt_level` is opt's -O; None omits opt.
    `opt_pipeline` is a pipeline in opt's syntax ("default<O3>,my-pass") and replaces the level.
    `opt_plugins` are pass plugins that opt loads. `opt_options` and `llc_options` are LLVM's own
    options for opt and for code generation.
    `insert`, `replace` and `disable_passes` change the machine pipeline; their syntax is that of
    `fly-llc --insert`, `--replace` and `--disable-pass`."""

    asserts: bool = True
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
        if not isinstance(self.asserts, bool):
            raise UsageError(f"asserts={quoted(self.asserts)}: must be True or False")
        for name in ("opt_options", "llc_options"):
            for option in getattr(self, name):
                if not option.startswith("-"):
                    raise UsageError(
                        f"{name}: {quoted(option)} is not an option: options begin with a dash"
                    )

    def opt_words(self) -> list[str] | None:
        """Returns opt's arguments, or None if opt has nothing to do."""
        if self.opt_pipeline is not None:
            main = [f"-passes={self.opt_pipeline}"]
        elif self.opt_level is not None:
            main = [f"-O{self.opt_level}"]
        elif self.opt_plugins or self.opt_options:
            raise UsageError("opt_level=None omits opt, but opt_plugins or opt_options need it")
        else:
            return None
        plugins = [f"-load-pass-plugin={os.path.abspath(path)}" for path in self.opt_plugins]
        return ["-S", *plugins, *main, *self.opt_options]

    def opt_py_fields(self) -> tuple[tuple[str, Any], ...]:
        """Returns the fields of fly-opt-py's options that differ from their defaults."""
        return () if self.asserts else (("asserts", False),)

    def llc_fields(self) -> tuple[tuple[str, Any], ...]:
        """Returns the fields of fly-llc's options that differ from their defaults."""
        rows = (row for row in KEYWORDS.values() if row.stage == "llc")
        chosen = ((row.field, getattr(self, row.keyword)) for row in rows)
        return tuple((field, value) for field, value in chosen if value)


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


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise UsageError(f"FLY_ASSERTS={text}: must be 0 or 1")
    return text == "1"


_READERS: dict[str, Callable[[str], Any]] = {
    "level": _level,
    "switch": _switch,
    "text": str,
    "paths": _paths,
    "lines": _lines,
    "words": _words,
}
assert list(KEYWORDS) == list(fields_of(Tuning))
assert set(KEYWORDS) == set(Keywords.__annotations__)


def read(given: dict[str, Any]) -> Tuning:
    """Returns a function's tuning: the decorator's options `given`, then the environment."""
    values: dict[str, Any] = {}
    for name, row in KEYWORDS.items():
        if name in given:
            values[name] = given[name]
        elif text := os.environ.get(row.variable):
            values[name] = _READERS[row.kind](text)
    return Tuning(**values)


def check(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the decorator's options with lists as tuples. Raises UsageError for an unknown option
    or a value of the wrong type."""
    made = {}
    for name, value in given.items():
        if name not in KEYWORDS:
            raise UsageError(
                f"@fly.jit has no option {quoted(name)}",
                hint=f"its options are target, backend, chain, device, {', '.join(KEYWORDS)}",
            )
        if not KEYWORDS[name].many:
            made[name] = value
            continue
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise UsageError(f"{name}={quoted(value)}: must be a list of words")
        made[name] = tuple(os.fspath(word) for word in value)
    Tuning(**made)
    return made
