"""The two interfaces of instructions that can be atoms: CopyOp and MmaOp.

A copy or matrix instruction is a record. Its fields are the type's parameters, its
`__str__` is the type's text. It defines, as layouts, which threads execute it together and which
thread holds which element. Nothing here depends on MLIR or on how the instruction is lowered, so a
new instruction needs a class in one module of this package and no new op.

Layouts of threads and values are `(threads, values) : (…)`, from (thread, value) to a position in
the tile of the instruction:

    a copy    to a bit of the memory it moves; `thr_val_layout_…(bits)` regroups bits by elements
    A         to m + M·k of the M × K tile, B to n + N·k of the N × K tile
    C and D   to m + M·n of the M × N tile
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from fly_common.record import record

from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner


@record
class StateField:
    """A value that an atom carries besides its type, set by `fly.atom.set_value`: its name, its
    integer type and its initial value."""

    name: str
    type: str
    default: int = 0


class AtomOp(ABC):
    """Base of copy and matrix instructions: the type's name and text, and state."""

    __slots__ = ()
    # The type's name with its dialect: "fly_rocdl.cdna3.mfma".
    NAME: ClassVar[str]
    # The chips that have some form of the instruction, by `Target.traits`: families and sets of
    # matrix instructions. Empty if all chips have it.
    FAMILIES: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def parameters(self) -> str:
        """The text between the angle brackets of the type."""

    @classmethod
    @abstractmethod
    def read(cls, scanner: Scanner) -> Self:
        """Parses the text between the brackets. Raises ValueError."""

    @property
    @abstractmethod
    def thr_layout(self) -> Layout:
        """The threads that execute it together: `64:1` for a wave of 64."""

    @property
    def state(self) -> tuple[StateField, ...]:
        """The fields of its state in the order of their slots. Most instructions have none."""
        return ()

    def slot(self, field: str) -> int:
        """The index of a state field. Raises ValueError if it is unknown."""
        names = [item.name for item in self.state]
        if field not in names:
            known = f"has the state {', '.join(names)}" if names else "has no state"
            raise ValueError(f"{self} {known}; there is no field `{field}`")
        return names.index(field)

    def __str__(self) -> str:
        return f"!{self.NAME}<{self.parameters}>"


class CopyOp(AtomOp):
    """An instruction that moves data. Its bit layouts describe one execution."""

    __slots__ = ()
    # Whether one execution moves a tile of any size, so that a copy is not split into elements.
    WHOLE_TILE: ClassVar[bool] = False
    # The bits that one execution can move per thread; empty if they are determined otherwise.
    SIZES: ClassVar[tuple[int, ...]] = ()

    @property
    @abstractmethod
    def thr_bit_layout_src(self) -> Layout:
        """(thread, bit of its share) → bit of the tile, for reading the source."""

    @property
    @abstractmethod
    def thr_bit_layout_dst(self) -> Layout:
        """(thread, bit of its share) → bit of the tile, for writing the destination."""

    @property
    def thr_bit_layout_ref(self) -> Layout:
        """The side to which a tiled copy's thread-value layout refers."""
        return self.thr_bit_layout_src


class MmaOp(AtomOp):
    """An instruction that multiplies matrices: D = A·B + C on an M × N × K tile."""

    __slots__ = ()
    # The operands ("a", "b") that it reads from shared memory itself. All threads see their whole
    # tile; other operands are in registers.
    IN_SHARED: ClassVar[tuple[str, ...]] = ()

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
