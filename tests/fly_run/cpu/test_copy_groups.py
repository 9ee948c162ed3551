"""Groups of stores by TMA and of copies by cp.async: a copy is made when its thread waits for its
group, by what the PTX ISA says, and a wait for too few groups has other results."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_support import kernel, run
from fly_cpu import tensor_maps
from fly_host.tiles import Tile

TILE = "@tile = internal addrspace(3) global [2 x [32 x i32]] undef, align 1024\n"
SYNC = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
FENCE = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n"


def thirty_two(count: int) -> np.ndarray:
    """`count` rows of 32 words, at a multiple of 16 bytes."""
    room = np.zeros(32 * count + 4, np.int32)
    first = -(room.ctypes.data // 4) % 4
    return room[first : first + 32 * count].reshape(count, 32)


# -- stores by TMA
def store(number: int, value: int, buffer: int) -> str:
    """Each thread puts a value into a buffer, and thread 0 stores it as a row of the tensor."""
    return f"""
  %at{number} = getelementptr [32 x i32], ptr addrspace(3) @tile, i32 {buffer}, i32 %tid
  %v{number} = add i32 %tid, {value}
  store i32 %v{number}, ptr addrspace(3) %at{number}
{FENCE}{SYNC}  br i1 %first, label %store{number}, label %stored{number}
store{number}:
  %s{number} = getelementptr [32 x i32], ptr addrspace(3) @tile, i32 {buffer}
  call void @llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3) %s{number}, ptr %map,
    i32 0, i32 {number}, i64 0, i1 false)
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  br label %stored{number}
stored{number}:
"""


def wait(name: str, groups: int, form: str = ".read") -> str:
    return f"""  br i1 %first, label %wait{name}, label %waited{name}
wait{name}:
  call void @llvm.nvvm.cp.async.bulk.wait.group{form}(i32 {groups})
  br label %waited{name}
waited{name}:
{SYNC}"""


def stored(*parts: str, rows: int = 3) -> list[int]:
    """The values of rows that a kernel stored, which are 0 where it stored nothing."""
    out = thirty_two(rows)
    found = Tile(out.ctypes.data, "i32", 4, (32, rows), (128,), (32, 1), 0)
    assert found.problem("A") is None
    encoded = np.frombuffer(tensor_maps.encoded(found), np.uint8).copy()
    head = """
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %tid, 0
  %map = addrspacecast ptr addrspace(1) %p1 to ptr
"""
    run(kernel(head + "".join(parts), 2, TILE), [out, encoded])
    lanes = np.arange(32)
    values = [int(row[0]) for row in out]
    assert all(
        (row == (value + lanes if value else 0)).all()
        for row, value in zip(out, values, strict=True)
    )
    return values


@pytest.mark.parametrize("form", ["", ".read"])
def test_a_buffer_that_is_free_again(form: str):
    one, two = store(0, 100, 0), store(1, 200, 0)
    assert stored(one, wait("a", 0, form), two) == [100, 200, 0]


def test_a_buffer_that_is_written_too_early():
    assert stored(store(0, 100, 0), store(1, 200, 0)) == [200, 200, 0]


def test_buffers_in_turn_wait_for_all_groups_but_the_last():
    parts = [store(0, 100, 0), store(1, 200, 1), wait("a", 1), store(2, 300, 0)]
    assert stored(*parts) == [100, 200, 300]


def test_a_wait_for_too_few_groups():
    """The third store goes through the buffer of the second one, which the wait leaves."""
    parts = [store(0, 100, 0), store(1, 200, 1), wait("a", 1), store(2, 300, 1)]
    assert stored(*parts) == [100, 300, 300]


def test_a_wait_by_another_thread_is_for_its_own_groups():
    other = wait("a", 0).replace("i1 %first", "i1 %last")
    last = "  %last = icmp eq i32 %tid, 31\n"
    assert stored(store(0, 100, 0), last, other, store(1, 200, 0)) == [200, 200, 0]


def test_a_store_that_no_group_has_is_not_waited_for():
    alone = store(0, 100, 0).replace("  call void @llvm.nvvm.cp.async.bulk.commit.group()\n", "")
    assert stored(alone, wait("a", 0), store(1, 200, 0)) == [200, 200, 0]


def test_more_stores_than_wait_at_once():
    parts = [part for n in range(300) for part in (store(n, n + 1, n % 2), wait(f"{n}", 1))]
    assert stored(*parts, rows=300) == list(range(1, 301))


# -- cp.async
def copy(number: int, size: int = 4) -> str:
    """Each thread copies a word, or two or four, of a row of p1 to a row of shared memory."""
    cached = "cg" if size == 16 else "ca"
    return f"""
  %f{number} = getelementptr [32 x i32], ptr addrspace(1) %p1, i32 {number}, i32 %word
  %t{number} = getelementptr [32 x i32], ptr addrspace(3) @tile, i32 {number}, i32 %word
  call void @llvm.nvvm.cp.async.{cached}.shared.global.{size}(ptr addrspace(3) %t{number},
    ptr addrspace(1) %f{number})
"""


COMMIT = "  call void @llvm.nvvm.cp.async.commit.group()\n"


def copied(*parts: str, words: int = 1) -> list[bool]:
    """Which rows of shared memory have come when a kernel of 32 / words threads ends."""
    given, out = thirty_two(2), thirty_two(2)
    given[:] = np.arange(1, 65).reshape(2, 32)
    ends = ""
    for row in range(2):
        for word in range(words):
            name = f"{row}.{word}"
            ends += f"""  %w{name} = add i32 %word, {word}
  %from{name} = getelementptr [32 x i32], ptr addrspace(3) @tile, i32 {row}, i32 %w{name}
  %value{name} = load i32, ptr addrspace(3) %from{name}
  %to{name} = getelementptr [32 x i32], ptr addrspace(1) %p0, i32 {row}, i32 %w{name}
  store i32 %value{name}, ptr addrspace(1) %to{name}
"""
    head = f"""
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %word = mul i32 %tid, {words}
"""
    run(kernel(head + "".join(parts) + SYNC + ends, 2, TILE), [out, given], block=32 // words)
    came = [bool((out[row] == given[row]).all()) for row in range(2)]
    assert all(came[row] or (out[row] == 0x7FF7BAD0).all() for row in range(2))
    return came


def wait_elements(groups: int) -> str:
    return f"  call void @llvm.nvvm.cp.async.wait.group(i32 {groups})\n"


@pytest.mark.parametrize("size", [4, 8, 16])
def test_copies_come_when_their_group_is_waited_for(size: int):
    parts = [copy(0, size), COMMIT, copy(1, size), COMMIT, wait_elements(0)]
    assert copied(*parts, words=size // 4) == [True, True]


def test_the_last_groups_may_be_late():
    parts = [copy(0), COMMIT, copy(1), COMMIT, wait_elements(1)]
    assert copied(*parts) == [True, False]


def test_copies_that_nothing_waits_for():
    assert copied(copy(0), COMMIT, copy(1), COMMIT) == [False, False]


def test_a_copy_that_no_group_has():
    assert copied(copy(0), COMMIT, copy(1), wait_elements(0)) == [True, False]


def test_more_copies_than_a_thread_has_at_once():
    """The first ones are made before; a group of them all is waited for as any other."""
    many = "".join(copy(0).replace("%f0", f"%f.{n}").replace("%t0", f"%t.{n}") for n in range(300))
    assert copied(many, COMMIT, copy(1), COMMIT, wait_elements(0)) == [True, True]
