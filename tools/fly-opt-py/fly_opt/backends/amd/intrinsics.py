"""AMDGPU intrinsics of LLVM that passes call by name."""

from __future__ import annotations

SIGNIFICAND, EXPONENT = "llvm.amdgcn.frexp.mant.f64", "llvm.amdgcn.frexp.exp.i32.f64"
# Moves of words among lanes.
UPDATE_DPP, PERMLANEX16 = "llvm.amdgcn.update.dpp.i32", "llvm.amdgcn.permlanex16.i32"
READLANE = "llvm.amdgcn.readlane.i32"
# Atomic updates through a buffer descriptor; rocdl has ops for only some of them.
BUFFER_ATOMIC = "llvm.amdgcn.raw.ptr.buffer.atomic"
BUFFER_ATOMICS = {
    f"{BUFFER_ATOMIC}.{update}"
    for update in ("add", "smax", "smin", "and", "or", "inc", "dec", "fadd", "fmax", "fmin")
}
ALL = frozenset(
    {
        *(SIGNIFICAND, EXPONENT, "llvm.amdgcn.implicitarg.ptr", "llvm.amdgcn.s.wait.kmcnt"),
        *(UPDATE_DPP, PERMLANEX16, READLANE),
        *BUFFER_ATOMICS,
    }
)
