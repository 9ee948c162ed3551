"""Special registers: each thread of a grid of three dimensions stores all of them."""

from __future__ import annotations

import numpy as np
from cpu_support import kernel, run

GRID, BLOCK = (3, 2, 2), (5, 3, 3)  # 45 threads: the second warp is not full
AXES = [f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
CLUSTER = [
    f"{name}.{axis}"
    for name in ("clusterid", "nclusterid", "cluster.ctaid", "cluster.nctaid")
    for axis in "xyz"
]
OTHERS = ["laneid", "warpid", "nwarpid", "warpsize", "smid", "nsmid"]
MASKS = [f"lanemask.{name}" for name in ("eq", "lt", "le", "gt", "ge")]
NAMES = [*AXES, *CLUSTER, "cluster.ctarank", "cluster.nctarank", *OTHERS, *MASKS]


def stored() -> np.ndarray:
    call = "call i32 @llvm.nvvm.read.ptx.sreg"
    lines = [f"  %r{n} = {call}.{name}()" for n, name in enumerate(NAMES)]
    number = {name: f"%r{n}" for n, name in enumerate(NAMES)}
    place, index = "0", 0
    for axis in "zyx":
        lines.append(f"  %m{index} = mul i32 {place}, {number[f'nctaid.{axis}']}")
        lines.append(f"  %a{index} = add i32 %m{index}, {number[f'ctaid.{axis}']}")
        place, index = f"%a{index}", index + 1
    for axis in "zyx":
        lines.append(f"  %m{index} = mul i32 {place}, {number[f'ntid.{axis}']}")
        lines.append(f"  %a{index} = add i32 %m{index}, {number[f'tid.{axis}']}")
        place, index = f"%a{index}", index + 1
    lines.append(f"  %row = mul i32 {place}, {len(NAMES)}")
    for n in range(len(NAMES)):
        lines.append(f"  %at{n} = add i32 %row, {n}")
        lines.append(f"  %p{n}.to = getelementptr i32, ptr addrspace(1) %p0, i32 %at{n}")
        lines.append(f"  store i32 %r{n}, ptr addrspace(1) %p{n}.to")
    out = np.full((np.prod(GRID), np.prod(BLOCK), len(NAMES)), -77, np.int32)
    run(kernel("\n".join(lines), 1), [out], GRID, BLOCK)
    return out


def test_each_register():
    out = stored()
    groups = np.stack(np.unravel_index(np.arange(out.shape[0]), GRID[::-1])[::-1], -1)[:, None]
    threads = np.stack(np.unravel_index(np.arange(out.shape[1]), BLOCK[::-1])[::-1], -1)[None]
    index = np.arange(out.shape[1])[None]
    lane = index % 32
    expected: dict[str, object] = {}
    for n, axis in enumerate("xyz"):
        expected |= {
            f"tid.{axis}": threads[..., n],
            f"ntid.{axis}": BLOCK[n],
            f"ctaid.{axis}": groups[..., n],
            f"nctaid.{axis}": GRID[n],
            f"clusterid.{axis}": groups[..., n],
            f"nclusterid.{axis}": GRID[n],
            f"cluster.ctaid.{axis}": 0,
            f"cluster.nctaid.{axis}": 1,
        }
    own = np.left_shift(1, lane, dtype=np.int64)
    expected |= {
        "cluster.ctarank": 0,
        "cluster.nctarank": 1,
        "laneid": lane,
        "warpid": index // 32,
        "nwarpid": 2,
        "warpsize": 32,
        "smid": 0,
        "nsmid": 1,
        "lanemask.eq": own,
        "lanemask.lt": own - 1,
        "lanemask.le": 2 * own - 1,
        "lanemask.gt": 0xFFFFFFFF ^ (2 * own - 1),
        "lanemask.ge": 0xFFFFFFFF ^ (own - 1),
    }
    assert set(expected) == set(NAMES)
    for n, name in enumerate(NAMES):
        wanted = np.broadcast_to(np.asarray(expected[name], np.int64), out.shape[:2])
        np.testing.assert_array_equal(out[..., n].view(np.uint32), wanted, err_msg=name)


def test_clocks_go_forward():
    body = "\n".join(
        [
            "  %a = call i64 @llvm.nvvm.read.ptx.sreg.clock64()",
            "  %t = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()",
            "  call void @llvm.nvvm.nanosleep(i32 1)",
            "  %b = call i64 @llvm.nvvm.read.ptx.sreg.clock64()",
            "  %u = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()",
            "  %q = getelementptr i64, ptr addrspace(1) %p0, i64 1",
            "  %c = sub i64 %b, %a",
            "  %d = sub i64 %u, %t",
            "  store i64 %c, ptr addrspace(1) %p0",
            "  store i64 %d, ptr addrspace(1) %q",
        ]
    )
    out = np.zeros(2, np.int64)
    run(kernel(body, 1), [out], 1, 1)
    assert (out > 0).all()
    assert (out < 10**10).all()
