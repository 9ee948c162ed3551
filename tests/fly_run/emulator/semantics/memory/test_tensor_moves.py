"""The tensor data mover of gfx1250 against NumPy, element by element, for random descriptors.

The descriptor is built here from the fields that FlyDSL's and Triton's compilers write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from emulator_support.copies import LDS_BYTES, fill_lds, run, store_lds
from fly_common.errors import Fault

MEMORY_BYTES = 1 << 16
BODY = """
  s_load_b128 s[12:15], s[4:5], 0x0
  s_load_b256 s[16:23], s[4:5], 0x10
  s_load_b128 s[24:27], s[4:5], 0x30
  s_load_b128 s[28:31], s[4:5], 0x40
  s_wait_kmcnt 0x0
  s_add_co_u32 s14, s14, s6
  s_add_co_ci_u32 s15, s15, s7
{fill}
  {instruction}
  s_wait_tensorcnt 0x0
{store}
"""


@dataclass(frozen=True)
class Move:
    """Sizes and strides in elements, the first dimension first; `strides` leaves out that of the
    first. `gather`: row indices."""

    size: int  # bytes of an element, log2
    tensor: tuple[int, ...]
    tile: tuple[int, ...]
    strides: tuple[int, ...]
    lds: int = 0
    start: int = 0  # bytes
    pad: tuple[int, int] | None = None  # dwords between gaps, dwords of a gap
    gather: tuple[int, ...] = ()
    wide_indices: bool = False
    iterate: tuple[int, int, int] | None = None  # times, elements in LDS, elements in memory
    groups: int = 4
    more: dict[int, int] = field(default_factory=dict)  # bits set besides


def put(bits: list[int], at: int, width: int, value: int) -> None:
    assert 0 <= value < 1 << width, (at, value)
    for k in range(width):
        bits[at + k] = value >> k & 1


def descriptor(m: Move) -> np.ndarray:
    """uint32[20]: the groups one after the other."""
    bits = [0] * 640
    put(bits, 0, 1, 1)
    put(bits, 30, 1, int(m.wide_indices))
    put(bits, 31, 1, int(bool(m.gather)))
    put(bits, 32, 32, m.lds)
    put(bits, 64, 57, m.start)
    put(bits, 126, 2, 2)
    one, two, three = 128, 384, 512
    put(bits, one + 16, 2, m.size)
    put(bits, one + 19, 1, int(m.iterate is not None))
    if m.pad:
        interval, amount = m.pad
        put(bits, one + 20, 1, 1)
        put(bits, one + 22, 3, interval.bit_length() - 2)
        put(bits, one + 25, 7, amount - 1)
    places = {
        "tensor": ((one + 48, 32), (one + 80, 32), (two, 32), (two + 32, 32), (three + 48, 32)),
        "tile": (
            *((one + 112, 16), (one + 128, 16), (one + 144, 16)),
            *((two + 112, 16), (three + 80, 16)),
        ),
        "strides": ((one + 160, 48), (one + 208, 48), (two + 64, 48), (three, 48)),
    }
    for name, where in places.items():
        for (at, width), value in zip(where, getattr(m, name), strict=False):
            put(bits, at, width, value)
    if m.gather:
        width = 32 if m.wide_indices else 16
        for number, row in enumerate(m.gather):
            put(bits, two + width * number, width, row)
    if m.iterate:
        times, in_lds, in_memory = m.iterate
        put(bits, two + 32, 32, in_lds)
        put(bits, two + 64, 48, in_memory)
        put(bits, two + 112, 16, times - 1)
    for at, value in m.more.items():
        bits[at] = value
    return np.array([sum(bits[32 * w + k] << k for k in range(32)) for w in range(20)], np.uint32)


def elements(m: Move):
    """Yields (byte in LDS, byte in memory, whether it is in the tensor) of each element."""
    unit = 1 << m.size
    rank = len(m.tile)
    times, in_lds, in_memory = m.iterate or (1, 0, 0)
    for turn in range(times):
        done = 0
        for number in range(int(np.prod(m.tile[1:], dtype=int))):
            rest, place, inside = number, 0, True
            for d in range(1, rank):
                at = rest % m.tile[d]
                rest //= m.tile[d]
                if d == 1 and m.gather:
                    at = m.gather[at]
                inside = inside and at < m.tensor[d]
                place += at * m.strides[d - 1]
            for column in range(m.tile[0]):
                good = inside and column < m.tensor[0]
                memory = m.start + (place + column + turn * in_memory) * unit
                gap = 0
                if m.pad:
                    interval, amount = m.pad
                    gap = done // (4 * interval) * 4 * amount
                yield m.lds + turn * in_lds * unit + done + gap, memory, good
                done += unit


def load(m: Move) -> None:
    rng = np.random.default_rng(1)
    memory = rng.integers(0, 256, MEMORY_BYTES, np.uint8)
    old = rng.integers(0, 256, LDS_BYTES, np.uint8)
    wanted, unit = old.copy(), 1 << m.size
    for lds, place, good in elements(m):
        wanted[lds : lds + unit] = memory[place : place + unit] if good else 0
    got = np.zeros(LDS_BYTES, np.uint8)
    move(m, "load_to", memory, old, got)
    assert np.array_equal(got, wanted)


def store(m: Move) -> None:
    rng = np.random.default_rng(2)
    memory = rng.integers(0, 256, MEMORY_BYTES, np.uint8)
    lds = rng.integers(0, 256, LDS_BYTES, np.uint8)
    wanted, unit = memory.copy(), 1 << m.size
    for place, at, good in elements(replace(m, pad=None)):
        if good:
            wanted[at : at + unit] = lds[place : place + unit]
    move(m, "store_from", memory, lds, np.zeros(LDS_BYTES, np.uint8))
    assert np.array_equal(memory, wanted)


def move(m: Move, name: str, memory: np.ndarray, old: np.ndarray, got: np.ndarray, **options):
    groups = "s[12:15], s[16:23], s[24:27], s[28:31]" if m.groups == 4 else "s[12:15], s[16:23]"
    body = BODY.format(
        fill=fill_lds("s[8:9]"),
        instruction=f"tensor_{name}_lds {groups}"
        if name == "load_to"
        else f"tensor_store_from_lds {groups}",
        store=store_lds("s[10:11]"),
    )
    run(body, [descriptor(m), memory, old, got], **options)


def some(rank: int, seed: int) -> Move:
    rng = np.random.default_rng([rank, seed])
    size = int(rng.integers(0, 4))
    tile = [int(rng.integers(1, 17)), *(int(n) for n in rng.integers(1, 5, rank - 1))]
    tensor = [max(1, n + int(rng.integers(-2, 3))) for n in tile]
    strides, stride = [], tensor[0] + int(rng.integers(0, 4))
    for n in tensor[1:]:
        strides.append(stride)
        stride *= n
    pad = (2 << int(rng.integers(0, 3)), int(rng.integers(1, 5))) if seed % 2 else None
    lds = 4 * int(rng.integers(0, 8)) if seed % 3 else int(rng.integers(0, 4)) * (1 << size)
    return Move(
        size, tuple(tensor), tuple(tile), tuple(strides), lds, 64, pad, groups=2 if rank < 3 else 4
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rank", range(1, 6))
def test_loads(rank: int, seed: int) -> None:
    load(some(rank, seed))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", range(1, 6))
def test_stores(rank: int, seed: int) -> None:
    store(some(rank, seed))


@pytest.mark.parametrize("pad", [None, (4, 2)])
@pytest.mark.parametrize("wide", [False, True])
def test_gathers(wide: bool, pad: tuple[int, int] | None) -> None:
    """Rows in any order, repeated and beyond the tensor; unused indices are ignored."""
    rows = (5, 0, 9, 5, 31, 2, 7, 3) if wide else (5, 0, 9, 5, 31, 2, 7, 3, 1, 1, 8, 30, 4, 6, 2, 0)
    for used in (len(rows), 3):
        m = Move(2, (6, 20), (8, used), (12,), 16, 32, pad, rows, wide)
        load(m)
        if wide:  # not rows that are stored twice: which one remains is open
            store(replace(m, gather=(5, 0, 9, 6, 31, 2, 7, 3)))


@pytest.mark.parametrize("times", [1, 3])
def test_iterations(times: int) -> None:
    """The same tile several times, each further on in memory and in LDS."""
    m = Move(1, (10, 6), (8, 5), (16,), 64, 0, None, iterate=(times, 48, 200))
    load(m)
    store(m)


def test_rows_that_are_not_whole_dwords() -> None:
    load(Move(0, (5, 3), (7, 3), (9,), 3, 1))
    store(Move(0, (5, 3), (7, 3), (9,), 3, 1))


def test_invalid_and_empty_ones_do_nothing() -> None:
    for m in (Move(2, (8, 4), (8, 4), (8,), more={0: 0}), Move(2, (8, 4), (0, 4), (8,))):
        rng = np.random.default_rng(3)
        old, got = rng.integers(0, 256, LDS_BYTES, np.uint8), np.zeros(LDS_BYTES, np.uint8)
        move(m, "load_to", np.zeros(MEMORY_BYTES, np.uint8), old, got)
        assert np.array_equal(old, got)


@pytest.mark.parametrize(
    ("m", "message"),
    [
        (Move(2, (8, 4), (8, 4), (8,), lds=LDS_BYTES - 8), "LDS"),
        (Move(2, (8, 4), (8, 4), (8,), start=1 << 40), "memory"),
        # It arrives at a barrier beyond LDS.
        (Move(2, (8, 4), (8, 4), (8,), more={146: 1, 160 + 15: 1}), "LDS fault: 8 bytes"),
        (Move(2, (8, 4), (8, 4), (8,), more={127: 0}), "tensor"),  # another type
    ],
)
def test_faults(m: Move, message: str) -> None:
    data = [np.zeros(n, np.uint8) for n in (MEMORY_BYTES, LDS_BYTES, LDS_BYTES)]
    with pytest.raises(Fault, match=message):
        move(m, "load_to", *data)


@pytest.mark.parametrize("stores", [False, True], ids=["load", "store"])
@pytest.mark.parametrize(
    ("move", "times"),
    [
        (Move(2, (8, 4), (8, 4), (8,)), 1),
        (Move(2, (8, 4), (8, 4), (8,), iterate=(3, 64, 32)), 1),  # once, not at each turn
        (Move(2, (8, 4), (0, 4), (8,)), 0),  # nothing is copied
    ],
)
def test_a_move_arrives_at_a_barrier(move: Move, times: int, stores: bool) -> None:
    """The barrier at byte 0x4008 of LDS, whose pending count is 0, starts another phase."""
    place = 0x4008
    words = descriptor(
        replace(move, more={146: 1, **{160 + bit: place >> 3 >> bit & 1 for bit in range(16)}})
    )
    code = np.zeros(128, np.uint32)
    code[:20] = words
    memory, lds = np.zeros(MEMORY_BYTES, np.uint8), np.zeros(LDS_BYTES, np.uint8)
    lds[place : place + 8] = np.array([5 << 29 | 9 << 32], np.uint64).view(np.uint8)
    instruction = "tensor_store_from_lds" if stores else "tensor_load_to_lds"
    out = np.zeros(LDS_BYTES, np.uint8)
    body = BODY.format(
        fill=fill_lds("s[8:9]"),
        instruction=f"{instruction} s[12:15], s[16:23], s[24:27], s[28:31]",
        store=store_lds("s[10:11]"),
    )
    run(body, [code, memory, lds, out])
    after = out[place : place + 8].view(np.uint64)[0]
    assert int(after) == (9 | 4 << 29 | 9 << 32 if times else 5 << 29 | 9 << 32)
