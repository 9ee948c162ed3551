"""Lowers one instruction to steps. A step is a handler with its operands; it becomes a micro-op.

Most instructions are one step. Modifiers that a handler does not support (negation, DPP, SDWA,
`op_sel`, `clamp`, …) are separate steps around it, on temporary rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Instruction, Name, Operand, Register
from fly_run.emulator.lowering.registers import Registers, Unsupported
from fly_run.emulator.semantics.base.operation import Operation

# Sources that are 64-bit constants of this device.
APERTURES = {
    "src_shared_base": state.SHARED_APERTURE << 32,
    "src_shared_limit": (state.SHARED_APERTURE << 32) | 0xFFFF_FFFF,
    "src_private_base": state.PRIVATE_APERTURE << 32,
    "src_private_limit": (state.PRIVATE_APERTURE << 32) | 0xFFFF_FFFF,
}
# The base of private memory in the wave state, and its upper half.
PRIVATE_BASE = {"src_flat_scratch_base_lo": 0, "src_flat_scratch_base_hi": 4}
FLAGS = {"src_scc": "fly_read_scc", "src_vccz": "fly_read_vccz", "src_execz": "fly_read_execz"}
WIDE = frozenset(("i64", "double", "mask"))
FLOATS = frozenset(("half", "float", "double"))
VCC, EXEC_HIGH = 106, 127  # numbers of scalar registers
EXEC = "exec"  # as a result: what v_cmpx of gfx10 and later writes
NULL = "null"  # gfx10 and later: reads as zero, discards results


@dataclass(frozen=True)
class Step:
    """`link` is the destination address of a branch; `memory` marks a site that caches its last
    region; `site` is the host address of an observer's counters."""

    handler: str
    operands: tuple[int, ...] = ()
    immediate: int = 0
    extra: int = 0
    link: int | None = None
    memory: bool = False
    site: int | None = None


@dataclass(frozen=True)
class Source:
    """A source operand: `kind` is "v" (a row), "s" (a scalar) or "m" (a mask)."""

    kind: str
    offset: int


@dataclass
class Lowering:
    """Collects the steps of one instruction. `mfma` is the arithmetic of matrix instructions, exact
    or fast; `modes_vary` tells that the host's control word may differ from the one they need."""

    registers: Registers
    table: dict[str, Operation]
    instruction: Instruction
    mfma: str = "exact"
    modes_vary: bool = False
    steps: list[Step] = field(default_factory=list)
    _rows: int = 0
    _scalars: int = 0

    def add(self, handler: str, *operands: int, **fields: int | bool | None) -> None:
        self.steps.append(Step(handler, operands, **fields))  # type: ignore[arg-type]

    def valu(self, name: str, outputs: tuple[int, ...], *sources: Source, **fields: int) -> None:
        """Adds a VALU step; the handler's name encodes the kinds of its sources. Scalars without a
        handler are copied into rows first."""
        operation = self.table[name]
        wanted = handled(operation, "".join(source.kind for source in sources))
        placed = [
            self.in_row(source, element) if source.kind != kind else source
            for source, element, kind in zip(sources, operation.inputs, wanted, strict=True)
        ]
        self.add(f"{name}.{wanted}", *outputs, *(source.offset for source in placed), **fields)

    def aside(
        self, name: str, outputs: tuple[int, ...], *sources: Source, **fields: int
    ) -> list[Step]:
        """Returns the steps of a VALU step instead of adding them."""
        steps, self.steps = self.steps, []
        self.valu(name, outputs, *sources, **fields)
        steps, self.steps = self.steps, steps
        return steps

    def in_row(self, source: Source, element: str) -> Source:
        """Copies a source to a temporary; a scalar to all active lanes."""
        wide = element in WIDE
        target = self.temporary(2 if wide else 1)
        self.valu("v_mov_b64" if wide else "v_mov_b32", (target,), source)
        return Source("v", target)

    def temporary(self, rows: int = 1) -> int:
        """Allocates temporary rows and returns their offset; the last row is reserved for
        handlers."""
        offset = state.TEMP + self._rows * state.ROW
        self._rows += rows
        if self._rows > state.TEMP_ROWS - 1:
            raise Unsupported("so many modifiers at once")
        return offset

    def scalar_temporary(self) -> int:
        offset = state.SCALAR_TEMP + 8 * self._scalars
        self._scalars += 1
        return offset

    def word(self, value: int) -> Source:
        return Source("s", self.registers.constants.word(value))

    # -- operands

    def source(self, operand: Operand, element: str) -> Source:
        """Returns a source operand without its modifiers."""
        count = 2 if element in WIDE else 1
        if isinstance(operand, Register):
            if operand.bank == "s":
                if element == "mask":
                    count = self.registers.mask_count
                offset = self.registers.scalar(operand, count, self.instruction)
                return Source("m" if element == "mask" else "s", offset)
            if element == "mask":
                raise Unsupported("a vector register for a mask")
            return Source("v", self.registers.row(operand, count, self.instruction))
        if isinstance(operand, Immediate):
            kind = "m" if element == "mask" else "s"
            return Source(kind, self.registers.constant(operand, element))
        if operand.text in FLAGS and element != "mask":
            offset = self.scalar_temporary()
            # The upper dword stays zero.
            self.add("s_mov_b64", offset, self.registers.constants.word(0))
            self.add(FLAGS[operand.text], offset)
            return Source("s", offset)
        if operand.text in PRIVATE_BASE and self.registers.facts.global_scratch:
            return Source("s", state.PRIVATE_BASE + PRIVATE_BASE[operand.text])
        if operand.text in APERTURES and element == "i64":
            return self.word(APERTURES[operand.text])
        if operand.text == NULL:
            return Source("m" if element == "mask" else "s", self.word(0).offset)
        raise Unsupported(f"the operand {operand.text} here")

    def vector_target(self, operand: Operand, element: str) -> int:
        if not isinstance(operand, Register) or operand.bank == "s":
            raise Unsupported("a result that is not a vector register")
        count = 2 if element in WIDE else 1
        return self.registers.row(operand, count, self.instruction)

    def scalar_target(self, operand: Operand, count: int) -> int:
        if isinstance(operand, Name) and operand.text == NULL:
            return self.scalar_temporary()
        if isinstance(operand, Register) and operand.bank == "s":
            if self.registers.mask_count == 1 and operand.index + count > EXEC_HIGH:
                raise Unsupported("exec_hi as a result in waves of 32 lanes")
            return self.registers.scalar(operand, count, self.instruction)
        raise Unsupported("a result that is not a scalar register")

    def mask_target(self, operand: Operand) -> int:
        """Returns the place of a VALU step's mask."""
        if isinstance(operand, Name) and operand.text == EXEC:
            return state.EXEC
        return self.scalar_target(operand, self.registers.mask_count)

    def scalar_source(self, operand: Operand, element: str) -> int:
        source = self.source(operand, element)
        if source.kind != "s":
            raise Unsupported("a vector register as a scalar source")
        return source.offset

    def row_source(self, operand: Operand, count: int) -> int:
        if not isinstance(operand, Register) or operand.bank == "s":
            raise Unsupported("an operand that is not a vector register")
        return self.registers.row(operand, count, self.instruction)

    def operands(self, count: int) -> tuple[Operand, ...]:
        found = self.instruction.operands
        if len(found) != count:
            raise Unsupported(f"{len(found)} operands in place of {count}")
        return found

    # -- modifiers of sources

    def with_signs(
        self, source: Source, element: str, negate: bool, absolute: bool, packed: int = 0
    ) -> Source:
        """Changes the sign of `source`, in a temporary; `packed` directly gives the sign bits to
        flip."""
        if not (negate or absolute or packed):
            return source
        bit = {"half": 1 << 15, "i16": 1 << 15, "double": 1 << 63, "i64": 1 << 63}.get(
            element, 1 << 31
        )
        wide = element in WIDE
        whole = (1 << 64 if wide else 1 << 32) - 1
        keep = whole & ~bit if absolute else whole
        flip = packed or (bit if negate else 0)
        target = self.temporary(2 if wide else 1)
        name = "fly_sign_64" if wide else "fly_sign_32"
        self.valu(name, (target,), source, self.word(keep), self.word(flip))
        return Source("v", target)

    def field(self, source: Source, offset: int, width: int, signed: bool) -> Source:
        """Extracts a bit field of a 32-bit source into a temporary."""
        if width == 32:
            return source
        target = self.temporary()
        name = "v_bfe_i32" if signed else "v_bfe_u32"
        self.valu(name, (target,), source, self.word(offset), self.word(width))
        return Source("v", target)


def handled(operation: Operation, kinds: str) -> str:
    """Returns the source kinds of an operation's handler that replaces as few of these scalars as
    possible by rows."""
    if kinds in operation.kinds:
        return kinds
    found = [
        other
        for other in operation.kinds
        if all(b in (a, "v" if a == "s" else a) for a, b in zip(kinds, other, strict=True))
    ]
    if not found:
        raise Unsupported("sources of these kinds")
    return min(found, key=lambda other: other.count("v"))


def modifiers(lowering: Lowering, *known: str) -> Mapping[str, object]:
    """Returns the instruction's modifiers; Unsupported for one that is not in `known`."""
    found = lowering.instruction.modifiers
    unknown = [name for name in found if name not in known]
    if unknown:
        raise Unsupported(f"the modifier {unknown[0]}")
    return dict(found)


def plain(operand: Operand) -> Operand:
    """Returns an operand without its modifiers."""
    if isinstance(operand, Register):
        return replace(operand, negate=False, absolute=False, sign_extend=False)
    if isinstance(operand, Immediate):
        return replace(operand, negate=False, absolute=False)
    return operand


def part(operand: Operand, number: int) -> Operand:
    """Returns one register of a pair; a constant is the same in both."""
    if isinstance(operand, Register):
        return replace(operand, index=operand.index + number, count=1)
    return operand
