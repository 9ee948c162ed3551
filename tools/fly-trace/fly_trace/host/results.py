"""What a host function returns: tensors, views of them, integers, scalars as they were given, None,
and tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError
from fly_dialect.layouts.layout import Layout

from fly_trace.core import locations
from fly_trace.core.tracing import describe
from fly_trace.host import made_tensors
from fly_trace.memory.tensors import Tensor
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder


def describe_results(
    builder: Builder, result: Any, at: locations.Position
) -> tuple[Any, list[Any]]:
    """(attribute, operands): the form of the result, in which `{}` is the next operand, `{name}`
    one that has a name in Python, `{value}` a constant, `unit` None; and the operands."""
    value, names = builder.returned or (None, None)
    operands: list[Any] = []
    form = _form(builder, result, names if value is result else None, operands, at)
    return form, operands


def _form(
    builder: Builder, result: Any, names: Any, operands: list[Any], at: locations.Position
) -> Any:
    from fly_dialect.bindings import ir

    if result is None:
        return builder.attribute("unit")
    if type(result) is tuple:
        known = names if isinstance(names, tuple) else (None,) * len(result)
        pairs = zip(result, known, strict=True)
        return builder.array([_form(builder, *pair, operands, at) for pair in pairs])
    said: dict[str, Any] = {}
    is_passed = isinstance(result, Tensor) and (result.is_array or _is_flat(result))
    if is_passed or (isinstance(result, Scalar) and result.ssa is not None):
        operands.append(result.ssa)
    elif isinstance(result, bool):
        said["value"] = ir.BoolAttr.get(result, builder.context)
    elif isinstance(result, int | Scalar) and not isinstance(number := _number(result), float):
        said["value"] = builder.integer(made_tensors.number(number, "a result"), "i64")
    else:
        raise InputError(
            f"the host function returns {describe(result)}",
            place=locations.place(at),
            hint="it can return tensors, integers, None and tuples of them"
            + (": return tuple(…)" if isinstance(result, list) else "")
            + ("; a view has one extent and one stride per dimension" * isinstance(result, Tensor)),
        )
    if isinstance(names, str):
        said["name"] = builder.string(names)
    return ir.DictAttr.get(said, builder.context)


def _is_flat(view: Tensor) -> bool:
    """Whether a view of a tensor has one extent and one stride per dimension."""
    layout = view.spec.layout
    if view.space != "global" or not isinstance(layout, Layout):
        return False
    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    return not any(isinstance(mode, tuple) for mode in modes)


def _number(value: Any) -> Any:
    return value.number if isinstance(value, Scalar) else value
