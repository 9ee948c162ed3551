"""Type inference for buffer descriptors. See `fly_dialect.inference.rules`."""

from __future__ import annotations

from fly_dialect.inference.rules import Attributes, ptr_operand
from fly_dialect.types import PtrSpec, Spec

# The address space of pointers with a buffer descriptor, and LLVM's type of the descriptor.
BUFFER_SPACE = "#fly_rocdl.buffer_desc"
BUFFER_RESOURCE = "!llvm.ptr<8>"
# The operands that make a descriptor from a global pointer: stride, size in bytes, and flags. The
# default flags are those of the module's target.
_DESCRIPTOR = ("i16", "i64", "i32")


def check_buffer_ptr(operands: list[Spec], result: PtrSpec) -> None:
    """Raises ValueError unless a make_ptr of a buffer descriptor has the operands it needs."""
    base = operands[0] if operands else None
    if not isinstance(base, PtrSpec) or base.space != "global" or base.element != result.element:
        raise ValueError(
            f"{result} is made from a !fly.ptr<{result.element}, global>, not from {base}"
        )
    if tuple(operands[1:]) not in (_DESCRIPTOR, _DESCRIPTOR[:2]):
        found = ", ".join(map(str, operands[1:])) or "nothing"
        raise ValueError(
            f"{result} needs a stride, bytes and flags ({', '.join(_DESCRIPTOR)}), but has {found}"
        )


def infer_get_buffer_rsrc(operands: list[Spec], _: Attributes) -> list[Spec]:
    pointer = ptr_operand(operands, 0)
    if pointer.space != BUFFER_SPACE:
        raise ValueError(
            f"expected a buffer_desc address space pointer, got one of {pointer.space}"
        )
    return [BUFFER_RESOURCE]
