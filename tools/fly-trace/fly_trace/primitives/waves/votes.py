"""Conditions and equal values among the lanes of a wave."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu import lane_moves
from fly_trace.values.conversion import scalar
from fly_trace.values.dtypes import I64, U64
from fly_trace.values.scalars import Scalar


def ballot(condition: Any) -> Scalar:
    """A u64 whose bit i says whether the condition holds in lane i; the bits of lanes that are not
    active, or that the wave lacks, are 0.

    condition: a bool. Cost: one comparison into scalar registers, `vote.sync` on NVIDIA. As CUDA's
    __ballot_sync.
    """
    return _ballot(condition, "fx.warp.ballot")


def any_lane(condition: Any) -> Scalar:
    """Whether the condition, a bool, holds in any active lane of the wave.

    Cost: a ballot and a comparison. As CUDA's __any_sync.
    """
    lanes: Any = _ballot(condition, "fx.warp.any")
    return lanes != 0


def all_lanes(condition: Any) -> Scalar:
    """Whether the condition, a bool, holds in all active lanes of the wave.

    Cost: a ballot and a comparison. As CUDA's __all_sync.
    """
    others: Any = _ballot(~_condition(condition, "fx.warp.all"), "fx.warp.all")
    return others == 0


def count(condition: Any) -> Scalar:
    """In how many active lanes of the wave the condition, a bool, holds; an i32.

    Cost: a ballot and a bit count.
    """
    return fx.ctpop(_ballot(condition, "fx.warp.count")).to(fx.Int32)


def match_any(value: Any, bits: int | None = None) -> Scalar:
    """A u64 whose bit i says whether lane i is active and has the same value, bit for bit.

    value: a number, or a tree of them. bits: compare only so many low bits of each number. Cost:
    a ballot and three operations for each bit. As CUB's MatchAny, CUDA's __match_any_sync.
    """
    peers = _ballot(scalar(True, "the condition"), "fx.warp.match_any")
    for one in trees.scalars(value, "the value of fx.warp.match_any"):
        word = _bits_of(one)
        for place in range_of(bits, word, "fx.warp.match_any"):
            is_set = (word >> place & 1) != 0
            lanes = ballot(is_set)
            peers = peers & fx.where(is_set, lanes, ~lanes)
    return peers


def match_all(value: Any) -> Scalar:
    """Whether all lanes of the wave have the same value, bit for bit. Lane 0 must be active.

    value: a number, or a tree of them. Cost: for each number a broadcast, a comparison; a ballot.
    As CUDA's __match_all_sync.
    """
    same = scalar(True, "the condition")
    for one in trees.scalars(value, "the value of fx.warp.match_all"):
        word = _bits_of(one)
        same = same & (word == lane_moves.of_lane(word, 0))
    return all_lanes(same)


def range_of(bits: Any, word: Scalar, what: str) -> Any:
    """The places of the bits that are compared, as iterable that is unrolled."""
    if bits is not None and (isinstance(bits, bool) or not isinstance(bits, int) or bits < 1):
        tracing.refuse(f"the bits of {what} must be a positive Python int, not {describe(bits)}")
    return tuple(range(min(word.dtype.bits, bits or word.dtype.bits)))


def _bits_of(value: Scalar) -> Scalar:
    """The bits of a number as an unsigned integer."""
    if value.dtype.is_bool:
        return value.to(fx.Uint8)
    return value.bitcast(unsigned(value.dtype.bits))


def unsigned(bits: int) -> Any:
    """The unsigned type of a width."""
    return {8: fx.Uint8, 16: fx.Uint16, 32: fx.Uint32, 64: fx.Uint64, 128: fx.Uint128}[bits]


def _condition(value: Any, what: str) -> Scalar:
    condition = scalar(value, f"the condition of {what}")
    if not condition.dtype.is_bool:
        tracing.refuse(
            f"{what} takes a condition, not {describe(value)}", "compare it, as in x != 0"
        )
    return condition


def _ballot(value: Any, what: str) -> Scalar:
    builder = tracing.kernel(what)
    condition = builder.ssa(_condition(value, what))
    return Scalar(U64, builder.one("gpu.ballot", I64.ir, condition))
