"""CDNA copies through buffer descriptors, and copies directly to LDS."""

from __future__ import annotations

from typing import ClassVar, Self

from fly_common.record import record

from fly_dialect.atoms import reading
from fly_dialect.atoms.amd.mfma import ALL, CDNA4
from fly_dialect.atoms.interface import StateField
from fly_dialect.atoms.registry import register
from fly_dialect.atoms.universal import SizedCopy, ThreadCopy, check_atomic
from fly_dialect.layouts.scanner import Scanner
from fly_dialect.types import bits

# An offset in elements that applies to all threads, and the immediate offset in bytes.
SOFFSET = StateField("soffset", "i32")
IMM_OFFSET = StateField("imm_offset", "i32")


@register
@record
class BufferCopy(SizedCopy):
    """`!fly_rocdl.cdna3.buffer_copy<64, cache = 2>`: buffer_load or buffer_store, between registers
    and memory with a descriptor. `cache` is the cache policy: 0 cached, 2 non-temporal."""

    NAME: ClassVar[str] = "fly_rocdl.cdna3.buffer_copy"
    SIZES: ClassVar[tuple[int, ...]] = (8, 16, 32, 64, 96, 128)
    cache: int = 0

    def __post_init__(self) -> None:
        if self.bit_size not in self.SIZES:
            raise ValueError(
                f"unsupported bitSize = {self.bit_size} for BufferCopy; "
                "expected 8, 16, 32, 64, 96 or 128"
            )

    @property
    def parameters(self) -> str:
        return f"{self.bit_size}, cache = {self.cache}" if self.cache else str(self.bit_size)

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        size = reading.number(scanner)
        if not scanner.take(","):
            return cls(size)
        reading.key(scanner, "cache")
        return cls(size, reading.number(scanner))

    @property
    def state(self) -> tuple[StateField, ...]:
        return (SOFFSET,)


@register
@record
class BufferCopyLds(SizedCopy):
    """`!fly_rocdl.cdna3.buffer_copy_lds<32>`: buffer_load … lds, from memory with a descriptor to
    LDS. The threads' words are consecutive, starting at the wave's first address."""

    NAME: ClassVar[str] = "fly_rocdl.cdna3.buffer_copy_lds"
    FAMILIES: ClassVar[tuple[str, ...]] = ALL
    SIZES: ClassVar[tuple[int, ...]] = (32, 128)

    def __post_init__(self) -> None:
        if self.bit_size not in self.SIZES:
            raise ValueError(
                f"unsupported bitSize = {self.bit_size} for BufferCopyLDS; expected 32 or 128 "
                "(there is no 8-byte LDS DMA instruction, and 128 requires gfx950)"
            )

    @property
    def state(self) -> tuple[StateField, ...]:
        return SOFFSET, IMM_OFFSET


@register
@record
class BufferAtomic(ThreadCopy):
    """`!fly_rocdl.cdna3.buffer_atomic<add, f32>`: updates memory with a descriptor by the value of
    the source."""

    NAME: ClassVar[str] = "fly_rocdl.cdna3.buffer_atomic"
    op: str
    element: str

    def __post_init__(self) -> None:
        check_atomic(self.op)
        bits(self.element)

    @property
    def copied_bits(self) -> int:
        return bits(self.element)

    @property
    def parameters(self) -> str:
        return f"{self.op}, {self.element}"

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        op = reading.word(scanner)
        scanner.expect(",")
        return cls(op, reading.element(scanner))

    @property
    def state(self) -> tuple[StateField, ...]:
        return (SOFFSET,)


@record
class AsyncLds(SizedCopy):
    """A load to LDS that completes only after `rocdl.wait.asyncmark`."""

    SIZES: ClassVar[tuple[int, ...]] = (32, 96, 128)

    def __post_init__(self) -> None:
        if self.bit_size not in self.SIZES:
            raise ValueError(
                f"unsupported bitSize = {self.bit_size} for {type(self).__name__}; "
                "expected 32, 96 or 128 (there is no 8-byte LDS DMA instruction)"
            )


@register
@record
class BufferLoadAsyncLDS(AsyncLds):
    """`!fly_rocdl.cdna4.buffer_load_async_lds<128>`: an asynchronous buffer_copy_lds."""

    NAME: ClassVar[str] = "fly_rocdl.cdna4.buffer_load_async_lds"
    FAMILIES: ClassVar[tuple[str, ...]] = (CDNA4,)

    @property
    def state(self) -> tuple[StateField, ...]:
        return SOFFSET, IMM_OFFSET


@register
@record
class GlobalLoadAsyncLDS(AsyncLds):
    """`!fly_rocdl.cdna4.global_load_async_lds<128>`: asynchronous, from a global pointer to LDS."""

    NAME: ClassVar[str] = "fly_rocdl.cdna4.global_load_async_lds"
    FAMILIES: ClassVar[tuple[str, ...]] = (CDNA4,)
