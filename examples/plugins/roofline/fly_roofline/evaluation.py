"""Evaluates a kernel's program: all lanes of a launch go through its blocks, and are counted.

Only what decides about branches is computed, by NumPy for many lanes at a time. Lanes that are in
different blocks wait for each other as they do in hardware: the first block in the order of the
program goes first, so that the lanes of a wave meet again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fly_roofline.instructions import Unknown

if TYPE_CHECKING:
    import numpy as np

LANES = 1 << 18  # at a time
MOST_VISITS = 1 << 20  # of blocks by one batch of lanes

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Totals:
    """What a launch does: FLOPs of vector and scalar instructions, and of matrix instructions;
    bytes of global memory that lanes load, store and change atomically; bytes of scalar loads."""

    vector: int = 0
    matrix: int = 0
    load: int = 0
    store: int = 0
    atomic: int = 0
    scalar: int = 0

    @property
    def flops(self) -> int:
        return self.vector + self.matrix

    @property
    def bytes(self) -> int:
        """All bytes that are requested of memory."""
        return self.load + self.store + self.atomic + self.scalar

    def plus(self, cost: Sequence[int], lanes: int, waves: int) -> Totals:
        """Adds a block's cost, which so many lanes and waves have executed."""
        flops, wave_flops, matrix, load, store, atomic, scalar = cost
        return Totals(
            self.vector + flops * lanes + wave_flops * waves,
            self.matrix + matrix * waves,
            self.load + load * lanes,
            self.store + store * lanes,
            self.atomic + atomic * lanes,
            self.scalar + scalar * waves,
        )

    def times(self, count: int) -> Totals:
        return Totals(*(count * value for value in vars(self).values()))

    def __add__(self, other: Totals) -> Totals:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Totals(*(a + b for a, b in pairs))


def evaluate(kernel: dict[str, Any], grid: Triple, block: Triple, packed: bytes) -> Totals:
    """Returns what a launch does. Raises Unknown if the kernel's counts are unknown."""
    if kernel["unknown"]:
        raise Unknown(kernel["unknown"])
    axes = {step[3][0][0] for steps in kernel["steps"] for step in steps if step[1] == "group"}
    # Workgroups that differ only along other axes do the same.
    extents = [extent if axis in axes else 1 for axis, extent in enumerate(grid)]
    same = [extent // own if own else 0 for extent, own in zip(grid, extents, strict=True)]
    groups = extents[0] * extents[1] * extents[2]
    if 0 in grid:
        return Totals()
    items = block[0] * block[1] * block[2]
    width = -(-items // kernel["wave"]) * kernel["wave"]
    total, batch = Totals(), max(1, LANES // width)
    for first in range(0, groups, batch):
        some = range(first, min(first + batch, groups))
        total += _Lanes(kernel, grid, block, packed, extents, some).run()
    return total.times(same[0] * same[1] * same[2])


class _Lanes:
    """The lanes of some workgroups."""

    def __init__(
        self,
        kernel: dict[str, Any],
        grid: Triple,
        block: Triple,
        packed: bytes,
        extents: Sequence[int],
        groups: range,
    ):
        import numpy as np

        self.kernel, self.grid, self.block, self.packed = kernel, grid, block, packed
        self.wave = kernel["wave"]
        items = block[0] * block[1] * block[2]
        width = -(-items // self.wave) * self.wave
        place = np.arange(width, dtype=np.uint64)
        group = np.repeat(np.arange(groups.start, groups.stop, dtype=np.uint64), width)
        item = np.tile(place, len(groups))
        self.exists = item < items
        self.lane = item % self.wave
        self.item = (item % block[0], item // block[0] % block[1], item // (block[0] * block[1]))
        self.group = (
            group % extents[0],
            group // extents[0] % extents[1],
            group // (extents[0] * extents[1]),
        )
        self.values: list[Any] = [None] * kernel["values"]
        self.mask = self.exists  # the lanes of the block that is executed

    def run(self) -> Totals:
        import numpy as np

        kernel, total = self.kernel, Totals()
        at = np.where(self.exists, 0, -1)
        came = np.full(at.shape, -1)
        edges = {(a, b): cost for a, b, cost in kernel["edges"]}
        for _ in range(MOST_VISITS):
            waiting = at[at >= 0]
            if not waiting.size:
                return total
            number = int(waiting.min())
            self.mask = mask = at == number
            total = self._counted(total, kernel["costs"][number], mask)
            for (source, target), cost in edges.items():
                if target == number:
                    total = self._counted(total, cost, mask & (came == source))
            self._steps(kernel["steps"][number], came)
            end = kernel["ends"][number]
            came[mask] = number
            if isinstance(end, int):
                at[mask] = end
            elif not end:
                at[mask] = -1
            else:
                condition, yes, no = end
                at[mask] = np.where(self._value(condition, 1) != 0, yes, no)[mask]
        raise Unknown(f"a wave executes more than {MOST_VISITS:,} blocks")

    def _counted(self, total: Totals, cost: Sequence[int] | None, mask: np.ndarray) -> Totals:
        if not cost:
            return total
        lanes = int(mask.sum())
        waves = int(mask.reshape(-1, self.wave).any(axis=1).sum())
        return total.plus(cost, lanes, waves)

    def _steps(self, steps: Sequence[Any], came: np.ndarray) -> None:
        """Executes a block's steps for the lanes of `mask`. All phis read before any is written."""
        phis = [(step, self._phi(step, came)) for step in steps if step[1] == "phi"]
        for step, value in phis:
            self._write(step[0], value)
        for number, op, bits, operands in steps:
            if op != "phi":
                self._write(number, self._computed(op, bits, operands))

    def _write(self, number: int, value: np.ndarray) -> None:
        import numpy as np

        before = self.values[number]
        if before is None:
            self.values[number] = np.broadcast_to(value, self.mask.shape).copy()
        else:
            np.copyto(before, value, where=self.mask)

    def _phi(self, step: Any, came: np.ndarray) -> np.ndarray:
        import numpy as np

        _, _, bits, pairs = step
        value = np.zeros(self.mask.shape, np.uint64)
        for block, operand in pairs:
            taken = self.mask & (came == block)
            if taken.any():
                np.copyto(value, self._value(operand, bits), where=taken)
        return value

    def _value(self, operand: Any, bits: int) -> np.ndarray:
        """A value as unsigned numbers. Operands are [constant] or the number of a value."""
        import numpy as np

        if isinstance(operand, list):
            return np.full(self.mask.shape, operand[0] % (1 << bits), np.uint64)
        found = self.values[operand]
        return np.zeros(self.mask.shape, np.uint64) if found is None else found

    def _computed(self, op: str, bits: int, operands: Sequence[Any]) -> Any:
        import numpy as np

        leaf = self._leaf(op, operands)
        if leaf is not None:
            return np.uint64(leaf) if isinstance(leaf, int) else leaf
        if op == "select":
            c, a, b = operands
            return np.where(self._value(c, 1) != 0, self._value(a, bits), self._value(b, bits))
        if op in ("zext", "sext", "trunc"):
            a, width = self._value(operands[0], operands[1][0]), operands[1][0]
            return _cut(_signed(a, width).astype(np.uint64) if op == "sext" else a, bits)
        if op in ("lo", "hi"):
            return self._lower_lanes(op, *(self._value(one, 32) for one in operands))
        values = [self._value(one, bits) for one in operands]
        if op == "first":
            return self._of_first_lane(values[0])
        if op == "ballot":
            return self._ballot(values[0])
        return _cut(_arithmetic(op, bits, values), bits)

    def _leaf(self, op: str, operands: Sequence[Any]) -> Any:
        """The numbers of the launch and of its arguments."""
        if op == "argument":
            (offset,), (size,) = operands
            return int.from_bytes(self.packed[offset : offset + size], "little")
        if op in ("item", "group", "grid", "block"):
            return getattr(self, op)[operands[0][0]]
        return None

    def _lower_lanes(self, half: str, mask: np.ndarray, added: np.ndarray) -> np.ndarray:
        import numpy as np

        lane = self.lane.astype(np.int64)
        lane = np.minimum(lane, 32) if half == "lo" else np.maximum(lane - 32, 0)
        below = (np.uint64(1) << lane.astype(np.uint64)) - np.uint64(1)
        return _cut(_ones(mask & below) + added, 32)

    def _of_first_lane(self, value: np.ndarray) -> np.ndarray:
        import numpy as np

        first = self.mask.reshape(-1, self.wave).argmax(axis=1)
        rows = value.reshape(-1, self.wave)
        return np.repeat(rows[np.arange(len(rows)), first], self.wave)

    def _ballot(self, value: np.ndarray) -> np.ndarray:
        import numpy as np

        bits = np.uint64(1) << np.arange(self.wave, dtype=np.uint64)
        on = (self.mask & (value != 0)).reshape(-1, self.wave)
        return np.repeat((on * bits).sum(axis=1, dtype=np.uint64), self.wave)


def _cut(value: Any, bits: int) -> Any:
    import numpy as np

    return value if bits >= 64 else value & np.uint64((1 << bits) - 1)


def _signed(value: np.ndarray, bits: int) -> np.ndarray:
    import numpy as np

    shift = np.int64(64 - bits)
    return (value.astype(np.int64) << shift) >> shift


def _ones(value: np.ndarray) -> np.ndarray:
    """The number of bits that are set."""
    import numpy as np

    total = np.zeros(value.shape, np.uint64)
    for place in range(64):
        total += value >> np.uint64(place) & np.uint64(1)
    return total


def _arithmetic(op: str, bits: int, values: Sequence[np.ndarray]) -> Any:
    import numpy as np

    a, b = values[0], values[1] if len(values) > 1 else values[0]
    if op.startswith("icmp "):
        return _compared(op.removeprefix("icmp "), bits, a, b)
    unsigned = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "not": lambda: a ^ np.uint64(1),
        "copy": lambda: a,
        "umin": lambda: np.minimum(a, b),
        "umax": lambda: np.maximum(a, b),
        # A shift by the width or more is poison.
        "shl": lambda: a << np.minimum(b, np.uint64(63)),
        "lshr": lambda: a >> np.minimum(b, np.uint64(63)),
        "udiv": lambda: a // np.maximum(b, np.uint64(1)),
        "urem": lambda: a % np.maximum(b, np.uint64(1)),
        "mul24": lambda: (a & np.uint64(0xFFFFFF)) * (b & np.uint64(0xFFFFFF)),
        "ctpop": lambda: _ones(a),
        "cttz": lambda: np.where(a == 0, np.uint64(bits), _ones((a & -a) - np.uint64(1))),
    }
    if op in unsigned:
        return unsigned[op]()
    x, y = _signed(a, 24 if op == "muls24" else bits), _signed(b, 24 if op == "muls24" else bits)
    by = np.where(y == 0, np.int64(1), y)
    signed = {
        "smin": lambda: np.minimum(x, y),
        "smax": lambda: np.maximum(x, y),
        "ashr": lambda: x >> np.minimum(b, np.uint64(63)).astype(np.int64),
        # NumPy rounds down, LLVM toward zero.
        "sdiv": lambda: np.sign(x) * np.sign(by) * (np.abs(x) // np.abs(by)),
        "srem": lambda: np.sign(x) * (np.abs(x) % np.abs(by)),
        "muls24": lambda: x * y,
    }
    return signed[op]().astype(np.uint64)


def _compared(op: str, bits: int, a: np.ndarray, b: np.ndarray) -> Any:
    import numpy as np

    if op.startswith("s"):
        a, b = _signed(a, bits), _signed(b, bits)
    compare = {"eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal}
    compare |= {"lt": np.less, "le": np.less_equal}
    return compare[op.removeprefix("u").removeprefix("s")](a, b).astype(np.uint64)
