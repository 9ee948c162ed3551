"""Code objects: the names they look up outside themselves (CPython 3.11 on), and their source."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from opcode import opmap
from types import CodeType
from typing import Any

from fly_common.errors import InputError, Place

_STARTED = time.time()

_LOAD_GLOBAL = opmap["LOAD_GLOBAL"]
# Class bodies in functions look names up in their own namespace first.
_LOAD_NAME = {opmap[name] for name in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") if name in opmap}
_LOAD_METHOD = opmap.get("LOAD_METHOD")  # 3.11 only
_LOAD_ATTR = opmap["LOAD_ATTR"]
_EXTENDED_ARG = opmap["EXTENDED_ARG"]
_CACHE = opmap.get("CACHE", 0)
_WRITES = {opmap["STORE_GLOBAL"], opmap["DELETE_GLOBAL"]}
_IMPORTS = {opmap["IMPORT_NAME"]}
# From 3.12 on the lowest bit of LOAD_ATTR's argument says whether a method is wanted.
_ATTRIBUTE_SHIFT = 1 if sys.version_info >= (3, 12) else 0


@dataclass(frozen=True)
class Names:
    """`paths`: each global with the attributes that follow it at once: `fx.math.exp` is
    ("fx", "math", "exp"). `writes` and `imports`: globals assigned, modules imported. `all`: these
    and the names of all attributes."""

    paths: tuple[tuple[str, ...], ...]
    writes: tuple[str, ...]
    imports: tuple[str, ...]
    all: frozenset[str]


@functools.cache
def names_of(code: CodeType) -> Names:
    """The names of `code` and of all code within it (lambdas, inner functions, comprehensions)."""
    paths: set[tuple[str, ...]] = set()
    writes: set[str] = set()
    imports: set[str] = set()
    everything = set(code.co_names)
    path: list[str] = []
    for operation, argument in _operations(code):
        if operation == _LOAD_ATTR and path:
            path.append(code.co_names[argument >> _ATTRIBUTE_SHIFT])
            continue
        if operation == _LOAD_METHOD and path:
            path.append(code.co_names[argument])
        if path:
            paths.add(tuple(path))
        path = []
        if operation == _LOAD_GLOBAL:
            path = [code.co_names[argument >> 1]]
        elif operation in _LOAD_NAME:
            path = [code.co_names[argument]]
        elif operation in _WRITES:
            writes.add(code.co_names[argument])
        elif operation in _IMPORTS:
            imports.add(code.co_names[argument])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = names_of(constant)
            paths.update(inner.paths)
            writes.update(inner.writes)
            imports.update(inner.imports)
            everything.update(inner.all)
    return Names(
        tuple(sorted(paths)),
        tuple(sorted(writes)),
        tuple(sorted(imports)),
        frozenset(everything),
    )


def source_of(code: CodeType) -> str:
    """The source lines of `code` as they are on disk (or in a notebook) now; "" where there are
    none, as for what `dataclass` generates."""
    lines = _lines(code.co_filename)
    return "".join(lines[code.co_firstlineno - 1 : _last_line(code)])


def _last_line(code: CodeType) -> int:
    """The last source line that `code` was made from, and so any code within it."""
    ends = (end for _, end, _, _ in code.co_positions() if end is not None)
    return max(ends, default=code.co_firstlineno)


def _operations(code: CodeType) -> Iterator[tuple[int, int]]:
    """(operation, argument) of each instruction, inline caches left out."""
    data = code.co_code
    extended = 0
    for at in range(0, len(data), 2):
        operation, argument = data[at], data[at + 1]
        if operation == _CACHE:
            continue
        if operation == _EXTENDED_ARG:
            extended = (extended | argument) << 8
            continue
        yield operation, extended | argument
        extended = 0


def check_source(code: CodeType) -> None:
    """InputError if a function's file was edited after it was loaded: its source, which tracing
    reads, then is not what Python runs.

    Only a file that is younger than this process is looked into: code of an older one may differ
    from its source for good reason (pytest and others transform it).
    """
    try:
        if os.stat(code.co_filename).st_mtime < _STARTED:
            return
    except OSError:
        return
    source = "".join(_lines(code.co_filename))
    content = _content(code)
    if not any(_content(other) == content for other in _codes(code.co_filename, source)):
        place = Place(code.co_filename, code.co_firstlineno)
        raise InputError(
            f"the source of {code.co_name} changed since it was loaded",
            place=place,
            hint="reload the module, or restart the process",
        )


@functools.lru_cache(maxsize=64)
def _codes(file: str, source: str) -> tuple[CodeType, ...]:
    """All code objects of a file; none where it is not Python any more."""
    try:
        found = [compile(source, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return ()
    for code in found:  # grows as it goes
        found += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return tuple(found)


def _content(value: Any) -> Any:
    """What tells code, or a constant of it, from others. (1, 1.0 and True are equal.)"""
    if isinstance(value, CodeType):
        names = (value.co_qualname, value.co_names, value.co_varnames)
        return value.co_firstlineno, value.co_code, names, _content(value.co_consts)
    if isinstance(value, tuple | frozenset):
        return type(value), type(value)(map(_content, value))
    return type(value), repr(value) if isinstance(value, float | complex) else value


_files: dict[str, tuple[tuple[int, int], list[str]]] = {}


def _lines(file: str) -> list[str]:
    try:
        status = os.stat(file)
        stamp = (status.st_mtime_ns, status.st_size)
        if file not in _files or _files[file][0] != stamp:
            with open(file, encoding="utf-8", errors="surrogateescape", newline=None) as opened:
                _files[file] = (stamp, opened.readlines())
        return _files[file][1]
    except OSError:
        # A notebook's cells exist in linecache alone; where that is not loaded there are none.
        linecache = sys.modules.get("linecache")
        return linecache.getlines(file) if linecache else []
