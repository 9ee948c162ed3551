"""The parameters of a C function: the program's, then its results, then `stream`."""

from __future__ import annotations

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host import refusals
from fly_host.native.c_interface.frame import CFrame
from fly_host.native.emission import marks
from fly_host.native.emission.arithmetic import NOTHING, Number
from fly_host.native.emission.frame import ScalarValue
from fly_host.native.emission.guards.tensors import Reader
from fly_host.program import Parameter, Scalar, Tensor

# Scalars of these types are C's float, which is rounded.
ROUNDED = {"f16": "fly_half", "bf16": "fly_bfloat"}


def llvm_type(parameter: Parameter) -> str:
    """The type of a parameter, with what the C ABI says of small integers."""
    if not isinstance(parameter, Scalar):
        return "ptr"
    row = ELEMENT_TYPES[parameter.dtype]
    if row.kind == "float":
        return "double" if row.bits == 64 else "float"
    extended = "signext" if row.kind == "int" else "zeroext"
    return f"i{row.bits} {extended}" if row.bits < 32 else f"i{row.bits}"


class CReader(Reader):
    """Looks at extents of one name when all tensors were read, as Python does."""

    def __init__(self, frame: CFrame):
        super().__init__(frame)
        self._shapes: list[tuple[Tensor, tuple[str, ...]]] = []

    def _same(self, tensor: Tensor, shape: tuple[str, ...]) -> None:
        self._shapes.append((tensor, shape))

    def finish(self) -> None:
        frame, code = self.frame, self.code
        assert isinstance(frame, CFrame)
        known: dict[str, tuple[str, str]] = {}
        for tensor, shape in self._shapes:
            for stated, extent in zip(tensor.shape, shape, strict=True):
                if not isinstance(stated, str):
                    continue
                before, first = known.setdefault(stated, (extent, tensor.name))
                if before != extent:
                    found = (marks.integer(before), tensor.name, marks.integer(extent))
                    text = refusals.symbol(stated, first, *found)
                    frame.refuse(code.value(f"icmp eq i64 {extent}, {before}"), text)


def scalar(frame: CFrame, parameter: Scalar, value: str) -> ScalarValue:
    """A scalar parameter, given as `value`."""
    code, row = frame.code, ELEMENT_TYPES[parameter.dtype]
    if parameter.dtype in ROUNDED:
        room = code.room("i16", 2)
        call = f"call zeroext i1 @{ROUNDED[parameter.dtype]}(float {value}, ptr {room})"
        fits = code.value(call)
        given = marks.mark("float", code.value(f"fpext float {value} to double"))
        frame.refuse(fits, refusals.scalar(parameter.name, given, parameter.dtype))
        return ScalarValue("null", NOTHING, "i16", code.load("i16", room))
    if row.kind == "float":
        kind = "double" if row.bits == 64 else "float"
        return ScalarValue("null", NOTHING, kind, value)
    kind = f"i{row.bits}"
    if row.kind == "bool":
        byte = code.value(f"zext i1 {value} to i8")
        return ScalarValue("null", Number(code.value(f"zext i1 {value} to i64")), "i8", byte)
    if row.bits == 64:
        # An expression can't use what is 2^63 or more.
        ok = code.value(f"icmp sge i64 {value}, 0") if row.kind == "uint" else None
        return ScalarValue("null", Number(value, ok), kind, value)
    extend = "sext" if row.kind == "int" else "zext"
    wide = code.value(f"{extend} {kind} {value} to i64")
    return ScalarValue("null", Number(wide), kind, value)
