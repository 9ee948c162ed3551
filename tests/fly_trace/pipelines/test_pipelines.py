"""`fx.pipeline` and `fx.warp_group`: what is refused, and what a role's variables are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from trace_helpers import refusal, trace_source

SOURCE = """\
import fly
import fly.expr as fx

TILE = (fx.Float16, (64, 64))

@fly.kernel
def kernel(A, n: fx.Int32):
    def load(slot, step):
        slot.copy(a=(A, 0, step * 64))

{body}

@fly.jit
def entry(A: fx.Tensor[fx.Float16, "m", "n"], n: fx.Int32):
    kernel({given}, n).launch(grid=1, block={block})
"""
RING = "ring = fx.pipeline(3, consumers=128, a=TILE)"


def source(body: str, block: str = "fx.pipeline_threads(128)", given: str = "A") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return SOURCE.format(body=lines, block=block, given=given)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("fx.pipeline(1, a=TILE)", "fx.pipeline needs 2 stages at least, not 1"),
        ("fx.pipeline(n, a=TILE)", "the stages of fx.pipeline must be a number known while"),
        ("fx.pipeline(3)", "fx.pipeline needs a buffer"),
        ("with fx.warp_group(1):\n    pass", "a block of 128 threads has no warp group 1"),
        ("fx.pipeline(3, a=64)", "takes an element type and the rows and columns of a tile"),
        ("fx.pipeline(3, a=(fx.Float16, (64, 4)))", "no whole groups of 16 bytes"),
        ("fx.pipeline(3, stage=TILE)", "a buffer can't be called stage"),
        ("fx.pipeline(3, consumers=64, a=TILE)", "or of 128 more, which copy; the block has 128"),
        (f"{RING}\nring.fill(0, n, 3)", "takes a function of a slot and a step"),
        (f"{RING}\nring.fill(0, n, load)\nring.wait().b", "the ring has no buffer b: it has a"),
        (f"{RING}\nslot = ring.wait()", "ring.wait without ring.fill: nothing fills the ring"),
        (f"{RING}\nring.acquire()", "use ring.fill(first, last, load), which is for all blocks"),
        (f"{RING}\nring.release(3)", "takes the slot that ring.wait gave, not the Python int 3"),
        (
            f"{RING}\nring.fill(0, n, lambda slot, step: slot.copy(a=A))",
            "takes a tensor and the tile's first coordinates",
        ),
        (
            f"{RING}\nring.fill(0, n, lambda slot, step: slot.copy(a=(A, step)))",
            "f16[?,?] has 2, not 1",
        ),
        (
            f"{RING}\nwith ring.producer_warps():\n    for i in range(n):\n"
            "        ring.fill(0, n, load)\nslot = ring.wait()",
            "ring.fill was called in a loop or branch that has ended",
        ),
        (
            f"{RING}\nrow = n\nring.fill(0, n, lambda slot, step: slot.copy(a=(A, row, step)))\n"
            "row = n + 1\nslot = ring.wait()",
            "uses `row`, which has changed since ring.fill",
        ),
        ("with fx.warp_group(0), fx.fastmath('contract'):\n    pass", "something else in the same"),
        ("role = fx.warp_group(0)\nwith role:\n    pass", "entered by the call itself"),
        ("with fx.warp_group(9):\n    pass", "a block has warp groups 0 to 7"),
        ("with fx.warp_group(n):\n    pass", "takes a number or a range of numbers"),
        (
            "class Other:\n    def warp_group(self):\n        return 3\n"
            "with Other().warp_group():\n    pass",
            "give a context manager of your own another name",
        ),
        (
            "with fx.warp_group(0) as own:\n    own.barrier()",
            "has no barrier for a part of a block",
        ),
    ],
)
def test_refused_on_amd(body, message, tmp_path):
    assert message in refusal(source(body), tmp_path, on="gfx942")


@pytest.mark.parametrize(
    ("body", "block", "given", "message"),
    [
        (f"{RING}\nring.fill(0, n, load)", "256", "A", "takes what fx.tile_source makes of"),
        (f"{RING}\nring.fill(0, n, load)", "128", "fx.tile_source(A, TILE)", "takes the tensor it"),
        ("pass", "128", "fx.tile_source(A, 64)", "takes an element type and the rows and columns"),
    ],
)
def test_refused_on_hopper(body, block, given, message, tmp_path):
    assert message in refusal(source(body, block, given), tmp_path, on="sm_90a")


@pytest.mark.parametrize("body", [RING, "with fx.warp_group(0):\n    pass"])
def test_blocks_of_two_dimensions_are_refused(body, tmp_path):
    text = refusal(source(body, "(64, 2)"), tmp_path, on="gfx942")
    assert "is for blocks of one dimension, not of (64, 2, 1)" in text
    assert "launch with block=128" in text


def test_a_warp_group_that_copies_needs_tma(tmp_path):
    text = refusal(source(RING, "256"), tmp_path, on="sm_80")
    assert "sm_80 has no TMA" in text


def test_a_block_that_copies_is_larger_on_hopper_only(tmp_path):
    for target, threads in (("sm_90a", 256), ("sm_80", 128), ("gfx942", 128)):
        assert f"known_block_size = array<i32: {threads}" in trace_source(
            source("pass"), tmp_path, on=target
        )


def test_a_role_is_an_if_for_its_variables(tmp_path):
    body = """\
x = n
with fx.warp_group(range(1, 3), registers=80) as own:
    x = own.index + own.thread
fx.printf("{}", x)"""
    for target in ("gfx942", "sm_90a"):
        text = trace_source(source(body, "384"), tmp_path, on=target)
        assert "scf.if" in text
        assert text.count("setmaxnreg.dec") == (target == "sm_90a")
    lost = "with fx.warp_group(0):\n    y = n\nfx.printf('{}', y)"
    assert "`y` is assigned where the dynamic `if`" in refusal(source(lost), tmp_path, on="gfx942")
