"""Maps the running frame to a position in the user's Python: file, line, column.

Nothing here walks frames with `inspect`: the positions of a code object's instructions are read
once into a list, which is indexed by a frame's instruction. A location costs about a microsecond.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import weakref
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from fly_common import code_tables
from fly_common.errors import Place
from fly_plugin import active


class Position(NamedTuple):
    """A source range. Lines are 1-based; columns are 0-based offsets in UTF-8, as in CPython."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # the package's folder
_PRIMITIVES = os.path.join(_HERE, "primitives", "")


def _package(name: str) -> str | None:
    spec = sys.modules.get(name)
    path = getattr(spec, "__file__", None)
    return os.path.dirname(os.path.abspath(path)) + os.sep if path else None


_STDLIB = tuple(
    os.path.join(path, "") for path in {sysconfig.get_path(n) for n in ("stdlib", "platstdlib")}
)
_SITE = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
OURS = (
    *("fly_trace", "fly_dialect", "fly_backend", "fly_host", "fly_target", "fly_numerics"),
    "fly_plugin",
    "fly_store",
    "fly_common",
    "fly",
)
KERNELS = "fly.kernels"  # written in the language: what traces it treats it as the user's


def is_library(file: str) -> bool:
    """Whether a file belongs to Python, an installed package or this project."""
    if file.startswith("<"):
        return file.startswith(("<frozen", "<fly"))
    if any(part in file for part in _SITE) or file.startswith(_STDLIB):
        return True
    return is_ours(file) or any(map(file.startswith, _plugins()))


def _plugins() -> tuple[str, ...]:
    """The packages, or the files, of the functions that the active plugins add to the language."""
    names = (name for one in active() for name in one.plugin.namespaces.values())
    found = []
    for name in names:
        package = name.partition(".")[0]
        if hasattr(sys.modules.get(package), "__path__"):
            found.append(_package(package))
        else:
            found.append(getattr(sys.modules.get(package), "__file__", None))
    return tuple(filter(None, found))


def is_ours(file: str) -> bool:
    if file.startswith(_HERE):
        return True
    # `fly` may be anywhere; the imported package gives its folder.
    inside = any((folder := _package(name)) and file.startswith(folder) for name in OURS)
    return inside and not ((kernels := _package(KERNELS)) and file.startswith(kernels))


def is_own_module(name: str) -> bool:
    """Whether a module defines the language or the tools, and is not written in the language."""
    return name.partition(".")[0] in OURS and name != KERNELS and not name.startswith(f"{KERNELS}.")


def is_traced(file: str) -> bool:
    """Whether a file of the language is traced like the user's: so are its primitives."""
    return file.startswith(_PRIMITIVES)


# The lines and columns of an instruction, as in `CodeType.co_positions`.
_Span = tuple[int | None, int | None, int | None, int | None]


class _Table:
    """Whether a code object is the user's, and the lines and columns of its instructions, which are
    read when the first is asked for. It does not keep the code object alive."""

    __slots__ = ("code", "spans", "user")

    def __init__(self, code: CodeType, user: bool):
        self.code = weakref.ref(code)
        self.user = user
        self.spans: list[_Span] | None = None

    def at(self, offset: int) -> Position | None:
        """The position of the instruction at an offset in bytes. An instruction takes two; -1 means
        that the frame has not started."""
        code = self.code()
        assert code is not None, "the caller has a frame of it"
        if self.spans is None:
            self.spans = list(code.co_positions())
        index = offset >> 1
        if not 0 <= index < len(self.spans):
            return None
        line, end, column, end_column = self.spans[index]
        line, column = line or code.co_firstlineno, column or 0
        return Position(code.co_filename, line, column, end or line, end_column or column + 1)


TABLES: dict[int, _Table] = {}  # by `id(code)`


def _read(code: CodeType, user: bool = False) -> _Table:
    user = user or not (is_library(code.co_filename) or is_generated(code))
    return code_tables.keep(TABLES, code, _Table(code, user))


def is_generated(code: CodeType) -> bool:
    """Whether `dataclass` or attrs generated a method, which then has no source to show."""
    file = code.co_filename
    made = file == "<string>" and code.co_qualname.startswith("__create_fn__.")
    return made or file.startswith("<attrs generated")


def user_code(code: CodeType) -> bool:
    """Whether a code object is the user's."""
    return (TABLES.get(id(code)) or _read(code)).user


def position(frame: FrameType | None) -> Position | None:
    """The position of the innermost user frame, from `frame` outwards."""
    tables = TABLES
    while frame is not None:
        code = frame.f_code
        table = tables.get(id(code)) or _read(code)
        if table.user:
            if (found := table.at(frame.f_lasti)) is not None:
                return found
            return Position(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 1)
        frame = frame.f_back
    return None


def here(depth: int = 1) -> Position | None:
    """The innermost user position of the caller."""
    return position(sys._getframe(depth))


def of_traceback(traceback: TracebackType | None) -> Position | None:
    """The innermost user position of an exception's traceback."""
    found = None
    while traceback is not None:
        found = in_traceback(traceback) or found
        traceback = traceback.tb_next
    return found


def in_traceback(traceback: TracebackType) -> Position | None:
    """The position in a traceback's own frame, if the code is the user's."""
    code = traceback.tb_frame.f_code
    table = TABLES.get(id(code)) or _read(code)
    return table.at(traceback.tb_lasti) if table.user else None


_names: dict[str, str] = {}


def call_it(file: str, name: str) -> None:
    """Sets the name of `file` in messages and locations."""
    _names[file] = name


def shown(file: str) -> str:
    return _names.get(file, file)


def place(at: Position | None) -> Place | None:
    """A position for a message: the line's text, and a caret as wide as the expression."""
    if at is None:
        return None
    line = linecache.getline(at.file, at.line).rstrip("\n")
    if not line:
        return Place(shown(at.file), at.line, at.column + 1)
    data = line.encode()
    start = len(data[: at.column].decode(errors="replace"))
    if at.end_line == at.line:
        end = len(data[: at.end_column].decode(errors="replace"))
    else:
        end = len(line)
    return Place(shown(at.file), at.line, start + 1, line, max(1, end - start))


def adopt(code: CodeType) -> None:
    """Treats `code` as the user's regardless of its file."""
    table = TABLES.get(id(code)) or _read(code, True)
    if not table.user:
        _read(code, True)
