"""The tensor data mover of gfx1250: one instruction copies a tile between memory and LDS."""

from __future__ import annotations

from typing import ClassVar, Self

from fly_common.record import record

from fly_dialect.atoms import reading
from fly_dialect.atoms.interface import CopyOp, StateField
from fly_dialect.atoms.registry import register
from fly_dialect.atoms.universal import ONE_THREAD, one_thread_bits
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner

MAX_RANK = 5
# The initial extents and strides of the state: an extent that does not limit the tile, and a stride
# that no tensor has, which selects the tile's own stride.
NO_LIMIT = 2**31 - 1
TILE_STRIDE = -(2**31)


@register
@record
class Tdm(CopyOp):
    """`!fly_rocdl.gfx1250.tdm<rank = 2, warps = 4, pad = 64, 8, cache = 0, barrier = false,
    timeout = false>`: tensor_load_to_lds or tensor_store_from_lds.

    The tile of `rank` modes is divided among `warps` waves. After each `pad_interval` elements,
    `pad_amount` of LDS is skipped. The state holds the tensor's extents (`extent_0` is the
    outermost), its strides in elements, a workgroup mask and a byte offset.
    """

    NAME: ClassVar[str] = "fly_rocdl.gfx1250.tdm"
    FAMILIES: ClassVar[tuple[str, ...]] = ("gfx1250",)
    WHOLE_TILE: ClassVar[bool] = True
    rank: int
    warps: int
    pad_interval: int = 0
    pad_amount: int = 0
    cache: int = 0
    barrier: bool = False
    timeout: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= MAX_RANK:
            raise ValueError(f"TDM rank must be in [1, {MAX_RANK}], got {self.rank}")
        if not _is_power_of_two(self.warps):
            raise ValueError(f"numWarps must be a positive power of two, got {self.warps}")
        if (self.pad_interval == 0) != (self.pad_amount == 0):
            raise ValueError("padInterval and padAmount must both be zero or both non-zero")
        if self.pad_interval < 0 or self.pad_amount < 0:
            raise ValueError(
                "padInterval and padAmount must be non-negative, "
                f"got {self.pad_interval}, {self.pad_amount}"
            )
        if self.pad_interval and not _is_power_of_two(self.pad_interval):
            raise ValueError(
                f"padInterval must be a power of two (in elements), got {self.pad_interval}"
            )

    @property
    def parameters(self) -> str:
        return (
            f"rank = {self.rank}, warps = {self.warps}, "
            f"pad = {self.pad_interval}, {self.pad_amount}, cache = {self.cache}, "
            f"barrier = {str(self.barrier).lower()}, timeout = {str(self.timeout).lower()}"
        )

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        def following(name: str) -> int:
            scanner.expect(",")
            if name:
                reading.key(scanner, name)
            return reading.number(scanner)

        def following_flag(name: str) -> bool:
            scanner.expect(",")
            reading.key(scanner, name)
            return reading.flag(scanner)

        reading.key(scanner, "rank")
        rank = reading.number(scanner)
        warps, interval = following("warps"), following("pad")
        amount, cache = following(""), following("cache")
        barrier, timeout = following_flag("barrier"), following_flag("timeout")
        return cls(rank, warps, interval, amount, cache, barrier, timeout)

    @property
    def thr_layout(self) -> Layout:
        return ONE_THREAD

    @property
    def thr_bit_layout_src(self) -> Layout:
        return one_thread_bits(1)

    @property
    def thr_bit_layout_dst(self) -> Layout:
        return one_thread_bits(1)

    @property
    def state(self) -> tuple[StateField, ...]:
        return (
            StateField("workgroup_mask", "i32"),
            *(StateField(f"extent_{mode}", "i32", NO_LIMIT) for mode in range(MAX_RANK)),
            *(StateField(f"stride_{mode}", "i64", TILE_STRIDE) for mode in range(MAX_RANK - 1)),
            StateField("imm_offset", "i64"),
        )


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0
