"""The places of operands in the wave state: registers within their allocation, and constants.

Constants follow the vector registers of every wave, so that an instruction's source is either a row
or a scalar at an offset, and a handler needs no third kind.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_target.amd.facts import AmdFacts, facts_of
from fly_target.target import Target

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Instruction, Register

MASK_32 = 0xFFFF_FFFF
MASK_64 = 0xFFFF_FFFF_FFFF_FFFF


class Unsupported(Exception):
    """An instruction, or a form of one, without a handler. The text names the form."""


@dataclass(frozen=True)
class Allocation:
    """The vector registers that a kernel's descriptor allocates: `vector` of them are v0…, and
    `accumulation` are a0…, which start at row `accumulation_base` of the unified file."""

    vector: int
    accumulation: int
    accumulation_base: int
    rows: int


@dataclass
class Constants:
    """The constants after the registers. `base` is their offset in the wave state."""

    base: int
    capacity: int  # bytes
    data: bytearray = field(default_factory=bytearray)
    _places: dict[bytes, int] = field(default_factory=dict)

    def place(self, data: bytes, align: int = 8) -> int:
        """Returns the offset in the wave state of these bytes, a multiple of 8 in length."""
        known = self._places.get(data)
        if known is None:
            self.data += bytes(-(self.base + len(self.data)) % align)
            if len(self.data) + len(data) > self.capacity:
                raise InputError(
                    f"the code has more than {self.capacity} bytes of distinct constants"
                )
            known = self._places[data] = self.base + len(self.data)
            self.data += data
        return known

    def word(self, value: int) -> int:
        return self.place((value & MASK_64).to_bytes(8, "little"))

    def row(self, numbers: list[int]) -> int:
        """Places a row of 64 signed 32-bit numbers, aligned as registers are."""
        return self.place(struct.pack(f"<{state.LANES}i", *numbers), align=64)


@dataclass
class NamedRows:
    """The number of rows of vector registers up to the last one that the code can name: others keep
    what they have at first."""

    count: int = 0


@dataclass(frozen=True)
class Registers:
    """`wave_size` is 64, where a mask is a pair of scalar registers, or 32, where it is a single
    one."""

    allocation: Allocation
    constants: Constants
    target: Target
    wave_size: int = state.LANES
    named: NamedRows = field(default_factory=NamedRows)

    @property
    def facts(self) -> AmdFacts:
        return facts_of(self.target)

    @property
    def mask_count(self) -> int:
        return self.wave_size // 32

    def row(self, register: Register, count: int, instruction: Instruction) -> int:
        """Returns the offset of the first of `count` vector registers."""
        if register.bank == "a":
            limit, base = self.allocation.accumulation, self.allocation.accumulation_base
        else:
            limit, base = self.allocation.vector, 0
        last = register.index + count - 1
        if last >= limit:
            bank = "accumulation" if register.bank == "a" else "vector"
            raise InputError(
                f"pc 0x{instruction.pc:x} {quoted(instruction.text)}: {register.bank}{last} is"
                f" beyond the {limit} {bank} registers that the kernel allocates"
            )
        if register.count != count:
            raise Unsupported(f"an operand of {register.count} registers in place of {count}")
        self.named.count = max(self.named.count, base + last + 1)
        return state.VGPR + (base + register.index) * state.ROW

    def name_all(self) -> None:
        """Notes that the code can name every row."""
        self.named.count = self.allocation.rows

    def scalar(self, register: Register, count: int, instruction: Instruction) -> int:
        """Returns the offset of the first of `count` scalar registers."""
        if register.index + count > 128:
            raise InputError(
                f"pc 0x{instruction.pc:x} {quoted(instruction.text)}: no such scalar registers"
            )
        if register.count != count:
            raise Unsupported(f"an operand of {register.count} registers in place of {count}")
        return state.SGPR + 4 * register.index

    def constant(self, value: Immediate, element: str) -> int:
        return self.constants.word(constant_bits(value, element))


# A 16-bit integer operand reads the low half of a 32-bit float (LLVM: isInlinableLiteralI16).
_REAL = {"half": "<e", "i16": "<f", "float": "<f", "i32": "<f", "double": "<d", "i64": "<d"}


def constant_bits(value: Immediate, element: str) -> int:
    """Returns what an operand of type `element` reads from a constant (CDNA3 ISA manual, "Literal
    and inline constants"): an inline float by the operand's width, a literal f64 in the high dword,
    an inline integer sign-extended."""
    if value.real is not None:
        return int.from_bytes(struct.pack(_REAL[element], value.real), "little")
    if element in ("i64", "double"):
        # gfx1250 has literals of 64 bits; the text of one whose low dword is 0 looks like a short
        # one of an f64.
        short = value.literal and not value.wide and value.value <= MASK_32
        if element == "double" and short:
            return (value.value & MASK_32) << 32
        return value.value & (MASK_32 if short else MASK_64)
    return value.value & MASK_32


def short_constant_bits(value: Immediate, form: str) -> int:
    """Returns the 16 bits of a constant of `form`, f16 or bf16: a float in bf16 is the upper half
    of its f32, an integer the lower half of its 32 bits."""
    if form == "bf16" and value.real is not None:
        return constant_bits(value, "float") >> 16
    return constant_bits(value, "half") & 0xFFFF
