"""Operations of a warp, compared with what the PTX ISA says of each lane."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from cpu_support import INDEX, kernel, launch, load, run
from fly_common.errors import Fault

LANES = np.arange(32)
RNG = np.random.default_rng(5)
NOT_TAKEN = 0x7FF7BAD0  # what is read from a lane that did not take part


def shuffle(mode: str, values: np.ndarray, b: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    """PTX ISA, "shfl.sync": what each lane gets, and its predicate."""
    clamp, segment = c & 31, c >> 8 & 31
    out, good = [], []
    for lane in range(32):
        most = (lane & segment) | (clamp & ~segment)
        least = lane & segment
        j, fits = {
            "up": (lane - b, lane - b >= most),
            "down": (lane + b, lane + b <= most),
            "bfly": (lane ^ b, (lane ^ b) <= most),
            "idx": (least | (b & ~segment), (least | (b & ~segment)) <= most),
        }[mode]
        out.append(values[j if fits else lane])
        good.append(fits)
    return np.array(out), np.array(good)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(mode):
    """Every distance in every width, of i32 and f32, with the predicate."""
    body = f"""{INDEX}
  %x.at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %x = load i32, ptr addrspace(1) %x.at
  %f = bitcast i32 %x to float
  br label %loop
loop:
  %n = phi i64 [ 0, %0 ], [ %n.next, %loop ]
  %b.at = getelementptr i32, ptr addrspace(1) %p1, i64 %n
  %c.at = getelementptr i32, ptr addrspace(1) %p2, i64 %n
  %b = load i32, ptr addrspace(1) %b.at
  %c = load i32, ptr addrspace(1) %c.at
  %r = call i32 @llvm.nvvm.shfl.sync.{mode}.i32(i32 -1, i32 %x, i32 %b, i32 %c)
  %g.pair = call {{ float, i1 }} @llvm.nvvm.shfl.sync.{mode}.f32p(i32 -1, float %f, i32 %b, i32 %c)
  %g = extractvalue {{ float, i1 }} %g.pair, 0
  %p = extractvalue {{ float, i1 }} %g.pair, 1
  %p.32 = zext i1 %p to i32
  %row = mul i64 %n, 32
  %place = add i64 %row, %i
  %r.at = getelementptr i32, ptr addrspace(1) %p3, i64 %place
  %g.at = getelementptr float, ptr addrspace(1) %p4, i64 %place
  %p.at = getelementptr i32, ptr addrspace(1) %p5, i64 %place
  store i32 %r, ptr addrspace(1) %r.at
  store float %g, ptr addrspace(1) %g.at
  store i32 %p.32, ptr addrspace(1) %p.at
  %n.next = add i64 %n, 1
  %more = icmp ult i64 %n.next, ROWS
  br i1 %more, label %loop, label %done
done:"""
    clamps = [(32 - width) << 8 | (0 if mode == "up" else 31) for width in (2, 4, 8, 16, 32)]
    clamps += [0x0F0B, 0x1005, 31, 7]
    pairs = list(itertools.product(range(32), clamps))
    x = RNG.standard_normal(32).astype(np.float32)
    b, c = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    outs = [np.zeros((len(pairs), 32), kind) for kind in (np.int32, np.float32, np.int32)]
    text = kernel(body.replace("ROWS", str(len(pairs))), 6)
    run(text, [x, b, c, *outs])
    for n, (distance, clamp) in enumerate(pairs):
        values, good = shuffle(mode, x, distance, clamp)
        np.testing.assert_array_equal(outs[0][n].view(np.float32), values, err_msg=str(pairs[n]))
        np.testing.assert_array_equal(outs[1][n], values)
        np.testing.assert_array_equal(outs[2][n], good)


REDUCTIONS = {
    "add": lambda v: np.add.reduce(v.view(np.uint32)),
    "min": lambda v: np.minimum.reduce(v).view(np.uint32),
    "max": lambda v: np.maximum.reduce(v).view(np.uint32),
    "umin": lambda v: np.minimum.reduce(v.view(np.uint32)),
    "umax": lambda v: np.maximum.reduce(v.view(np.uint32)),
    "and": lambda v: np.bitwise_and.reduce(v.view(np.uint32)),
    "or": lambda v: np.bitwise_or.reduce(v.view(np.uint32)),
    "xor": lambda v: np.bitwise_xor.reduce(v.view(np.uint32)),
}
OPERATIONS = {
    **{
        f"redux.{name}": f"%v = call i32 @llvm.nvvm.redux.sync.{name}(i32 %x, i32 %mask)"
        for name in REDUCTIONS
    },
    "ballot": "%v = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %odd)",
    "any": "%w = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %odd)",
    "all": "%w = call i1 @llvm.nvvm.vote.all.sync(i32 %mask, i1 %odd)",
    "uni": "%w = call i1 @llvm.nvvm.vote.uni.sync(i32 %mask, i1 %odd)",
    "match.any": "%v = call i32 @llvm.nvvm.match.any.sync.i32(i32 %mask, i32 %x)",
    "match.any.64": "%v = call i32 @llvm.nvvm.match.any.sync.i64(i32 %mask, i64 %x.64)",
    "match.all": "%r = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 %mask, i32 %x)",
    "match.all.64": "%r = call { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32 %mask, i64 %x.64)",
    "elect": "%r = call { i32, i1 } @llvm.nvvm.elect.sync(i32 %mask)",
    "syncwarp": "call void @llvm.nvvm.bar.warp.sync(i32 %mask)\n%v = add i32 %x, 0",
}


def in_groups() -> str:
    """Each lane executes each operation with the mask of its group."""
    lines = [
        INDEX,
        "%x.at = getelementptr i32, ptr addrspace(1) %p0, i64 %i",
        "%x = load i32, ptr addrspace(1) %x.at",
        "%x.up = sext i32 %x to i64",
        "%x.64 = mul i64 %x.up, 4294967297",
        "%low = and i32 %x, 1",
        "%odd = icmp ne i32 %low, 0",
        "%mask.at = getelementptr i32, ptr addrspace(1) %p1, i64 %i",
        "%mask = load i32, ptr addrspace(1) %mask.at",
    ]
    for n, operation in enumerate(OPERATIONS.values()):
        text = operation
        if "%w =" in text:
            text += "\n%v = zext i1 %w to i32"
        if "%r =" in text:
            text += (
                "\n%r0 = extractvalue { i32, i1 } %r, 0\n%r1 = extractvalue { i32, i1 } %r, 1"
                "\n%r2 = zext i1 %r1 to i32\n%r3 = mul i32 %r2, 1000003\n%v = add i32 %r0, %r3"
            )
        text = re.sub(r"%(v|w|r[0-3]?)\b", rf"%\1.{n}", text)
        lines += [
            text,
            f"%at.{n} = getelementptr [{len(OPERATIONS)} x i32], ptr addrspace(1) %p2, i64 %i,"
            f" i64 {n}",
            f"store i32 %v.{n}, ptr addrspace(1) %at.{n}",
        ]
    return kernel("\n".join(lines), 3)


def expected(name: str, x: np.ndarray, members: np.ndarray, lane: int) -> int:
    values = x[members]
    bits = 1 << members.astype(np.int64)
    odd = (values & 1).astype(bool)
    same = values == x[lane]
    if name.startswith("redux."):
        return int(REDUCTIONS[name.removeprefix("redux.")](values))
    if name.startswith("match.any"):
        return int(bits[same].sum())
    if name.startswith("match.all"):
        return int(bits.sum()) + 1000003 if same.all() else 0
    return {
        "ballot": int(bits[odd].sum()),
        "any": int(odd.any()),
        "all": int(odd.all()),
        "uni": int(odd.all() or not odd.any()),
        "elect": int(members.min()) + (1000003 if lane == members.min() else 0),
        "syncwarp": int(x[lane]) & 0xFFFFFFFF,
    }[name]


def test_operations_in_groups_of_lanes():
    device, module = load(in_groups())
    # The last block's second warp has 13 lanes; each case has groups of its own.
    for case, block in enumerate((32, 45, 64, 32, 32)):
        x = RNG.integers(-4, 4, 2 * block).astype(np.int32)
        x[:32] = (7, -1, RNG.integers(0, 2), 3, 2**31 - 1)[case]
        groups = RNG.integers(0, (1, 3, 5, 2, 32)[case], 2 * block)
        mask, members = np.zeros(2 * block, np.int64), {}
        for start in range(0, 2 * block, block):
            for first in range(start, start + block, 32):
                lanes = np.arange(first, min(first + 32, start + block))
                for i in lanes:
                    members[i] = lanes[groups[lanes] == groups[i]] - first, first
                    mask[i] = (1 << members[i][0].astype(np.int64)).sum()
                    if case == 0:
                        mask[i] = 0xFFFFFFFF
        out = np.zeros((2 * block, len(OPERATIONS)), np.int32)
        launch(device, module, [x, mask.astype(np.uint32), out], 2, block)
        for i, (own, first) in members.items():
            for n, name in enumerate(OPERATIONS):
                wanted = expected(name, x[first : first + 32], own, i - first)
                assert int(out[i, n]) & 0xFFFFFFFF == wanted & 0xFFFFFFFF, (case, i, name)


def test_lanes_that_ended_do_not_take_part():
    """Odd lanes return first. A vote lacks them; a shuffle from one gives a pattern."""
    body = f"""{INDEX}
  %low = and i32 %tid, 1
  %odd = icmp ne i32 %low, 0
  br i1 %odd, label %end, label %go
go:
  %v = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 true)
  %s = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 5, i32 1, i32 31)
  %a = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %b = getelementptr i32, ptr addrspace(1) %p1, i64 %i
  %all = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 true)
  %set = select i1 %all, i32 %v, i32 0
  store i32 %set, ptr addrspace(1) %a
  store i32 %s, ptr addrspace(1) %b
  br label %end
end:"""
    votes, shuffled = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    run(kernel(body, 2), [votes, shuffled])
    assert (votes[::2] == 0x55555555).all()
    assert (shuffled[::2] == NOT_TAKEN).all()
    assert not votes[1::2].any()


def test_results_are_those_of_the_operation_when_lanes_end_behind_it():
    """Lanes that took part end at once; later lanes still see what they gave."""
    body = f"""{INDEX}
  %low = and i32 %tid, 1
  %odd = icmp ne i32 %low, 0
  %v = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)
  %s = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %tid, i32 3, i32 31)
  %sum = add i32 %v, %s
  %a = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %sum, ptr addrspace(1) %a"""
    out = np.zeros(64, np.uint32)
    run(kernel(body, 1), [out], 1, 64)
    assert (out == np.repeat([0xAAAAAAAA + 3, 0xAAAAAAAA + 35], 32)).all()


def test_active_lanes_are_those_of_the_branch():
    body = f"""{INDEX}
  %few = icmp ult i32 %tid, 5
  br i1 %few, label %then, label %else
then:
  %a = call i32 @llvm.nvvm.activemask()
  br label %end
else:
  %b = call i32 @llvm.nvvm.activemask()
  br label %end
end:
  %m = phi i32 [ %a, %then ], [ %b, %else ]
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %m, ptr addrspace(1) %at"""
    out = np.zeros(40, np.uint32)
    run(kernel(body, 1), [out], 1, 40)
    assert out.tolist() == [31] * 5 + [0xFFFFFFE0] * 27 + [0xFF] * 8


def test_active_lanes_are_waited_for():
    """Lanes that come from an operation of theirs join those that ask already."""
    body = f"""{INDEX}
  %few = icmp ult i32 %tid, 5
  br i1 %few, label %ask, label %first
first:
  call void @llvm.nvvm.bar.warp.sync(i32 -32)
  br label %ask
ask:
  %m = call i32 @llvm.nvvm.activemask()
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  store i32 %m, ptr addrspace(1) %at"""
    out = np.zeros(32, np.uint32)
    run(kernel(body, 1), [out])
    assert (out == 0xFFFFFFFF).all()


def test_a_lane_outside_of_its_mask():
    body = f"{INDEX}\n  %v = call i32 @llvm.nvvm.vote.ballot.sync(i32 255, i1 true)\n"
    text = kernel(body + "  store i32 %v, ptr addrspace(1) %p0", 1)
    with pytest.raises(Fault) as caught:
        run(text, [np.zeros(1, np.int32)], (1, 2, 1))
    assert caught.value.message == (
        "the thread is not in the mask 0xff of an operation of its warp; kernel k"
        " 'vote.ballot.sync' block (0, 0, 0) thread (8, 0, 0)"
    )


def test_lanes_that_wait_at_different_operations():
    body = f"""{INDEX}
  %few = icmp ult i32 %tid, 5
  br i1 %few, label %then, label %else
then:
  %a = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 true)
  br label %end
else:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %end
end:"""
    with pytest.raises(Fault) as caught:
        run(kernel(body, 0), [], 1, 32)
    assert caught.value.message.startswith(
        "not all lanes of the mask 0xffffffff reach the operation; kernel k"
    )
