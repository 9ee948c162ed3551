"""The two interfaces by which an instruction becomes an atom.

A copy or matrix instruction is a frozen dataclass: its fields are the type's parameters, its
`__str__` the type's text. It says which threads execute it together and which thread holds which
element, as layouts; nothing here knows MLIR or what the instruction is lowered to. So a new
instruction needs a class in one module of this package and no new op.

Layouts of threads and values are `(threads, values) : (…)`, from (thread, value) to a place in
the tile that the instruction works on:

    a copy    to a bit of the memory it moves, which `thr_val_layout_…(bits)` regroups by elements
    A         to m + M·k of the M × K tile, B to n + N·k of the N × K tile
    C and D   to m + M·n of the M × N tile
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner


@dataclass(frozen=True, slots=True)
class StateField:
    """A value that an atom carries besides its type, set by `fly.atom.set_value`: its name, its
    integer type and what it is until it is set."""

    name: str
    type: str
    default: int = 0


class AtomOp(ABC):
    """What copy and matrix instructions have in common: a type's name and text, and state."""

    __slots__ = ()
    # The type's name with its dialect: "fly_rocdl.cdna3.mfma".
    NAME: ClassVar[str]
    # The chips that have the instruction, or some form of it, by words of `Target.traits`: families
    # and sets of matrix instructions. None for one that is everywhere.
    FAMILIES: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def parameters(self) -> str:
        """The text between the angle brackets of the type."""

    @classmethod
    @abstractmethod
    def read(cls, scanner: Scanner) -> Self:
        """The instruction that the text between the brackets spells. Raises ValueError."""

    @property
    @abstractmethod
    def thr_layout(self) -> Layout:
        """The threads that execute it together: `64:1` for a wave of 64."""

    @property
    def state(self) -> tuple[StateField, ...]:
        """The fields of its state in the order of their slots; empty for most."""
        return ()

    def slot(self, field: str) -> int:
        """The place of a state field. ValueError names those there are."""
        names = [item.name for item in self.state]
        if field not in names:
            known = f"has the state {', '.join(names)}" if names else "has no state"
            raise ValueError(f"{self} {known}; there is no field `{field}`")
        return names.index(field)

    def __str__(self) -> str:
        return f"!{self.NAME}<{self.parameters}>"


class CopyOp(AtomOp):
    """An instruction that moves data. Its bit layouts are those of one execution."""

    __slots__ = ()
    # Whether one execution moves a tile of any size, so that a copy is not cut into elements.
    WHOLE_TILE: ClassVar[bool] = False
    # The bits of a thread that one execution can move; none where something else says them.
    SIZES: ClassVar[tuple[int, ...]] = ()

    @property
    @abstractmethod
    def thr_bit_layout_src(self) -> Layout:
        """(thread, bit of its share) → bit of the tile, as the source is read."""

    @property
    @abstractmethod
    def thr_bit_layout_dst(self) -> Layout:
        """(thread, bit of its share) → bit of the tile, as the destination is written."""

    @property
    def thr_bit_layout_ref(self) -> Layout:
        """The side that a tiled copy's own layout of threads and values speaks of."""
        return self.thr_bit_layout_src


class MmaOp(AtomOp):
    """An instruction that multiplies matrices: D = A·B + C on an M × N × K tile."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape_mnk(self) -> tuple[int, int, int]:
        """M, N and K."""

    @property
    @abstractmethod
    def elements(self) -> tuple[str, str, str, str]:
        """The element types of A, B, C and D."""

    @property
    @abstractmethod
    def thr_val_layout_a(self) -> Layout:
        """(thread, value of A) → m + M·k."""

    @property
    @abstractmethod
    def thr_val_layout_b(self) -> Layout:
        """(thread, value of B) → n + N·k."""

    @property
    @abstractmethod
    def thr_val_layout_c(self) -> Layout:
        """(thread, value of C or D) → m + M·n."""
