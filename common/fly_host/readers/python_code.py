"""Host programs as generated Python: the reader between the interpreter and native code.

    run(program, machine, arguments)       as fly_host.readers.interpreter.run
    source(program)                        the text that is compiled for it

The code computes eagerly and without asking whether each integer has a value. Where that fails (a
division by zero, a value beyond 64 bits, a check that is false) nothing has happened yet, and the
interpreter runs the program instead: it decides, and words the error. Integers that are computed
after a step has run are asked of `fly_host.readers.values` one by one when they are in doubt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from fly_common.errors import InputError

from fly_host import program as steps
from fly_host.integers import HIGHEST, LOWEST, truncdiv
from fly_host.program import Program, Scalar
from fly_host.readers import interpreter
from fly_host.readers.machine import Machine
from fly_host.readers.python_text import Writer, numbered
from fly_host.readers.values import Values

MOST_KEPT = 256  # programs; then the one that was used first goes

_compiled: OrderedDict[int, tuple[Program, Callable[..., Any]]] = OrderedDict()


class Doubt(Exception):
    """The generated code can't tell: the interpreter has to."""


def run(program: Program, machine: Machine, arguments: Mapping[str, Any]) -> Any:
    """See `fly_host.readers.interpreter.run`: the same results, and the same errors."""
    try:
        return compiled(program)(machine, arguments)
    except Doubt:
        return interpreter.run(program, machine, arguments)


def compiled(program: Program) -> Callable[[Machine, Mapping[str, Any]], Any]:
    """The function of a program, made when it is first asked for. It raises Doubt before anything
    has run."""
    found = _compiled.get(id(program))
    if found is None:
        names: dict[str, Any] = {"Doubt": Doubt, "program": program, "steps": numbered(program)}
        names |= {"integer": _integer, "shift_left": _shift_left, "truncdiv": truncdiv}
        names |= {"resolve": _resolve, "failed": _failed, "endless": interpreter.endless}
        names |= {"wrong_count": interpreter.wrong_count}
        exec(compile(source(program), f"<host program {program.entry}>", "exec"), names)
        found = _compiled[id(program)] = program, names["run"]
        if len(_compiled) > MOST_KEPT:
            _compiled.popitem(last=False)
    return found[1]


def source(program: Program) -> str:
    """The Python text of a program."""
    return Writer(program).text()


# -- what the code calls
def _integer(value: object) -> int:
    if not isinstance(value, int) or not LOWEST <= value <= HIGHEST:  # a u64 may be beyond
        raise Doubt
    return int(value)


def _shift_left(a: int, b: int) -> int:
    if not 0 <= b < 64:
        raise Doubt
    return a << b


def _failed(check: steps.Check, values: Values) -> None:
    """Raises what a check that is false says, behind a step."""
    shown = (part if isinstance(part, str) else str(values[part]) for part in check.message)
    raise InputError("".join(shown))


def _resolve(
    program: Program,
    machine: Machine,
    arguments: Mapping[str, Any],
    tensors: Mapping[str, Any],
    variables: Mapping[int, int],
) -> Values:
    """The values of expressions in the middle of a run, as the interpreter has them."""
    scalars = {
        p.name: int(arguments[p.name])
        for p in program.parameters
        if isinstance(p, Scalar) and isinstance(arguments[p.name], int)
    }
    extents = {name: machine.extents(tensor) for name, tensor in tensors.items()}
    return Values(program, extents, scalars, dict(variables))
