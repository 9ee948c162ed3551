"""`fx.nvvm`: what its functions emit, and what they reject."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fly_opt.backends.nvidia.intrinsics import ALL

sys.path.insert(0, str(Path(__file__).parents[2]))
from trace_helpers import kernel_source, refusal, trace_body


@pytest.mark.parametrize(
    ("call", "intrinsic"),
    [
        ("fx.Int32(fx.nvvm.ballot(n > 3))", "vote.ballot.sync"),
        ("fx.where(fx.nvvm.vote_all(n > 3), 1, 2)", "vote.all.sync"),
        ("fx.where(fx.nvvm.vote_uni(n > 3, mask=15), 1, 2)", "vote.uni.sync"),
        ("fx.nvvm.redux(n, 'min')", "redux.sync.min"),
        ("fx.Int32(fx.nvvm.redux(fx.Uint32(n), 'min'))", "redux.sync.umin"),
        ("fx.Int32(fx.nvvm.match_any(n))", "match.any.sync.i32"),
        ("fx.Int32(fx.nvvm.match_any(fx.Int64(n)))", "match.any.sync.i64"),
        ("fx.Int32(fx.nvvm.clock())", "read.ptx.sreg.clock64"),
    ],
)
def test_values(call, intrinsic, tmp_path):
    assert f'"llvm.nvvm.{intrinsic}"' in trace_body(f"I[0, 0] = {call}", tmp_path)
    assert f"llvm.nvvm.{intrinsic}" in ALL, "its translation would be tried in a child"


@pytest.mark.parametrize(
    ("call", "intrinsic"),
    [
        ("syncwarp()", "bar.warp.sync"),
        ("barrier_sync(3, 64)", "barrier.cta.sync.aligned.count"),
        ("barrier_arrive(3, 64)", "barrier.cta.arrive.aligned.count"),
        ("nanosleep(20)", "nanosleep"),
    ],
)
def test_effects(call, intrinsic, tmp_path):
    assert f'"llvm.nvvm.{intrinsic}"' in trace_body(f"fx.nvvm.{call}", tmp_path)
    assert f"llvm.nvvm.{intrinsic}" in ALL


def test_fences(tmp_path):
    assert 'llvm.fence syncscope("device") acq_rel' in trace_body("fx.nvvm.fence()", tmp_path)
    body = "fx.nvvm.fence(fx.nvvm.SyncScope.Block)"
    assert 'llvm.fence syncscope("block") acq_rel' in trace_body(body, tmp_path)
    assert "llvm.fence acq_rel" in trace_body("fx.nvvm.fence(fx.SyncScope.System)", tmp_path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("fx.nvvm.ballot(x)", "fx.nvvm.ballot takes a condition, not "),
        ("fx.nvvm.redux(n, 'mul')", "fx.nvvm.redux has no operation 'mul': it has add, min"),
        ("fx.nvvm.redux(x, 'add')", "fx.nvvm.redux takes an i32 or a u32, not "),
        ("fx.nvvm.match_any(x)", "fx.nvvm.match_any takes an integer of 32 or 64 bits"),
        ("fx.nvvm.vote_any(n > 1, mask=x)", "the mask of fx.nvvm.vote_any must be an integer"),
        ("fx.nvvm.barrier_sync(1, 40)", "must be a positive multiple of 32, not 40"),
        ("fx.nvvm.barrier_sync(16, 32)", "the barrier of fx.nvvm.barrier_sync"),
        ("fx.nvvm.fence('agent')", "fx.nvvm.fence has no scope 'agent'"),
        ("fx.nvvm.elect()", "depends on the target"),
    ],
)
def test_refusals(body, message, tmp_path):
    found = refusal(kernel_source(body), tmp_path)
    assert message in found
    assert "^" in found
