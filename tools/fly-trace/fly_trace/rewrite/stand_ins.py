"""Stand-ins for the code of functions that Python itself calls.

Rewritten code calls a helper's rewritten function. Python's own calls would run the function as it
was written: `a + b` calls the class's `__add__`, `map` its argument. While a trace runs, the code
of such a function is therefore a stand-in, which passes the call on (`HANDLER`). The function stays
the same object, and so does its class. When no trace needs the stand-in any more, the function has
its own code again. In a thread that traces nothing, a stand-in runs that code.
"""

from __future__ import annotations

import functools
import threading
import warnings
from types import CellType, CodeType, FunctionType
from typing import Any

from fly_common import code_tables

# What a stand-in calls: with a function that has the original's code, the positional arguments, and
# the named ones. `control` sets it.
HANDLER = CellType()
FILE = "<fly stand-in>"


class _Replaced:
    """A function with a stand-in, and how many traces need that."""

    __slots__ = ("code", "count", "function", "stand_in", "twin")

    def __init__(self, function: FunctionType):
        self.function = function
        self.code = function.__code__
        self.twin = copied(function, self.code, function.__closure__)
        self.stand_in = _stand_in(self.code, _Call(self.twin))
        self.count = 0


class _Call:
    """What a stand-in calls."""

    __slots__ = ("twin",)

    def __init__(self, twin: FunctionType):
        self.twin = twin

    def run(self, *arguments: Any, **named: Any) -> Any:
        return HANDLER.cell_contents(self.twin, arguments, named)


_replaced: dict[int, _Replaced] = {}  # by `id(function)`
_twins: dict[int, FunctionType] = {}  # by `id(stand-in)`
_changing = threading.Lock()


def copied(
    function: FunctionType, code: CodeType, closure: tuple[CellType, ...] | None
) -> FunctionType:
    """A function with other code, and otherwise like `function`."""
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def replace(function: FunctionType) -> None:
    """Gives a function a stand-in until `restore` is called as often as this."""
    with _changing:
        known = _replaced.get(id(function))
        if known is None:
            known = _Replaced(function)
            _twins[id(known.stand_in)] = known.twin
            code_tables.keep(code_tables.STOOD_FOR, known.stand_in, known.code)
            _replaced[id(function)] = known
            _set_code(function, known.stand_in)
        known.count += 1


def restore(function: FunctionType) -> None:
    """Gives a function its own code again, unless another trace needs the stand-in."""
    with _changing:
        known = _replaced[id(function)]
        known.count -= 1
        if known.count:
            return
        if function.__code__ is known.stand_in:
            _set_code(function, known.code)
        del _replaced[id(function)]
        del _twins[id(known.stand_in)]


def _set_code(function: FunctionType, code: CodeType) -> None:
    """Sets a function's code. CPython 3.13 warns if one of two codes is a generator's: a stand-in
    returns the generator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        function.__code__ = code


def original(function: FunctionType) -> FunctionType:
    """A function with the original's code, if `function` has a stand-in, else itself."""
    return _twins.get(id(function.__code__), function)


def _stand_in(code: CodeType, call: _Call) -> CodeType:
    """Code that passes a call on. It takes any arguments; the twin has the defaults."""
    found = _template(code.co_freevars)
    return found.replace(
        co_consts=tuple(call if item == _PLACE else item for item in found.co_consts),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
    )


_PLACE = "what is called"


@functools.lru_cache(maxsize=256)
def _template(names: tuple[str, ...]) -> CodeType:
    """Code with these free variables: a function's code must have those of its closure. A constant
    is in the place of what it calls."""
    given = "*__fly_arguments__, **__fly_named__"  # no free variable has these names
    lines = [
        f"def factory({', '.join(names)}):",
        f"    def stand_in({given}):",
        f"        if 0: {', '.join(names) or 'pass'}",
        f"        return {_PLACE!r}.run({given})",
    ]
    code = compile("\n".join(lines), FILE, "exec", dont_inherit=True)
    for _ in range(2):
        code = next(item for item in code.co_consts if isinstance(item, CodeType))
    return code
