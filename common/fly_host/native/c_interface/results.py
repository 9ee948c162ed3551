"""What a program returns, as parameters of its C function."""

from __future__ import annotations

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.c_interface.frame import CFrame
from fly_host.native.emission.frame import ERROR, Value
from fly_host.native.emission.guards.tensors import dlpack_dtype
from fly_host.program import Operand, Program, View


def outs(program: Program) -> dict[str, Operand]:
    """The results that the caller gets by its parameters: tensors and integers that are not
    parameters themselves, nor constants."""
    return {
        name: operand
        for name, operand in program.named_results.items()
        if operand.kind in ("tensor", "view", "integer")
    }


def write(frame: CFrame, operand: Operand, out: str) -> None:
    """Stores a result at `out`."""
    code = frame.code
    if operand.kind == "integer":
        code.store("i64", frame.need(operand.value), out)
        return
    value = _view(frame, operand.value) if operand.kind == "view" else frame.tensors[operand.value]
    shape, strides = code.integers(list(value.shape)), code.integers(list(value.strides))
    status = code.value(
        f"call i32 @fly_result(ptr %table, ptr {value.object}, ptr {value.data},"
        f" i32 {dlpack_dtype(value.dtype)}, i32 {len(value.shape)}, ptr {shape}, ptr {strides},"
        f" ptr {out})"
    )
    code.require(code.value(f"icmp eq i32 {status}, 0"), ERROR)


def _view(frame: CFrame, view: View) -> Value:
    code, base = frame.code, frame.tensors[view.tensor]
    shape = tuple(frame.need(index) for index in view.shape)
    strides = tuple(frame.need(index) for index in view.strides)
    size = ELEMENT_TYPES[base.dtype].bytes
    offset = code.value(f"mul i64 {frame.need(view.offset)}, {size}")
    data = code.value(f"getelementptr i8, ptr {base.data}, i64 {offset}")
    return Value(base.object, data, shape, strides, base.dtype)
