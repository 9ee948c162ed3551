"""NVPTX intrinsics of LLVM that passes and the language call by name."""

from __future__ import annotations

ALL = frozenset(
    f"llvm.nvvm.{name}"
    for name in (
        *("ex2.approx.ftz.f", "lg2.approx.ftz.f"),
        *(f"{form}x2.to.f16x2.rn" for form in ("e4m3", "e5m2")),
        *(f"ff.to.{form}x2.rn" for form in ("e4m3", "e5m2")),
        *(f"vote.{name}.sync" for name in ("ballot", "any", "all", "uni")),
        *(f"redux.sync.{name}" for name in ("add", "min", "umin", "max", "umax", "and", "or")),
        *("redux.sync.xor", "match.any.sync.i32", "match.any.sync.i64", "elect.sync"),
        *("bar.warp.sync", "barrier.cta.sync.aligned.count", "barrier.cta.arrive.aligned.count"),
        *("nanosleep", "read.ptx.sreg.clock64"),
    )
).union(
    (f"llvm.{name}.f32" for name in ("maximum", "minimum", "sin", "cos", "tanh")),
    (f"llvm.{name}.i{n}" for name in ("ctlz", "cttz", "ctpop") for n in (8, 16, 32, 64, 128)),
)
