"""Calls of library functions in the host function: `fx.call(torch.matmul, A, B, out=C)`.

A function that is registered (`fly.register_call`) is called when the program runs. What it makes,
its shape rule says now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_common.errors import FlyError
from fly_common.quoting import quoted
from fly_host import library
from fly_host.library import Like, Made, Registered

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.host import checks, made_tensors
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import EVERY, DType
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

__all__ = ["call"]


def call(function: Any, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
    """Calls a registered function, given as it is or by its name, on tensors, numbers, strings and
    tuples of these. It gives the tensors that the function makes; with `out=` the function writes
    to that tensor, and that is the result."""
    builder = made_tensors.host_builder("fx.call")
    found = _registered(function)
    if out is not None:
        if not isinstance(out, Tensor):
            tracing.refuse(f"fx.call: out is a tensor, not {describe(out)}")
        keywords["out"] = out
    made = _made(found, arguments, keywords)
    for a, b, what in made.equal:
        checks.require_equal(builder, a, b, f"{found.name}: {what}")
    operands: list[Any] = []
    given = [_entry(builder, value, operands) for value in arguments]
    named = {name: _entry(builder, value, operands) for name, value in keywords.items()}
    for value in (*arguments, *keywords.values()):
        if isinstance(value, Tensor):
            value.access.reads |= value is not out
    if out is not None:
        _check_out(builder, found, made, out)
        out.access.writes = True
        _build(builder, found, given, named, operands, [], [])
        return out
    return _results(builder, found, given, named, operands, made.results)


def _registered(function: Any) -> Registered:
    name = function if isinstance(function, str) else library.name_of(function)
    found = library.find(name) if name is not None else None
    if found is None:
        shown = quoted(name) if name is not None else describe(function)
        called = getattr(function, "__qualname__", "")
        tracing.refuse(
            f"fx.call: {shown}{f' {called}' if called else ''} is not registered",
            'register it, with its shape rule: fly.register_call("name", shape=rule, function=f)',
        )
    return found


def _made(found: Registered, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Made:
    """What the shape rule says."""
    given = [_seen(value) for value in arguments]
    named = {name: _seen(value) for name, value in keywords.items()}
    try:
        made = found.shape(*given, **named)
    except FlyError:
        raise
    except (ValueError, TypeError) as error:
        tracing.refuse(f"{found.name}: {error}")
    if isinstance(made, Like):
        return Made((made,))
    if not isinstance(made, Made):
        tracing.refuse(f"the shape rule of {found.name} gives {describe(made)}, and no Made")
    return made


def _seen(value: Any) -> Any:
    """What a shape rule gets for an argument."""
    if not isinstance(value, Tensor):
        return tuple(map(_seen, value)) if isinstance(value, tuple) else value
    if not value.is_array:
        tracing.refuse("fx.call takes tensors as they are, not other views of them")
    modes = range(value.rank)
    return Like(
        value.dtype.name,
        tuple(value.leaf("shape", mode) for mode in modes),
        tuple(value.leaf("stride", mode) for mode in modes),
    )


def _entry(builder: Builder, value: Any, operands: list[Any]) -> Any:
    """An argument in the op's list: `unit` is the next operand, `{}` None, others constants."""
    from fly_dialect.bindings import ir

    if isinstance(value, Tensor):
        operands.append(value.ssa)
        return builder.attribute("unit")
    if isinstance(value, Scalar):
        if value.number is None:
            is_integer = value.dtype.is_integer
            operands.append(made_tensors.ssa(builder, value) if is_integer else builder.ssa(value))
            return builder.attribute("unit")
        value = value.number
    if isinstance(value, DType):
        tracing.refuse("fx.call passes no element types: they are the library's own")
    if value is None:
        return ir.DictAttr.get({}, builder.context)
    if isinstance(value, bool):
        return ir.BoolAttr.get(value, builder.context)
    if isinstance(value, int):
        return builder.integer(made_tensors.number(value, "an argument of fx.call"), "i64")
    if isinstance(value, float):
        return ir.FloatAttr.get(builder.type("f64"), value, loc=builder.locations.unknown)
    if isinstance(value, str):
        return builder.string(value)
    if isinstance(value, tuple):
        return builder.array([_entry(builder, one, operands) for one in value])
    tracing.refuse(
        f"fx.call passes tensors, numbers, strings, None and tuples of them, not {describe(value)}"
    )


def _check_out(builder: Builder, found: Registered, made: Made, out: Tensor) -> None:
    """That `out` is what the function would make."""
    if len(made.results) != 1:
        tracing.refuse(f"{found.name} makes {len(made.results)} tensors, and out is one")
    (like,) = made.results
    if like.dtype != out.dtype.name or like.rank != out.rank:
        tracing.refuse(
            f"{found.name} makes a tensor of {like.dtype} with {like.rank} dimensions, and out is"
            f" {out.described}"
        )
    for mode, extent in enumerate(like.shape):
        what = f"{found.name}: extent {mode} of the result and of out"
        checks.require_equal(builder, extent, out.leaf("shape", mode), what)


def _results(
    builder: Builder,
    found: Registered,
    given: list[Any],
    named: dict[str, Any],
    operands: list[Any],
    results: tuple[Like, ...],
) -> Any:
    """Builds the call of a function that makes tensors."""
    from fly_dialect.bindings import ir

    name = made_tensors.assigned_name("result")
    specs, described, pieces = [], [], []
    for like in results:
        dtype = EVERY.get(like.dtype)
        if dtype is None:
            tracing.refuse(f"the shape rule of {found.name} gives the dtype {quoted(like.dtype)}")
        shape = made_tensors.sizes(like.shape, f"an extent that the rule of {found.name} gives")
        entries, more = made_tensors.split(builder, shape)
        operands += more
        one = {"dtype": builder.string(like.dtype), "shape": builder.array(entries)}
        strides = made_tensors.contiguous(shape)
        if like.strides is not None:
            strides = made_tensors.sizes(like.strides, f"a stride that {found.name}'s rule gives")
            entries, more = made_tensors.split(builder, strides)
            operands += more
            one["strides"] = builder.array(entries)
        known = [one if isinstance(one, int) else None for one in strides]
        specs.append(made_tensors.spec_of(dtype, shape, known))
        described.append(ir.DictAttr.get(one, builder.context))
        pieces.append((dtype, shape))
    op = _build(builder, found, given, named, operands, specs, described, name)
    made = tuple(
        made_tensors.tensor(spec, value, dtype, name, shape)
        for spec, value, (dtype, shape) in zip(specs, op.results, pieces, strict=True)
    )
    return made[0] if len(made) == 1 else made or None


def _build(
    builder: Builder,
    found: Registered,
    given: list[Any],
    named: dict[str, Any],
    operands: list[Any],
    specs: list[Any],
    described: list[Any],
    name: str = "",
) -> Any:
    from fly_dialect import dialect
    from fly_dialect.bindings import ir

    attributes = {
        "function": builder.string(found.name),
        "arguments": builder.array(given),
        "keywords": ir.DictAttr.get(named, builder.context),
        "results": builder.array(described),
    }
    if name:
        attributes["name"] = builder.string(name)
    return builder.op("fly.call", [dialect.type_of(one) for one in specs], operands, attributes)
