"""Hardware-independent atoms: a copy of bits, an atomic update and a multiply-add."""

from __future__ import annotations

from typing import ClassVar, Self

from fly_common.record import record

from fly_dialect.atoms import reading
from fly_dialect.atoms.interface import CopyOp, MmaOp
from fly_dialect.atoms.registry import register
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner
from fly_dialect.types import bits

# A single thread.
ONE_THREAD = Layout(1, 1)
# The atomic updates, with FlyDSL's names.
ATOMIC_OPS = ("add", "max", "min", "and", "or", "inc", "dec")


def one_thread_bits(count: int) -> Layout:
    """`count` consecutive bits that one thread moves."""
    return Layout((1, count), (1, 1))


class ThreadCopy(CopyOp):
    """A copy that each thread executes alone, in the order of memory."""

    __slots__ = ()

    @property
    def copied_bits(self) -> int:
        """The number of bits that one execution moves."""
        raise NotImplementedError

    @property
    def thr_layout(self) -> Layout:
        return ONE_THREAD

    @property
    def thr_bit_layout_src(self) -> Layout:
        return one_thread_bits(self.copied_bits)

    @property
    def thr_bit_layout_dst(self) -> Layout:
        return one_thread_bits(self.copied_bits)


@record
class SizedCopy(ThreadCopy):
    """A copy whose only parameter is the number of bits."""

    bit_size: int

    @property
    def copied_bits(self) -> int:
        return self.bit_size

    @property
    def parameters(self) -> str:
        return str(self.bit_size)

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        return cls(reading.number(scanner))


@register
@record
class UniversalCopy(SizedCopy):
    """`!fly.universal_copy<64>`: a load and a store of 64 bits, between any two address spaces."""

    NAME: ClassVar[str] = "fly.universal_copy"

    def __post_init__(self) -> None:
        if self.bit_size <= 0 or self.bit_size % 8:
            raise ValueError(f"a copy must move whole bytes, not {self.bit_size} bits")


@register
@record
class UniversalAtomic(ThreadCopy):
    """`!fly.universal_atomic<add, f32, "agent">`: updates the destination by the source's value.

    `scope` is LLVM's synchronization scope; empty means the whole system.
    """

    NAME: ClassVar[str] = "fly.universal_atomic"
    op: str
    element: str
    scope: str = ""

    def __post_init__(self) -> None:
        check_atomic(self.op)
        bits(self.element)

    @property
    def copied_bits(self) -> int:
        return bits(self.element)

    @property
    def parameters(self) -> str:
        scope = f', "{self.scope}"' if self.scope else ""
        return f"{self.op}, {self.element}{scope}"

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        op = reading.word(scanner)
        scanner.expect(",")
        element = reading.element(scanner)
        return cls(op, element, reading.string(scanner) if scanner.take(",") else "")


def check_atomic(op: str) -> None:
    """Raises ValueError unless `op` is an atomic update."""
    if op not in ATOMIC_OPS:
        raise ValueError(f"`{op}` is not an atomic update; expected one of {', '.join(ATOMIC_OPS)}")


@register
@record
class UniversalFma(MmaOp):
    """`!fly.universal_fma<1x1x1, (f32, f32) -> f32>`: one thread, one multiply-add."""

    NAME: ClassVar[str] = "fly.universal_fma"
    element: str

    @property
    def parameters(self) -> str:
        return f"1x1x1, ({self.element}, {self.element}) -> {self.element}"

    @classmethod
    def read(cls, scanner: Scanner) -> Self:
        shape = reading.shape(scanner)
        if shape != (1, 1, 1):
            found = "x".join(map(str, shape))
            raise ValueError(f"expected 1x1x1 dimensions for universal FMA, got {found}")
        a, b, acc = reading.signature(scanner)
        if not a == b == acc:
            raise ValueError(
                "expected all element types to be the same for universal FMA, "
                f"got ({a}, {b}) -> {acc}"
            )
        return cls(a)

    @property
    def thr_layout(self) -> Layout:
        return ONE_THREAD

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return 1, 1, 1

    @property
    def elements(self) -> tuple[str, str, str, str]:
        return self.element, self.element, self.element, self.element

    @property
    def thr_val_layout_a(self) -> Layout:
        return Layout((1, 1), (1, 1))

    @property
    def thr_val_layout_b(self) -> Layout:
        return Layout((1, 1), (1, 1))

    @property
    def thr_val_layout_c(self) -> Layout:
        return Layout((1, 1), (1, 1))
