"""MLIR's operations with regions, which a traced function fills at insertion points of its own."""

from __future__ import annotations

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl._mlir import ir
from fly.flydsl._mlir.dialects import arith, scf
from fly.flydsl.expr.typing import T


@pytest.fixture(autouse=True)
def target(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")


def launched(kernel, *given: np.ndarray) -> None:
    @flyc.jit
    def launch(A: fx.Tensor, Y: fx.Tensor):
        kernel(A, Y).launch(grid=(1, 1, 1), block=(64, 1, 1))

    launch(*given)


GIVEN = np.random.default_rng(1).standard_normal(64).astype(np.float32)


def test_a_branch_with_results():
    @flyc.kernel
    def kernel(A: fx.Tensor, Y: fx.Tensor):
        i = fx.thread_idx.x
        v = A[i]
        made = scf.IfOp((v > 0.0).ir_value(), [T.f32], has_else=True)
        with ir.InsertionPoint(made.then_block):
            scf.YieldOp([(v * 3.0).ir_value()])
        with ir.InsertionPoint(made.else_block):
            scf.YieldOp([(v - 1.0).ir_value()])
        only = scf.IfOp((i < 3).ir_value())
        with ir.InsertionPoint(only.then_block):
            Y[i + 64] = -1.0
            scf.YieldOp([])
        Y[i] = fx.Float32(made.results[0])

    out = np.zeros(128, np.float32)
    launched(kernel, GIVEN, out)
    np.testing.assert_array_equal(out[:64], np.where(GIVEN > 0, GIVEN * 3, GIVEN - 1))
    np.testing.assert_array_equal(out[64:], np.where(np.arange(64) < 3, -1.0, 0.0))


def test_a_loop_with_branches_of_both_kinds():
    """A branch of Python's and one of MLIR's in a loop of MLIR's."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Y: fx.Tensor):
        i = fx.thread_idx.x
        bounds = [arith.constant(T.index, one) for one in (0, 5, 1)]
        loop = scf.ForOp(*bounds, [A[i].ir_value(), fx.Int32(0).ir_value()])
        with ir.InsertionPoint(loop.body):
            n = fx.Int32(arith.index_cast(T.i32, loop.induction_variable))
            total, count = fx.Float32(loop.inner_iter_args[0]), fx.Int32(loop.inner_iter_args[1])
            total = total * 1.5 + fx.Float32(n)
            if n % 2 == 0:
                total = total + 1.0
            made = scf.IfOp((n > 2).ir_value(), [T.i32], has_else=True)
            with ir.InsertionPoint(made.then_block):
                scf.YieldOp([(count + n).ir_value()])
            with ir.InsertionPoint(made.else_block):
                scf.YieldOp([(count - 1).ir_value()])
            scf.YieldOp([total.ir_value(), made.results[0]])
        Y[i] = fx.Float32(loop.results[0]) + fx.Float32(fx.Int32(loop.results[1]))

    out = np.zeros(64, np.float32)
    launched(kernel, GIVEN, out)
    total, count = GIVEN, 0
    for n in range(5):
        total = total * np.float32(1.5) + np.float32(n)
        total = total + np.float32(1) if n % 2 == 0 else total
        count = count + n if n > 2 else count - 1
    np.testing.assert_array_equal(out, total + np.float32(count))


def test_a_loop_with_a_condition():
    @flyc.kernel
    def kernel(A: fx.Tensor, Y: fx.Tensor):
        i = fx.thread_idx.x
        loop = scf.WhileOp([T.i32], [(i + 1).ir_value()])
        before = ir.Block.create_at_start(loop.before, [T.i32])
        after = ir.Block.create_at_start(loop.after, [T.i32])
        with ir.InsertionPoint(before):
            found = fx.Int32(before.arguments[0])
            scf.ConditionOp((found < 100).ir_value(), [found.ir_value()])
        with ir.InsertionPoint(after):
            scf.YieldOp([(fx.Int32(after.arguments[0]) * 3).ir_value()])
        Y[i] = fx.Float32(fx.Int32(loop.results[0]))

    out = np.zeros(64, np.float32)
    launched(kernel, GIVEN, out)
    wanted = [next(n * 3**k for k in range(9) if n * 3**k >= 100) for n in range(1, 65)]
    np.testing.assert_array_equal(out, wanted)


def test_a_place_for_one_operation():
    """`ip=` of a builder, and the place that is current."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Y: fx.Tensor):
        i = fx.thread_idx.x
        here = ir.InsertionPoint.current
        assert isinstance(here, ir.InsertionPoint)
        made = scf.IfOp((i < 7).ir_value(), [T.i32], has_else=True)
        two = arith.constant(T.i32, 2, ip=ir.InsertionPoint.at_block_begin(here.block))
        with ir.InsertionPoint(made.then_block):
            scf.YieldOp([two])
        with ir.InsertionPoint(made.else_block):
            with ir.InsertionPoint(made):
                outside = i * 5
            scf.YieldOp([outside.ir_value()])
        Y[i] = fx.Float32(fx.Int32(made.results[0]) + outside)

    out = np.zeros(64, np.float32)
    launched(kernel, GIVEN, out)
    i = np.arange(64)
    np.testing.assert_array_equal(out, np.where(i < 7, 2, i * 5) + i * 5)
