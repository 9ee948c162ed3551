"""The arguments of a host function: their description in the program, and how kernels get them."""

from __future__ import annotations

from typing import Any

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_dialect.dialect import spec_of
from fly_dialect.layouts.layout import ComposedLayout, Int, Layout
from fly_dialect.types import MemRefSpec, PtrSpec, element_bytes
from fly_host.program import Scalar, Stream, Tensor

from fly_opt.passes.base import refuse
from fly_opt.passes.host.tensors import modes

TOKEN = "!gpu.async.token"  # a stream, in FlyDSL's host functions too


@record
class Parameter:
    """An argument of the host function: its entry in the program, and its type."""

    made: Tensor | Scalar | Stream
    spec: Any


def parameter(host: Any, argument: Any, attributes: Any, fallback: str | None = None) -> Parameter:
    """What the attributes of an argument (`fly.name`, `fly.dtype`, `fly.shape`, …) and its type
    say; `fallback` is the name of one that has none. InputError where they are not enough, or
    contradict each other."""
    said = {name: attributes[name] for name in _names(attributes)}
    number = argument.arg_number
    name = said["fly.name"].value if "fly.name" in said else fallback
    if name is None:
        raise refuse(
            host,
            f"argument {number} of the host function has no fly.name",
            'each argument needs a name: {fly.name = "A"}',
        )
    spec = spec_of(argument.type)
    made: Tensor | Scalar | Stream
    if spec == TOKEN:
        made = Stream(name)
    elif isinstance(spec, PtrSpec) and spec.swizzle is None:
        # A pointer is passed as a tensor of one dimension, which begins there.
        spec = MemRefSpec(spec.element, spec.space, Layout(Int(None, 64), Int(1)), spec.align)
        made = tensor(host, name, spec, said)
    elif isinstance(spec, MemRefSpec):
        made = tensor(host, name, spec, said)
    elif isinstance(spec, str) and not spec.startswith("!"):
        default = said.get("fly.default")
        dtype = said["fly.dtype"].value if "fly.dtype" in said else spec
        made = Scalar(name, dtype, None if default is None else default.value)
    else:
        raise refuse(
            host, f"argument {name} is {argument.type}: not a tensor, a scalar or a stream"
        )
    return Parameter(made, spec)


def _names(attributes: Any) -> list[str]:
    return [item if isinstance(item, str) else item.name for item in attributes]


def tensor(host: Any, name: str, spec: MemRefSpec, said: dict[str, Any]) -> Tensor:
    if isinstance(spec.layout, ComposedLayout):
        raise refuse(
            host,
            f"the layout of {name} is composed: {spec.layout}",
            "a host function's tensors have one extent and one stride per dimension",
        )
    shape: tuple[Int, ...] = modes(spec.layout.shape)
    strides: tuple[Int, ...] = modes(spec.layout.stride)
    if not all(isinstance(leaf, Int) for leaf in (*shape, *strides)):
        raise refuse(
            host,
            f"the layout of {name} is nested: {spec.layout}",
            "a host function's tensors have one extent and one stride per dimension",
        )
    extents: list[int | str | None] = [leaf.value for leaf in shape]
    if "fly.shape" in said:
        stated = list(said["fly.shape"])
        if not stated and spec.layout.shape == Int(1):
            shape, strides, extents = (), (), []  # a layout has no rank 0: it is 1:0 instead
        if len(stated) != len(extents):
            raise refuse(
                host,
                f"fly.shape of {name} has {len(stated)} extents, but its layout has {len(extents)}",
            )
        for dimension, extent in enumerate(stated):
            if isinstance(extent, ir.StringAttr):
                extents[dimension] = extent.value
            elif isinstance(extent, ir.IntegerAttr) and extents[dimension] != extent.value:
                raise refuse(
                    host,
                    f"extent {dimension} of {name} is {extent.value} in fly.shape, but"
                    f" {shape[dimension]} in its layout",
                )
    return Tensor(
        name,
        said["fly.dtype"].value if "fly.dtype" in said else spec.element,
        tuple(extents),
        tuple(leaf.value for leaf in strides),
        said["fly.access"].value if "fly.access" in said else "rw",
        "fly.contiguous" in said,
        _multiples((*shape, *strides)),
        _alignment(host, name, spec),
    )


def _multiples(leaves: tuple[Int, ...]) -> tuple[int, ...]:
    """Returns the divisors of dynamic leaves that code may assume; empty if all are 1."""
    found = tuple(leaf.divisibility for leaf in leaves)
    return found if any(divisor > 1 for divisor in found) else ()


def _alignment(host: Any, name: str, spec: MemRefSpec) -> int:
    """Returns the alignment that code may assume; 0 where it is the element type's."""
    bytes = spec.align or 0
    if bytes & (bytes - 1):
        raise refuse(host, f"the alignment of {name} is {bytes}, which is no power of two")
    return bytes if bytes > element_bytes(spec.element) else 0


def scalar_size(op: ir.Operation, kind: str) -> int:
    """Returns the size in bytes of a scalar kernel argument; i1 is a byte, index is 64 bits."""
    sizes = {"index": 8, "i1": 1, "bf16": 2, "f16": 2, "f32": 4, "f64": 8}
    sizes |= {f"i{8 * n}": n for n in (1, 2, 4, 8)}
    if kind not in sizes:
        raise refuse(op, f"a kernel's argument can't be of type {kind}")
    return sizes[kind]
