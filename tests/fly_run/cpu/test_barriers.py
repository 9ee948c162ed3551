"""Barriers of a block, and what happens when threads do not reach them."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_support import INDEX, kernel, run
from fly_common.errors import Fault

SHARED = "@s = internal addrspace(3) global [256 x i32] undef, align 16\n"
OWN = "  %own = getelementptr i32, ptr addrspace(3) @s, i32 %tid\n"
ALL = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"


def test_barriers_in_a_loop():
    """Each round, a thread takes its neighbour's number: after n rounds all have rotated by n."""
    body = f"""{INDEX}{OWN}
  %next.up = add i32 %tid, 1
  %next = urem i32 %next.up, 200
  %other = getelementptr i32, ptr addrspace(3) @s, i32 %next
  store i32 %i.32, ptr addrspace(3) %own
  {ALL}
  br label %loop
loop:
  %n = phi i32 [ 0, %0 ], [ %n.next, %loop ]
  %x = load i32, ptr addrspace(3) %other
  {ALL}
  store i32 %x, ptr addrspace(3) %own
  {ALL}
  %n.next = add i32 %n, 1
  %more = icmp ult i32 %n.next, 37
  br i1 %more, label %loop, label %done
done:
  %y = load i32, ptr addrspace(3) %own
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %y, ptr addrspace(1) %at"""
    out = np.zeros((3, 200), np.int32)
    run(kernel(body, 1, SHARED), [out], 3, 200)
    assert (out == np.roll(np.arange(600).reshape(3, 200), -37, axis=1)).all()


def test_a_part_of_the_block_waits_for_another():
    """Warps 0 and 1 only arrive at barrier 1; warps 2 and 3 wait there for all four."""
    body = f"""{INDEX}{OWN}
  %producer = icmp ult i32 %tid, 64
  br i1 %producer, label %give, label %take
give:
  store i32 %i.32, ptr addrspace(3) %own
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 128)
  br label %end
take:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 128)
  %from = sub i32 %tid, 64
  %there = getelementptr i32, ptr addrspace(3) @s, i32 %from
  %x = load i32, ptr addrspace(3) %there
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %x, ptr addrspace(1) %at
  br label %end
end:
  call void @llvm.nvvm.barrier.cta.sync.all(i32 2)"""
    out = np.zeros((2, 128), np.int32)
    run(kernel(body, 1, SHARED), [out], 2, 128)
    assert (out[:, 64:] == np.arange(256).reshape(2, 128)[:, :64]).all()


def test_arrivals_count_once():
    """In each round one warp only arrives, after it has stored what the other one reads."""
    body = f"""{INDEX}
  br label %round
round:
  %n = phi i32 [ 0, %0 ], [ %n.next, %again ]
  %first = icmp ult i32 %tid, 32
  br i1 %first, label %take, label %give
take:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  %x = load i32, ptr addrspace(3) @s
  %row = mul i32 %n, 32
  %place = add i32 %row, %tid
  %at = getelementptr i32, ptr addrspace(1) %p0, i32 %place
  store i32 %x, ptr addrspace(1) %at
  br label %again
give:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 2, i32 32)
  store i32 %n, ptr addrspace(3) @s
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)
  br label %again
again:
  {ALL}
  %n.next = add i32 %n, 1
  %more = icmp ult i32 %n.next, 3
  br i1 %more, label %round, label %end
end:"""
    out = np.zeros((3, 32), np.int32)
    run(kernel(body, 1, SHARED), [out], 1, 64)
    assert (out == np.arange(3)[:, None]).all()


def test_reductions_by_barriers():
    body = f"""{INDEX}
  %low = urem i32 %tid, 3
  %third = icmp eq i32 %low, 0
  %n = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %third)
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 %third)
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %third)
  %every = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 true)
  %none = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 false)
  %a = select i1 %any, i32 1000, i32 0
  %b = select i1 %all, i32 2000, i32 0
  %c = select i1 %every, i32 4000, i32 0
  %d = select i1 %none, i32 8000, i32 0
  %e = add i32 %n, %a
  %f = add i32 %e, %b
  %g = add i32 %f, %c
  %h = add i32 %g, %d
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %h, ptr addrspace(1) %at"""
    out = np.zeros(100, np.int32)
    run(kernel(body, 1), [out], 1, 100)
    assert (out == 34 + 1000 + 4000).all()


def test_a_thread_waits_for_another_ones_store():
    """Thread 0 spins until the last thread of the block, of another warp, has stored."""
    body = f"""{INDEX}
  store i32 0, ptr addrspace(3) @s
  {ALL}
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %spin, label %other
spin:
  %x = load atomic volatile i32, ptr addrspace(3) @s acquire, align 4
  %there = icmp eq i32 %x, 99
  br i1 %there, label %seen, label %spin
seen:
  store i32 %x, ptr addrspace(1) %p0
  br label %end
other:
  %last = icmp eq i32 %tid, 99
  br i1 %last, label %tell, label %end
tell:
  store atomic i32 99, ptr addrspace(3) @s release, align 4
  br label %end
end:"""
    out = np.zeros(1, np.int32)
    run(kernel(body, 1, SHARED), [out], 1, 100)
    assert out[0] == 99


def test_warps_that_have_ended_do_not_count():
    body = f"""{INDEX}
  %some = icmp ult i32 %tid, 64
  br i1 %some, label %go, label %end
go:
  {ALL}
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 1, ptr addrspace(1) %at
  br label %end
end:"""
    out = np.zeros(128, np.int32)
    run(kernel(body, 1), [out], 1, 128)
    assert out.sum() == 64


def message(body: str, block: int = 128) -> str:
    with pytest.raises(Fault) as caught:
        run(kernel(INDEX + body, 0, SHARED), [], 1, block)
    return caught.value.message


def test_a_part_of_a_warp_executes_a_barrier():
    body = f"""
  %few = icmp ult i32 %tid, 40
  br i1 %few, label %go, label %end
go:
  {ALL}
  br label %end
end:"""
    assert message(body) == (
        "divergent barrier: not all threads of the warp execute it; kernel k"
        " 'barrier.cta.sync.aligned.all' block (0, 0, 0) thread (39, 0, 0)"
    )


def test_lanes_at_different_barriers():
    body = f"""
  %low = and i32 %tid, 1
  %odd = icmp ne i32 %low, 0
  br i1 %odd, label %then, label %else
then:
  {ALL}
  call void @llvm.nvvm.membar.cta()
  br label %end
else:
  {ALL}
  br label %end
end:"""
    assert message(body).startswith("divergent barrier: not all threads of the warp execute it;")


def test_a_barrier_that_too_few_threads_reach():
    body = """
  %few = icmp ult i32 %tid, 32
  br i1 %few, label %go, label %end
go:
  call void @llvm.nvvm.barrier.cta.sync.count(i32 3, i32 64)
  br label %end
end:"""
    assert message(body) == (
        "divergent barrier: not all threads reach barrier 3; 96 threads have ended; kernel k"
        " 'barrier.cta.sync.count' block (0, 0, 0) thread (0, 0, 0)"
    )


@pytest.mark.parametrize(("number", "count"), [(16, 64), (1, 33)])
def test_a_barrier_that_does_not_exist(number, count):
    body = f"  call void @llvm.nvvm.barrier.cta.sync.count(i32 %n, i32 {count})"
    found = message(f"  %n = or i32 {number}, 0\n{body}", 64)
    assert found.startswith(f"barrier {number} for {count} threads does not exist; kernel k")
