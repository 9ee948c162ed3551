"""AMDGPU intrinsics of LLVM that passes call by name."""

from __future__ import annotations

SIGNIFICAND, EXPONENT = "llvm.amdgcn.frexp.mant.f64", "llvm.amdgcn.frexp.exp.i32.f64"
# One instruction each, with an error of 1 ULP: V_EXP_F32, V_LOG_F32 and V_RSQ_F32.
APPROXIMATIONS = {
    "math.exp2": "llvm.amdgcn.exp2.f32",
    "math.log2": "llvm.amdgcn.log.f32",
    "math.rsqrt": "llvm.amdgcn.rsq.f32",
}
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
        *APPROXIMATIONS.values(),
        *BUFFER_ATOMICS,
    }
)
