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
        *(
            f"{name}.sync.aligned.m8n8.x{count}{trans}.b16.p3"
            for name in ("ldmatrix", "stmatrix")
            for count in (1, 2, 4)
            for trans in ("", ".trans")
        ),
        *(f"mma.m16n8k16.row.col.{form}" for form in ("f32.f32", "f16.f16", "bf16")),
        *("mma.m16n8k8.row.col.tf32", "mma.m16n8k32.row.col.s8"),
        *(
            f"mma.m16n8k32.row.col.f32.{a}.{b}.f32"
            for a in ("e4m3", "e5m2")
            for b in ("e4m3", "e5m2")
        ),
        *(f"cp.async.{form}" for form in ("ca.shared.global.4", "ca.shared.global.8")),
        *("cp.async.cg.shared.global.16", "cp.async.commit.group", "cp.async.wait.group"),
        *(f"cp.async.bulk.tensor.g2s.tile.{rank}d" for rank in range(1, 6)),
        *(f"cp.async.bulk.tensor.s2g.tile.{rank}d" for rank in range(1, 6)),
        *("cp.async.bulk.commit.group", "cp.async.bulk.wait.group"),
        *("cp.async.bulk.wait.group.read", "prefetch.tensormap.p0"),
        *("mbarrier.init.shared", "mbarrier.inval.shared"),
        *(f"mbarrier.arrive.scope.{scope}.space.cta" for scope in ("cta", "cluster")),
        *(f"mbarrier.arrive.expect.tx.scope.{scope}.space.cta" for scope in ("cta", "cluster")),
        *(f"mbarrier.try.wait.parity.scope.{scope}.space.cta" for scope in ("cta", "cluster")),
        *(f"mbarrier.arrive.scope.{scope}.space.cluster" for scope in ("cta", "cluster")),
        "mbarrier.arrive.expect.tx.scope.cluster.space.cluster",
        *("mapa.shared.cluster", "barrier.cluster.arrive", "barrier.cluster.wait"),
        *("griddepcontrol.wait", "griddepcontrol.launch.dependents"),
        *("fence.mbarrier_init.release.cluster", "fence.proxy.async.shared_cta"),
        *("wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned"),
        *("setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32"),
        "shfl.sync.idx.i32",
    )
).union(
    (f"llvm.{name}.f32" for name in ("maximum", "minimum", "sin", "cos", "tanh")),
    (f"llvm.{name}.i{n}" for name in ("ctlz", "cttz", "ctpop") for n in (8, 16, 32, 64, 128)),
)
