"""What is said of values that control flow can't merge."""

from __future__ import annotations

from typing import Any, NoReturn

from fly_trace.control.carried.carried_values import (
    MISSING,
    ConstantMismatch,
    Held,
    Mismatch,
    Undefined,
    is_number,
    plain,
)
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.scalars import Scalar


def refuse_mismatch(name: str, mismatch: Mismatch, first: str, second: str) -> NoReturn:
    """Reports the mismatch with the variable's name and both types."""
    a, b = mismatch.a, mismatch.b
    hint = None
    typed = next((x for x in (a, b) if isinstance(x, Scalar)), None)
    if isinstance(mismatch, ConstantMismatch):
        hint = "the field is annotated fx.Constexpr: it must be the same on all paths"
    elif is_number(a) and is_number(b):
        title = typed.dtype.title if typed is not None else "Float32"
        hint = f"convert it to one type: fx.{title}(…)"
    elif a is None and typed is not None:
        hint = f"assign {name}{mismatch.path} a number before, such as fx.{typed.dtype.title}(0)"
    elif b is None and typed is not None and name.isidentifier():
        hint = f"let {name} be a number on all paths, and a flag say what None does"
    elif a is MISSING or b is MISSING:
        hint = f"assign {name}{mismatch.path} a value before"
    elif isinstance(a, Undefined) or isinstance(b, Undefined):
        hint = f"assign {name} a value first"
    shown = f"`{name}{mismatch.path}`" if name.isidentifier() else name + mismatch.path
    types = [type(plain(one)) for one in (a, b)]
    other = f"and {shape_of(b)} {second}"
    alike = types[0] in (list, dict) and shape_of(a) == shape_of(b)
    if isinstance(a, Held) or isinstance(b, Held) or alike:
        hint = "what is changed in place must be the same object on all paths"
        if types in ([list, list], [dict, dict]):
            other = f"and another one {second}"
            slice_ = "[:]" if types[0] is list else "[…]"
            hint += f": assign its items, {name}{mismatch.path}{slice_} = …"
    tracing.refuse(f"{shown} is {shape_of(a)} {first}, {other}", hint)


def shape_of(value: Any) -> str:
    if isinstance(value, Undefined):
        return "undefined"
    if isinstance(value, (tuple, list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return describe(value)
