"""Objects that hold a kernel's state, to which helpers assign in dynamic branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fly_common.errors import InputError

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx


@pytest.fixture(autouse=True)
def target(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")


class Context:
    """State as FlyDSL's attention kernels keep it: helpers copy it, and find the first one."""

    def __init__(self, lane: Any):
        self.origin = self
        self.lane = lane
        self.total = lane * 1000

    def find_row(self) -> None:
        self.row = self.lane * 2
        self.rows = (self.row, self.row + 1)

    def replace_origin(self) -> None:
        self.origin = self.lane


def run(use: Any) -> Any:
    """What `use(Out, context)` has stored for 64 lanes."""

    @flyc.kernel
    def kernel(Out: fx.Tensor):
        use(Out, Context(fx.thread_idx.x))

    @flyc.jit
    def launch(Out: fx.Tensor):
        kernel(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    out = np.full(64, -1, np.int32)
    launch(out)
    return out


def test_an_attribute_of_one_side_is_used_there():
    def use(Out, context):
        if context.lane < 20:
            context.find_row()
            Out[context.lane] = context.row + context.rows[1] + context.origin.lane

    lanes = np.arange(64)
    np.testing.assert_array_equal(run(use), np.where(lanes < 20, 5 * lanes + 1, -1))


def test_an_attribute_from_before_is_merged():
    def use(Out, context):
        if context.lane < 20:
            context.total = context.total + context.lane
        Out[context.lane] = context.total

    lanes = np.arange(64)
    np.testing.assert_array_equal(run(use), 1000 * lanes + np.where(lanes < 20, lanes, 0))


def test_a_loop_changes_an_object_that_holds_itself():
    def use(Out, context):
        for step in range(context.lane):
            context.total = context.total + step
        Out[context.lane] = context.origin.total

    lanes = np.arange(64)
    np.testing.assert_array_equal(run(use), 1000 * lanes + lanes * (lanes - 1) // 2)


def test_behind_the_branch_an_attribute_of_one_side_is_none():
    def use(Out, context):
        if context.lane < 20:
            context.find_row()
        Out[context.lane] = context.row

    with pytest.raises(AttributeError, match="row"):
        run(use)


def test_a_constant_of_one_side_is_refused():
    def use(Out, context):
        if context.lane < 20:
            context.scale = 3
        Out[context.lane] = context.scale

    with pytest.raises(InputError, match=r"context\.scale` is the Python int 3 on one side"):
        run(use)


def test_the_attribute_by_which_an_object_holds_itself_is_refused():
    def by_helper(Out, context):
        if context.lane < 20:
            context.replace_origin()
        Out[context.lane] = context.lane

    def by_statement(Out, context):
        if context.lane < 20:
            context.origin = context.lane
        Out[context.lane] = context.lane

    with pytest.raises(InputError, match="modifies a Python Context created outside"):
        run(by_helper)
    with pytest.raises(InputError, match=r"`context\.origin` is a dynamic i32 on one side"):
        run(by_statement)
