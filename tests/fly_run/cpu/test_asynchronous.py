"""mbarriers and copies of tiles, by what the PTX ISA says, and what is found of wrong programs."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_support import kernel, run
from fly_common.errors import Fault
from fly_cpu import tensor_maps
from fly_host.tiles import Tile

BAR = "@bar = internal addrspace(3) global [2 x i64] undef, align 8\n"
TILE = "@tile = internal addrspace(3) global [512 x i32] undef, align 1024\n"
FIRST = """
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %tid, 0
"""
INIT = "call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 {count})"
ARRIVE = "call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) @bar, i32 1)"
SYNC = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"


def wait(parity: str, name: str) -> str:
    """A loop until the phase is over."""
    call = "@llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar,"
    return f"""  br label %{name}
{name}:
  %{name}.done = call i1 {call} i32 {parity})
  br i1 %{name}.done, label %{name}.end, label %{name}
{name}.end:
"""


def guarded(count: int, body: str) -> str:
    """Thread 0 initializes the mbarrier."""
    return f"""{FIRST}
  br i1 %first, label %init, label %ready
init:
  {INIT.format(count=count)}
  br label %ready
ready:
  {SYNC}
{body}"""


def test_phases_end_when_all_have_arrived():
    """Each thread of one warp arrives, and waits for the phase of each parity in turn."""
    body = guarded(
        32,
        f"""  %a = {ARRIVE}
{wait("0", "one")}
  %b = {ARRIVE}
{wait("1", "two")}
  %at = getelementptr i32, ptr addrspace(1) %p0, i32 %tid
  store i32 7, ptr addrspace(1) %at
""",
    )
    out = np.zeros(32, np.int32)
    run(kernel(body, 1, BAR), [out])
    assert (out == 7).all()


def test_a_fresh_mbarrier_counts_as_past_phase_1():
    out = np.zeros(32, np.int32)
    body = guarded(1, wait("1", "one") + "  store i32 1, ptr addrspace(1) %p0\n")
    run(kernel(body, 1, BAR), [out])
    assert out[0] == 1


def fault(body: str, count: int = 1) -> str:
    with pytest.raises(Fault) as caught:
        run(kernel(guarded(count, body), 1, BAR), [np.zeros(32, np.int32)])
    return caught.value.message


def test_a_missing_arrival_is_a_deadlock():
    found = fault(f"  %a = {ARRIVE}\n{wait('0', 'one')}", count=33)
    assert "deadlock: nothing can end the phase of parity 0 of this mbarrier" in found


def test_a_wrong_phase_is_a_deadlock():
    found = fault(f"  %a = {ARRIVE}\n{wait('1', 'one')}", count=32)
    # All have arrived: phase 0 is over, and nobody arrives for phase 1.
    assert "deadlock: nothing can end the phase of parity 1" in found


def test_more_arrivals_than_a_phase_waits_for():
    many = ARRIVE.replace("i32 1)", "i32 2)")
    assert "more arrivals than its phase waits for" in fault(f"  %a = {many}\n", count=31)


def test_an_mbarrier_that_is_not_initialized():
    with pytest.raises(Fault) as caught:
        run(kernel(f"  %a = {ARRIVE}", 1, BAR), [np.zeros(1, np.int32)])
    assert "it is not initialised" in caught.value.message


# -- tiles
LOAD = (
    "call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %to, ptr addrspace(3)"
    " @bar, ptr %map, i32 {x}, i32 {y}, i16 0, i64 0, i1 false, i1 false, i32 0)"
)
EXPECT = (
    "call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar,"
    " i32 {bytes})"
)


def tile(array: np.ndarray, box: tuple[int, int], swizzle: int = 0) -> np.ndarray:
    """A map of a matrix, as an array of bytes."""
    strides = (array.strides[0],)
    shape = array.shape[::-1]
    found = Tile(array.ctypes.data, "i32", 4, shape, strides, box, swizzle)
    assert found.problem("A") is None
    return np.frombuffer(tensor_maps.encoded(found), np.uint8).copy()


def loaded(array: np.ndarray, box, x: int, y: int, swizzle: int = 0, wait_first: bool = True):
    """What 512 words of shared memory hold after a copy, and the check of it."""
    nbytes = 4 * box[0] * box[1]
    copy = f"""  %map = addrspacecast ptr addrspace(1) %p1 to ptr
  %to = addrspacecast ptr addrspace(3) @tile to ptr addrspace(7)
  br i1 %first, label %copy, label %copied
copy:
  %e = {EXPECT.format(bytes=nbytes)}
  {LOAD.format(x=x, y=y)}
  br label %copied
copied:
{wait("0", "one") if wait_first else ""}
  br label %store
store:
  %n = phi i32 [ 0, %{"one.end" if wait_first else "copied"} ], [ %n.next, %store ]
  %from = getelementptr i32, ptr addrspace(3) @tile, i32 %n
  %v = load i32, ptr addrspace(3) %from
  %out = getelementptr i32, ptr addrspace(1) %p0, i32 %n
  store i32 %v, ptr addrspace(1) %out
  %n.next = add i32 %n, 1
  %more = icmp ult i32 %n.next, {512 if wait_first else 32}
  br i1 %more, label %store, label %done
done:
"""
    out = np.zeros(512, np.int32)
    text = kernel(guarded(1, copy), 3, BAR + TILE)
    run(text, [out, tile(array, box, swizzle), array])
    return out


def matrix(rows: int, columns: int) -> np.ndarray:
    room = np.zeros(rows * columns + 8, np.int32)
    first = -(room.ctypes.data // 4) % 4
    found = room[first : first + rows * columns].reshape(rows, columns)
    found[:] = np.arange(1, rows * columns + 1).reshape(rows, columns)
    return found


def test_a_tile_is_dense_and_zero_beyond_the_tensor():
    a = matrix(10, 20)
    out = loaded(a, (8, 4), 16, 8)
    expected = np.zeros((4, 8), np.int32)
    expected[:2, :4] = a[8:, 16:]
    assert (out[:32].reshape(4, 8) == expected).all()
    assert (out[32:] == 0x7FF7BAD0).all()


@pytest.mark.parametrize("row", [32, 64, 128])
def test_a_swizzle_permutes_groups_of_16_bytes(row: int):
    """PTX ISA, "Swizzling Modes": the bits 4 to 6 of the address by the bits 7 to 9, as many as the
    mode has."""
    width = row // 4
    a = matrix(16, width)
    out = loaded(a, (width, 16), 0, 0, row)
    for number, value in enumerate(a.reshape(-1)):
        address = 4 * number
        assert out[(address ^ (address >> 3 & (row - 1) & ~15)) // 4] == value


def test_a_tile_that_is_read_too_early_has_not_come():
    a = matrix(4, 8)
    assert (loaded(a, (8, 4), 0, 0, wait_first=False)[:32] == 0x7FF7BAD0).all()


def test_a_tensor_that_the_launch_does_not_have():
    a = matrix(4, 8)
    body = f"""  %map = addrspacecast ptr addrspace(1) %p1 to ptr
  %to = addrspacecast ptr addrspace(3) @tile to ptr addrspace(7)
  br i1 %first, label %copy, label %done
copy:
  %e = {EXPECT.format(bytes=128)}
  {LOAD.format(x=0, y=0)}
  br label %done
done:
"""
    with pytest.raises(Fault, match="memory fault: 4 bytes"):
        run(kernel(guarded(1, body), 2, BAR + TILE), [np.zeros(4, np.int32), tile(a, (8, 4))])


def test_bytes_that_are_no_map():
    body = f"""  %map = addrspacecast ptr addrspace(1) %p1 to ptr
  %to = addrspacecast ptr addrspace(3) @tile to ptr addrspace(7)
  br i1 %first, label %copy, label %done
copy:
  {LOAD.format(x=0, y=0)}
  br label %done
done:
"""
    with pytest.raises(Fault, match="there is no tensor map"):
        run(
            kernel(guarded(1, body), 2, BAR + TILE),
            [np.zeros(4, np.int32), np.zeros(128, np.uint8)],
        )


def test_tensors_without_a_map():
    a = matrix(4, 8)
    wrong = Tile(a.ctypes.data + 4, "i32", 4, (8, 4), (32,), (8, 4), 0)
    assert "no multiple of 16 bytes" in (wrong.problem("A") or "")
    wrong = Tile(a.ctypes.data, "i32", 4, (7, 4), (28,), (4, 4), 0)
    assert "a stride of A is 28 bytes" in (wrong.problem("A") or "")
    wrong = Tile(a.ctypes.data, "i32", 4, (8, 0), (32,), (8, 4), 0)
    assert "an extent of 0" in (wrong.problem("A") or "")
