"""Clusters of workgroups (gfx1250): where a workgroup is in its cluster, the cluster's barrier, and
which launches are refused. The kernels are LLVM's code for its intrinsics, or assembly."""

from __future__ import annotations

import functools
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from emulator_support.clusters import run
from emulator_support.engine import launch
from fly_common.errors import Fault, FlyError, InputError, UsageError
from fly_common.programs import toolchain
from fly_image.amd.code_object import CodeObject

IDS = (
    *(f"cluster.id.{axis}" for axis in "xyz"),
    *(f"cluster.workgroup.id.{axis}" for axis in "xyz"),
    *(f"cluster.workgroup.max.id.{axis}" for axis in "xyz"),
    "cluster.workgroup.flat.id",
    "cluster.workgroup.max.flat.id",
    *(f"workgroup.id.{axis}" for axis in "xyz"),
)


@functools.cache
def compiled(source: str, level: str = "-O3", target: str = "gfx1250") -> CodeObject:
    """Builds a code object from LLVM IR."""
    with tempfile.TemporaryDirectory() as folder:
        made, linked = Path(folder, "k.o"), Path(folder, "k.hsaco")
        options = [f"-mcpu={target}", level, "-filetype=obj", "-o", str(made)]
        llc = toolchain.run_program("llc", options, source.encode())
        assert llc.returncode == 0, llc.stderr.decode()
        lld = toolchain.run_program("ld.lld", ["-shared", str(made), "-o", str(linked)], None)
        assert lld.returncode == 0, lld.stderr.decode()
        return CodeObject.parse(linked.read_bytes())


def ids(attribute: str) -> str:
    """Source of a kernel that stores the ids of each workgroup, by its number in the grid."""
    declared = "".join(f"declare i32 @llvm.amdgcn.{name}()\n" for name in IDS)
    stored = "".join(
        f"""  %v{n} = call i32 @llvm.amdgcn.{name}()
  %i{n} = add i32 %first, {n}
  %p{n} = getelementptr i32, ptr addrspace(1) %out, i32 %i{n}
  store i32 %v{n}, ptr addrspace(1) %p{n}
"""
        for n, name in enumerate(IDS)
    )
    return f"""target triple = "amdgcn-amd-amdhsa"
{declared}
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %width, i32 %height) #0 {{
  %x = call i32 @llvm.amdgcn.workgroup.id.x()
  %y = call i32 @llvm.amdgcn.workgroup.id.y()
  %z = call i32 @llvm.amdgcn.workgroup.id.z()
  %plane = mul i32 %z, %height
  %row = add i32 %plane, %y
  %line = mul i32 %row, %width
  %number = add i32 %line, %x
  %first = mul i32 %number, {len(IDS)}
{stored}  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="32,32" {attribute} }}
"""


def expected(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> np.ndarray:
    rows = []
    for z, y, x in itertools.product(*(range(size) for size in reversed(grid))):
        place = [at % size for at, size in zip((x, y, z), cluster, strict=True)]
        flat = place[0] + cluster[0] * (place[1] + cluster[1] * place[2])
        rows.append(
            [
                *(at // size for at, size in zip((x, y, z), cluster, strict=True)),
                *place,
                *(size - 1 for size in cluster),
                flat,
                int(np.prod(cluster)) - 1,
                x,
                y,
                z,
            ]
        )
    return np.array(rows, np.uint32)


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((4, 1, 1), (2, 1, 1)),
        ((4, 4, 2), (2, 2, 1)),
        ((6, 2, 2), (3, 1, 2)),
        ((2, 8, 4), (2, 4, 2)),
        ((16, 3, 1), (16, 1, 1)),
        ((3, 5, 2), (1, 1, 1)),
    ],
)
def test_ids(level: str, threads: int, grid, cluster) -> None:
    dims = ",".join(map(str, cluster))
    code = compiled(ids(f'"amdgpu-cluster-dims"="{dims}"'), level)
    assert code.kernels["k"].cluster == cluster
    out = np.full((int(np.prod(grid)), len(IDS)), 99, np.uint32)
    launch(code, [out, np.int32(grid[0]), np.int32(grid[1])], grid, 32, threads=threads)
    np.testing.assert_array_equal(out, expected(grid, cluster))


@pytest.mark.parametrize("attribute", ["", '"amdgpu-cluster-dims"="0,0,0"'])
def test_ids_without_a_cluster(attribute: str) -> None:
    """The code asks the hardware, or knows that there is none."""
    code, grid = compiled(ids(attribute)), (3, 2, 2)
    assert code.kernels["k"].cluster is None
    out = np.full((12, len(IDS)), 99, np.uint32)
    launch(code, [out, np.int32(3), np.int32(2)], grid, 32)
    np.testing.assert_array_equal(out, expected(grid, (1, 1, 1)))


@pytest.mark.parametrize("attribute", ["", '"amdgpu-cluster-dims"="1024,1024,1024"'])
def test_the_launch_says_the_cluster(attribute: str) -> None:
    code, grid, cluster = compiled(ids(attribute)), (4, 2, 2), (2, 1, 2)
    out = np.full((16, len(IDS)), 99, np.uint32)
    launch(code, [out, np.int32(4), np.int32(2)], grid, 32, cluster=cluster)
    np.testing.assert_array_equal(out, expected(grid, cluster))


EXCHANGE = """target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.cluster.id.x()
declare i32 @llvm.amdgcn.cluster.workgroup.flat.id()
declare i32 @llvm.amdgcn.cluster.workgroup.max.flat.id()
declare void @llvm.amdgcn.s.cluster.barrier()
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %c = call i32 @llvm.amdgcn.cluster.id.x()
  %r = call i32 @llvm.amdgcn.cluster.workgroup.flat.id()
  %most = call i32 @llvm.amdgcn.cluster.workgroup.max.flat.id()
  %size = add i32 %most, 1
  %first = mul i32 %c, %size
  %mine = add i32 %first, %r
  %at0 = mul i32 %mine, {items}
  %at = add i32 %at0, %t
  %own = getelementptr i32, ptr addrspace(1) %a, i32 %at
  br label %loop
loop:
  %n = phi i32 [ 0, %entry ], [ %n1, %loop ]
  %old = load i32, ptr addrspace(1) %own
  %r1 = add i32 %r, 1
  %last = icmp eq i32 %r, %most
  %next = select i1 %last, i32 0, i32 %r1
  %peer = add i32 %first, %next
  %pat0 = mul i32 %peer, {items}
  %flip = sub i32 {items}, %t
  %flip1 = sub i32 %flip, 1
  %pat = add i32 %pat0, %flip1
  %from = getelementptr i32, ptr addrspace(1) %a, i32 %pat
  fence syncscope("cluster") release
  call void @llvm.amdgcn.s.cluster.barrier()
  fence syncscope("cluster") acquire
  %got = load i32, ptr addrspace(1) %from
  fence syncscope("cluster") release
  call void @llvm.amdgcn.s.cluster.barrier()
  fence syncscope("cluster") acquire
  %three = mul i32 %got, 3
  %sum = add i32 %three, %old
  store i32 %sum, ptr addrspace(1) %own
  %n1 = add i32 %n, 1
  %done = icmp eq i32 %n1, 5
  br i1 %done, label %end, label %loop
end:
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="{items},{items}" {dims} }}
"""


@pytest.mark.parametrize("strict", [False, True], ids=["plain", "strict"])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize(("size", "items"), [(2, 32), (4, 96), (16, 64), (3, 256)])
def test_workgroups_of_a_cluster_wait_for_each_other(size, items, level, strict) -> None:
    """Each adds what its neighbour had before this turn, five times."""
    clusters = 3
    a = np.random.default_rng(size).integers(0, 1 << 31, (clusters, size, items)).astype(np.uint32)
    values = a.copy()
    dims = f'"amdgpu-cluster-dims"="{size},1,1"'
    code = compiled(EXCHANGE.format(dims=dims, items=items), level)
    launch(code, [values, np.zeros(1, np.uint32)], clusters * size, items, strict=strict)
    for _ in range(5):
        a = a + 3 * np.roll(a, -1, 1)[:, :, ::-1]
    np.testing.assert_array_equal(values, a)


# One lane of each workgroup counts at word 0.
COUNT = """  s_mov_b32 exec_lo, 1
  v_mov_b32 v12, 1
  global_atomic_add_u32 v10, v12, s[4:5] scope:SCOPE_DEV
  s_wait_storecnt 0x0
"""
# Stores word 0 at the word of the workgroup's number in the cluster, from word 1 on.
LOOK = """  global_load_b32 v13, v10, s[4:5] scope:SCOPE_DEV
  s_wait_loadcnt 0x0
  s_lshl_b32 s20, s7, 2
  v_mov_b32 v11, s20
  global_store_b32 v11, v13, s[4:5] offset:4
"""
MEET = "  s_barrier_signal -3\n  s_barrier_wait -3\n"


@pytest.mark.parametrize("size", [2, 5, 16])
def test_all_workgroups_come_before_one_goes_on(size: int) -> None:
    words = run(COUNT + MEET + LOOK, size, size)
    assert words[: 1 + size].tolist() == [size] * (1 + size)


def test_they_meet_again() -> None:
    """Also the workgroup that came last, whose first wait did not hold it up."""
    words = run(COUNT + MEET + COUNT + MEET + LOOK, 3, 3)
    assert words[:4].tolist() == [6] * 4


def test_without_the_barrier_they_do_not_wait() -> None:
    assert run(COUNT + LOOK, 2, 2)[:3].tolist() == [2, 1, 2]


def test_work_between_signal_and_wait_is_not_held_up() -> None:
    """The last workgroup signals late; the first stores what it sees before it waits."""
    body = COUNT + "  s_barrier_signal -3\n" + LOOK + "  s_barrier_wait -3\n"
    assert run(body, 4, 4)[:5].tolist() == [4, 1, 2, 3, 4]


def test_the_first_signal_of_the_cluster_is_told() -> None:
    body = """  s_mov_b32 exec_lo, 1
  s_barrier_signal_isfirst -3
  s_cselect_b32 s9, 7, 3
  s_barrier_wait -3
  s_barrier_signal_isfirst -3
  s_cselect_b32 s10, 16, 32
  s_barrier_wait -3
  s_add_co_u32 s9, s9, s10
  s_lshl_b32 s20, s7, 2
  v_mov_b32 v11, s20
  v_mov_b32 v13, s9
  global_store_b32 v11, v13, s[4:5]
"""
    words = run(body, 3, 3)[:3].tolist()
    # Exactly one is first each time: the sums of 7 or 3 and of 16 or 32.
    assert sorted(word & 15 for word in words) == [3, 3, 7]
    assert sorted(word & 48 for word in words) == [16, 32, 32]


def test_clusters_do_not_wait_for_other_clusters() -> None:
    """Only the first of three clusters meets."""
    body = f"""  s_cmp_lg_u32 ttmp9, 0
  s_cbranch_scc1 done
{MEET}done:
{COUNT}"""
    assert run(body, 2, 6)[0] == 6


@pytest.mark.parametrize("strict", [False, True], ids=["plain", "strict"])
def test_every_wave_waits_and_one_signals(strict: bool) -> None:
    body = f"""  s_barrier_signal -1
  s_barrier_wait -1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 waits
  s_barrier_signal -3
waits:
  s_barrier_wait -3
{COUNT}"""
    assert run(body, 2, 4, waves=4, strict=strict)[0] == 16


@pytest.mark.parametrize("signals", [("", "_isfirst"), ("_isfirst", "")])
def test_a_wave_that_waits_late(signals: tuple[str, str]) -> None:
    """The second waves wait for the first time when the barrier was complete twice: by a signal of
    workgroup 1, then by one of workgroup 0, which sleeps before it."""
    zero, one = signals
    body = f"""  s_cmp_eq_u32 s6, 1
  s_cbranch_scc1 late
  s_cmp_eq_u32 s7, 1
  s_cbranch_scc1 one
  s_barrier_signal{zero} -3
  s_barrier_wait -3
  s_sleep 1
  s_sleep 1
  s_sleep 1
  s_barrier_signal{zero} -3
  s_branch both
one:
  s_barrier_signal{one} -3
  s_barrier_wait -3
  s_barrier_signal{one} -3
both:
  s_barrier_wait -3
late:
  s_barrier_signal -1
  s_barrier_wait -1
  s_barrier_wait -3
{COUNT}"""
    with pytest.raises(Fault, match="deadlock: no workgroup"):  # the first waves wait once more
        run(body, 2, 2, waves=2)
    body = body.replace("late:", "  s_barrier_signal -1\n  s_barrier_wait -1\n  s_endpgm\nlate:")
    assert run(body, 2, 2, waves=2)[0] == 2


def test_a_workgroup_that_ends_without_a_signal() -> None:
    body = f"""  s_cmp_eq_u32 s7, 1
  s_cbranch_scc1 done
{MEET}done:"""
    with pytest.raises(Fault, match="deadlock: no workgroup of the cluster goes on") as caught:
        run(body, 3, 3)
    assert "s_barrier_wait" in str(caught.value)
    assert "workgroup (0, 0, 0) wave 0" in str(caught.value)


def test_a_wait_without_any_signal() -> None:
    with pytest.raises(Fault, match="deadlock: no workgroup of the cluster goes on"):
        run("  s_barrier_wait -3", 2, 2)


def test_an_endless_loop_in_a_cluster_is_a_timeout() -> None:
    with pytest.raises(Fault, match="timeout"):
        run(f"begin:\n{MEET}  s_branch begin", 2, 2)
    with pytest.raises(Fault, match="timeout"):
        run(f"{MEET}begin:\n  s_branch begin", 2, 2)


def test_outside_of_a_cluster_its_barrier_has_no_effect() -> None:
    assert run(COUNT + "  s_barrier_wait -3\n" + MEET, 1, 3)[0] == 3


def test_launches_that_are_refused() -> None:
    with pytest.raises(UsageError, match="a grid of 3×1×1 workgroups is not made of whole clus"):
        run(COUNT, 2, 3)
    with pytest.raises(InputError, match="a cluster of 17×1×1 workgroups can't be launched"):
        run(COUNT, 17, 17)
    with pytest.raises(InputError, match="was compiled for clusters of 2×1×1 workgroups, not of 4"):
        run(COUNT, 2, 4, cluster=(4, 1, 1))
    code = compiled(
        "define amdgpu_kernel void @k() { ret void }".replace(
            "define", 'target triple = "amdgcn-amd-amdhsa"\ndefine'
        ),
        target="gfx1201",
    )
    with pytest.raises(InputError, match="gfx1201 has no clusters of workgroups"):
        launch(code, [], 4, 32, cluster=(2, 1, 1))


@pytest.mark.parametrize("number", ["-2", "-4"])
def test_barriers_of_trap_handlers_are_refused(number: str) -> None:
    with pytest.raises(FlyError, match="barrier"):
        run(f"  s_barrier_signal {number}")


def test_inspection_tells_the_cluster() -> None:
    kernel = compiled(ids('"amdgpu-cluster-dims"="2,2,1"')).kernels["k"]
    (block,) = [told for label, told in kernel.details() if label == "block"]
    assert block.endswith(" work items in waves of 32, in clusters of 2×2×1 workgroups")
