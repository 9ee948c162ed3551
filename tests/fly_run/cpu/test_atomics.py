"""Atomic operations from many threads."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_support import INDEX, kernel, run

BLOCKS, THREADS = 40, 96
COUNT = BLOCKS * THREADS
NUMBERS = np.arange(COUNT)


@pytest.mark.parametrize("order", ["monotonic", "acquire", "release", "acq_rel", "seq_cst"])
def test_integers(order):
    updates = ("add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "uinc_wrap")
    lines = [INDEX, "  %v = xor i32 %i.32, 21"]
    for n, name in enumerate(updates):
        lines += [
            f"  %at{n} = getelementptr i32, ptr addrspace(1) %p0, i32 {n}",
            f"  %r{n} = atomicrmw {name} ptr addrspace(1) %at{n}, i32 %v"
            f' syncscope("device") {order}',
        ]
    found = np.full(len(updates), 1000, np.int32)
    run(kernel("\n".join(lines), 1), [found], BLOCKS, THREADS)
    v = NUMBERS ^ 21
    expected = [1000 + v.sum(), 1000 - v.sum(), 0, 1000 | np.bitwise_or.reduce(v)]
    expected += [1000 ^ np.bitwise_xor.reduce(v), v.max(), 0, v.max(), 0]
    assert found[:-1].tolist() == expected
    counter = 1000
    for value in v.tolist():
        counter = 0 if counter >= value else counter + 1
    assert found[-1] == counter  # blocks run in order, threads of a block too


@pytest.mark.parametrize(("kind", "dtype"), [("half", "f2"), ("float", "f4"), ("double", "f8")])
def test_floats(kind, dtype):
    body = f"""{INDEX}
  %low = and i32 %i.32, 3
  %v = uitofp i32 %low to {kind}
  %r = atomicrmw fadd ptr addrspace(1) %p0, {kind} %v monotonic
  %m = atomicrmw fmax ptr addrspace(1) %p1, {kind} %v monotonic"""
    total, most = np.zeros(1, dtype), np.full(1, -5, dtype)
    run(kernel(body, 2), [total, most], 4, 64)
    assert total[0] == 384
    assert most[0] == 3


def test_bfloat():
    body = """
  %r = atomicrmw fadd ptr addrspace(1) %p0, bfloat 1.0 monotonic"""
    total = np.zeros(2, np.uint16)
    run(kernel(body, 1), [total], 1, 100)
    assert total.tolist() == [0x42C8, 0]  # 100


def test_results_are_all_different():
    """Each thread takes a ticket by exchange and compare."""
    body = f"""{INDEX}
  br label %try
try:
  %old = load atomic i32, ptr addrspace(1) %p0 monotonic, align 4
  %new = add i32 %old, 1
  %pair = cmpxchg ptr addrspace(1) %p0, i32 %old, i32 %new acq_rel monotonic
  %done = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %done, label %end, label %try
end:
  %at = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  store i32 %old, ptr addrspace(1) %at"""
    counter, tickets = np.zeros(1, np.int32), np.zeros(COUNT, np.int32)
    run(kernel(body, 2), [counter, tickets], BLOCKS, THREADS)
    assert counter[0] == COUNT
    assert sorted(tickets) == NUMBERS.tolist()


def test_updates_for_the_scope_of_the_system():
    """fly-opt-py writes these as inline assembly."""
    rows = [
        ("add.u32", "r", "i32", 3 * COUNT),
        ("max.s32", "r", "i32", 7),
        ("min.u32", "r", "i32", 3),
        ("exch.b32", "r", "i32", 3),
    ]
    lines = []
    for n, (name, letter, kind, _) in enumerate(rows):
        text = f"atom.relaxed.sys.global.{name} $0, [$1], $2;"
        constraint = f"={letter},l,{letter},~{{memory}}"
        lines.append(f"  %at{n} = getelementptr i32, ptr addrspace(1) %p0, i32 {n}")
        lines.append(
            f'  %r{n} = call {kind} asm sideeffect "{text}", "{constraint}"'
            f"(ptr addrspace(1) %at{n}, {kind} 3)"
        )
    found = np.array([0, 7, -1, 0], np.int32)
    run(kernel("\n".join(lines), 1), [found], BLOCKS, THREADS)
    assert found.tolist() == [row[3] for row in rows]
