"""Checks the names and scalars given for the parameters of a program.

`tensors` checks arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fly_common.errors import InputError, UsageError
from fly_common.quoting import quoted
from fly_host import refusals
from fly_host.program import Parameter, Program, Scalar, Stream
from fly_host.refusals import describe

from fly_run.launch.arrays import dtypes


def check_names(
    program: Program, values: Mapping[str, object], results: Iterable[str] = ()
) -> None:
    """Raises UsageError for the first name that is unknown or missing. `results` are names that the
    caller may use in addition, for hints."""
    known = {p.name for p in program.parameters}
    for name in values:
        if name not in known:
            raise UsageError(
                f"{program.entry} has no parameter {quoted(name)}",
                hint=_suggest(name, program, list(results)),
            )
    for parameter in program.parameters:
        optional = isinstance(parameter, Stream) or (
            isinstance(parameter, Scalar) and parameter.default is not None
        )
        if parameter.name not in values and not optional:
            raise UsageError(
                f"{program.entry} needs {parameter.name}, {describe(parameter)}",
                hint=f"add {_example(parameter)}",
            )


def _suggest(name: str, program: Program, results: list[str]) -> str:
    import difflib

    names = [*(p.name for p in program.parameters), *results]
    # A single letter in the other case is too short for difflib to match.
    near = [known for known in names if known.lower() == name.lower()]
    near += difflib.get_close_matches(name, names)
    told = f"parameters: {', '.join(f'{p.name}: {describe(p)}' for p in program.parameters)}"
    told += f"  results: {', '.join(results)}" if results else ""
    return f"did you mean {near[0]}?  {told}" if near else told


def _example(parameter: Parameter) -> str:
    if isinstance(parameter, Stream):
        return ""
    if isinstance(parameter, Scalar):
        return f"{parameter.name}={'1.5' if parameter.dtype in dtypes.FLOATS else '1'}"
    path = f"{parameter.name.lower()}.npy"
    return f"{parameter.name}={path}" + (f":{path}" if parameter.access == "rw" else "")


def check_scalar(scalar: Scalar, value: object) -> int | float | bool:
    """Converts `value` to a Python number for the parameter's type. InputError if it is not a
    number, or does not fit."""
    import numpy as np

    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    dtype = scalar.dtype
    if not isinstance(value, int | float):
        raise InputError(f"{scalar.name} must be one {dtype} number, not {_kind(value)}")
    if dtype in dtypes.FLOATS:
        try:
            number: int | float | bool = float(value)
        except OverflowError:  # an integer beyond the range of floats
            raise _does_not_fit(scalar, value) from None
    elif dtype == "bool":
        if value not in (0, 1):
            raise InputError(f"{scalar.name} is bool: expected true or false, not {quoted(value)}")
        number = bool(value)
    elif isinstance(value, float):
        raise InputError(
            f"{scalar.name} is {dtype}, but {value} is not an integer",
            hint=f"write {scalar.name}={int(value)}" if value.is_integer() else None,
        )
    else:
        number = int(value)
    try:
        dtypes.pack_scalar(number, dtype)
    except OverflowError:
        raise _does_not_fit(scalar, value) from None
    return number


def _does_not_fit(scalar: Scalar, value: object) -> InputError:
    return InputError(refusals.scalar(scalar.name, quoted(value), scalar.dtype))


def _kind(value: object) -> str:
    shape = getattr(value, "shape", None)
    return f"an array of shape {shape}" if shape is not None else quoted(value)
