"""The tensor data mover's atom in a kernel, on the emulator, against NumPy."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fly_common.errors import FlyError

GAP = 17  # what LDS holds before, where nothing is copied
NAMES = {1: ("Int8", np.int8), 2: ("Float16", np.float16), 4: ("Int32", np.int32)}
NAMES[8] = ("Int64", np.int64)


@dataclass(frozen=True)
class Move:
    """`tile` starts at `start` of `tensor`; elements of `size` bytes; `pad`: interval, amount."""

    tensor: tuple[int, ...]
    tile: tuple[int, ...]
    start: tuple[int, ...]
    waves: int = 1
    size: int = 4
    pad: tuple[int, int] = (0, 0)
    rows_apart: int = 0  # elements beyond a packed tensor's, between rows of the outermost mode
    by_offset: bool = False  # the start is given by imm_offset


MOVES = {
    "rank 1": Move((100,), (64,), (0,)),
    "rank 1, ragged": Move((100,), (64,), (50,), waves=2),
    "rank 2": Move((20, 48), (8, 32), (4, 16)),
    "rank 2, ragged both ways": Move((20, 48), (8, 32), (16, 30), waves=4, size=2),
    "rank 2, bytes": Move((20, 48), (16, 32), (3, 16), waves=2, size=1),
    "rank 2, eight bytes, strides": Move((20, 48), (8, 16), (1, 7), size=8, rows_apart=5),
    "rank 2, by offset": Move((20, 48), (8, 32), (4, 16), by_offset=True),
    "rank 2, padded": Move((40, 64), (16, 64), (30, 0), waves=2, size=2, pad=(64, 8)),
    "rank 2, padded within rows": Move((9, 64), (8, 64), (2, 0), pad=(16, 4)),
    "rank 3": Move((5, 6, 20), (2, 4, 16), (4, 1, 8), waves=2),
    "rank 4": Move((3, 4, 5, 10), (2, 2, 4, 8), (2, 1, 3, 4), size=2),
    "rank 5": Move((3, 2, 3, 4, 10), (2, 2, 2, 2, 8), (1, 1, 2, 1, 5), waves=4),
}


def lds_places(move: Move) -> tuple[np.ndarray, int]:
    """The place in LDS of each element of the tile, and the number of elements of LDS."""
    packed = np.arange(math.prod(move.tile)).reshape(move.tile)
    interval, amount = move.pad
    places = packed + (packed // interval * amount if interval else 0)
    return places, int(places.max()) + 1 + amount


def strides(move: Move) -> tuple[int, ...]:
    made = [math.prod(move.tensor[mode + 1 :]) for mode in range(len(move.tensor))]
    if len(made) > 1:
        made[0] += move.rows_apart
    return tuple(made)


def kernels(front: Any, move: Move, loads: bool, waits: bool = True) -> Any:
    flyc, fx = front
    cdna5 = fx.rocdl.cdna5  # FlyDSL's has its wait in another module
    wait = getattr(cdna5, "s_wait_tensorcnt", None) or fx.rocdl.tdm_ops.tensor_wait
    rank, places = len(move.tile), lds_places(move)[1]
    kind = getattr(fx, NAMES[move.size][0])
    apart = strides(move)
    begin = sum(a * b for a, b in zip(move.start, apart, strict=True))
    outside, offset = (0, begin * move.size) if move.by_offset else (begin, 0)
    left = [extent - start for extent, start in zip(move.tensor, move.start, strict=True)]
    threads = 32 * move.waves
    interval, amount = move.pad
    packed = tuple(math.prod(move.tile[mode + 1 :]) for mode in range(rank))

    @flyc.kernel
    def kernel(Memory: fx.Tensor, Held: fx.Tensor):
        tid = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[kind, places]).peek()
        flat = fx.make_view(lds.ptr, fx.make_layout(places, 1))
        for turn in fx.range_constexpr(-(-places // threads)):
            if turn * threads + tid < places:
                flat[turn * threads + tid] = Held[turn * threads + tid]
        fx.barrier()
        at = fx.add_offset(fx.get_iter(Memory), outside)
        tile = fx.make_view(at, fx.make_layout(move.tile, packed))
        inside = fx.make_view(lds.ptr, fx.make_layout(move.tile, packed))
        atom = fx.rocdl.cdna5.make_tdm_atom(
            tile, left, apart, num_warps=move.waves, pad_interval=interval, pad_amount=amount
        )
        if fx.const_expr(loads):
            fx.copy(atom, tile, inside, imm_offset=offset)
        else:
            fx.copy(atom, inside, tile, imm_offset=offset)
        if fx.const_expr(waits):
            wait(0)
        fx.barrier()
        for turn in fx.range_constexpr(-(-places // threads)):
            if turn * threads + tid < places:
                Held[turn * threads + tid] = flat[turn * threads + tid]

    @flyc.jit
    def launch(Memory: fx.Tensor, Held: fx.Tensor):
        kernel(Memory, Held).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    return launch


def views(move: Move, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tile's elements in memory as places, and which of them are in the tensor."""
    place, inside = np.zeros(move.tile, int), np.ones(move.tile, bool)
    for mode, apart in enumerate(strides(move)):
        shape = [-1 if one == mode else 1 for one in range(len(move.tile))]
        along = (np.arange(move.tile[mode]) + move.start[mode]).reshape(shape)
        place, inside = place + along * apart, inside & (along < move.tensor[mode])
    return place, inside


def arrays(move: Move) -> tuple[np.ndarray, np.ndarray]:
    kind = NAMES[move.size][1]
    rng = np.random.default_rng(3)
    memory = rng.integers(1, 100, strides(move)[0] * move.tensor[0] + 64).astype(kind)
    return memory, np.full(lds_places(move)[1], GAP, kind)


@pytest.mark.parametrize("name", MOVES)
def test_a_tile_to_lds(front, name: str) -> None:
    move = MOVES[name]
    memory, held = arrays(move)
    place, inside = views(move, memory)
    wanted = held.copy()
    wanted[lds_places(move)[0]] = np.where(inside, memory[np.where(inside, place, 0)], 0)
    kernels(front, move, loads=True)(memory, held)
    assert np.array_equal(held, wanted)


@pytest.mark.parametrize("name", [name for name, move in MOVES.items() if move.pad == (0, 0)])
def test_a_tile_from_lds(front, name: str) -> None:
    move = MOVES[name]
    memory, held = arrays(move)
    held[:] = np.random.default_rng(4).integers(1, 100, held.shape)
    place, inside = views(move, memory)
    wanted = memory.copy()
    wanted[place[inside]] = held[lds_places(move)[0]][inside]
    kernels(front, move, loads=False)(memory, held)
    assert np.array_equal(memory, wanted)


def test_a_wait_is_needed(front) -> None:
    """The strict mode, in which the tests here run, sees LDS that is read too early."""
    move = MOVES["rank 2"]
    with pytest.raises(FlyError, match="used before its load has completed"):
        kernels(front, move, loads=True, waits=False)(*arrays(move))


def test_six_modes_are_refused(front) -> None:
    move = Move((2,) * 6, (2,) * 6, (0,) * 6)
    with pytest.raises((FlyError, ValueError), match=r"rank|modes"):
        kernels(front, move, loads=True)(*arrays(move))
