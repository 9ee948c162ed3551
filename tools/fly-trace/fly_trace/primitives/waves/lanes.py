"""Values of other lanes, for trees of numbers and vectors of any width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu import lane_moves
from fly_trace.values.conversion import scalar
from fly_trace.values.vector.vector_values import Vector

WIDTHS = (1, 2, 4, 8, 16, 32)  # of logical waves


def shuffle(value: Any, lane: Any, width: int | None = None) -> Any:
    """The value of lane `lane` of the group. `lane` may differ among the lanes, and is taken modulo
    the group's lanes.

    value: a number of 8 to 128 bits, a vector, or a tuple, list, dictionary or object of them; all
    functions of fx.warp take these. width: groups of so many lanes, 1 to 32; None is the whole
    wave. Cost: one lane move for each 32 bits; an element of less takes a whole one, but vectors
    of whole words are moved by words. All lanes of the wave must be active; what a lane that is
    not has is undefined. As CUDA's __shfl_sync.
    """
    check_width(width, "fx.warp.shuffle")
    if width is None and not (isinstance(lane, int) and 0 <= lane < WIDTHS[-1]):
        lane = scalar(lane, "a lane").to(fx.Int32) & (fx.num_warp_threads() - 1)
    return _moved(value, lambda leaf: fx.shuffle_idx(leaf, lane, width), "fx.warp.shuffle")


def shuffle_up(value: Any, offset: Any, width: int | None = None) -> Any:
    """The value of lane `lane - offset` of the group, or the lane's own if there is none.

    Cost and operands: as `shuffle`. As CUDA's __shfl_up_sync.
    """
    check_width(width, "fx.warp.shuffle_up")
    return _moved(value, lambda leaf: fx.shuffle_up(leaf, offset, width), "fx.warp.shuffle_up")


def shuffle_down(value: Any, offset: Any, width: int | None = None) -> Any:
    """The value of lane `lane + offset` of the group, or the lane's own if there is none.

    Cost and operands: as `shuffle`. As CUDA's __shfl_down_sync.
    """
    check_width(width, "fx.warp.shuffle_down")
    if not isinstance(offset, int) or offset >= WIDTHS[-1]:
        # NVIDIA's instruction takes it modulo 32.
        offset = fx.where(scalar(offset, "an offset") < lanes_of_group(width), offset, 0)
    return _moved(value, lambda leaf: fx.shuffle_down(leaf, offset, width), "fx.warp.shuffle_down")


def shuffle_xor(value: Any, mask: Any, width: int | None = None) -> Any:
    """The value of lane `lane ^ mask`, or the lane's own if that is outside the group.

    Cost and operands: as `shuffle`. As CUDA's __shfl_xor_sync.
    """
    check_width(width, "fx.warp.shuffle_xor")
    return _moved(value, lambda leaf: fx.shuffle_xor(leaf, mask, width), "fx.warp.shuffle_xor")


def broadcast(value: Any, lane: Any = 0, width: int | None = None) -> Any:
    """The value of lane `lane` of the group in all its lanes; `lane` is the same in all of them.

    Cost and operands: as `shuffle`; on AMD, a whole wave's is in a scalar register. As CUB's
    ShuffleIndex.
    """
    check_width(width, "fx.warp.broadcast")
    if width is None and (not isinstance(lane, int) or 0 <= lane < WIDTHS[-1]):
        return of_lane(value, lane)
    return shuffle(value, lane, width)


def partner(value: Any, mask: int) -> Any:
    """The value of lane `lane ^ mask`, for a mask below 32, of numbers and vectors."""
    return _moved(value, lambda leaf: lane_moves.xor(leaf, mask), "a primitive of a wave")


def row_shifted(value: Any, step: int, other: Any) -> Any:
    """The value of lane `lane - step` of the row of 16, or `other` if there is none."""
    return _paired(value, other, lambda a, b: lane_moves.row_shifted(a, step, b))


def row_below(value: Any, other: Any) -> Any:
    """In odd rows the value of the last lane of the row below, in the others `other`."""
    return _paired(value, other, lane_moves.row_below)


def half_below(value: Any, other: Any) -> Any:
    """From lane 32 on the value of lane 31, in the others `other`."""
    return _paired(value, other, lane_moves.half_below)


def shifted(value: Any, other: Any) -> Any:
    """The value of lane `lane - 1` of the wave, in lane 0 `other`."""
    return _paired(value, other, lane_moves.shifted)


def of_lane(value: Any, lane: Any) -> Any:
    """The value of one lane of the wave in all of them."""
    return _moved(value, lambda leaf: lane_moves.of_lane(leaf, lane), "a primitive of a wave")


def last_of_rows(value: Any) -> Any:
    """The values of the last lanes of rows: in odd rows that of the row below."""
    return _moved(value, lane_moves.row_below, "a primitive of a wave")


def last_of_halves(value: Any) -> Any:
    """From lane 32 on the value of lane 31."""
    return _moved(value, lane_moves.half_below, "a primitive of a wave")


def _paired(value: Any, other: Any, move: Callable[[Any, Any], Any]) -> Any:
    """The numbers of a tree, each moved with that of another tree for lanes that read nothing."""
    pairs = zip(trees.scalars(value, "the value"), trees.scalars(other, "the value"), strict=True)
    return trees.of_scalars(value, [move(a, b) for a, b in pairs])


def lane_of_group(width: int | None) -> Any:
    """The lane's number in its group."""
    return fx.lane_id() if width is None else fx.lane_id() % width


def lanes_of_group(width: int | None) -> Any:
    """The number of lanes of a group."""
    return fx.num_warp_threads() if width is None else width


def check_width(width: Any, what: str) -> None:
    """Refuses what is no width of a group."""
    if width is not None and width not in WIDTHS:
        tracing.refuse(
            f"the width of {what} is a power of two up to {WIDTHS[-1]}, not {describe(width)}",
            "omit it to use the whole wave",
        )


def _moved(value: Any, move: Callable[[Any], Any], what: str) -> Any:
    found = trees.leaves(value, f"the value of {what}")
    return trees.joined(value, [_leaf_moved(leaf, move) for leaf in found])


def _leaf_moved(leaf: Any, move: Callable[[Any], Any]) -> Any:
    if not isinstance(leaf, Vector):
        return move(leaf)
    if leaf.numel * leaf.dtype.bits % 32 == 0 and leaf.dtype.bits < 32 and not leaf.dtype.is_bool:
        words = leaf.bitcast(fx.Uint32)
        made = fx.Vector.from_elements([move(word) for word in words], fx.Uint32)
        return made.bitcast(leaf.dtype).reshape(leaf.shape)
    elements = [move(element) for element in leaf]
    return fx.Vector.from_elements(elements, leaf.dtype).reshape(leaf.shape)
