"""Reports which instructions of a target the emulator executes.

    python -m fly_run.emulator.coverage [TARGET …]

There is no list of a target's instructions to compare with, so encodings are enumerated
systematically and LLVM's disassembler identifies them. An instruction is implemented if the encoder
makes micro-ops for at least one of its forms; the others are listed in `unsupported`, with a
reason.
"""

from __future__ import annotations

import functools
import random
import re
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fly_common.errors import InputError, UsageError
from fly_target import registry
from fly_target.amd.facts import facts_of

from fly_run.emulator.isa import unsupported
from fly_run.emulator.isa.disassemble import Disassembler
from fly_run.emulator.isa.instruction import split_mnemonic
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Allocation, Constants, Registers
from fly_run.emulator.semantics import table

STRIDE = 16  # bytes per candidate: no encoding is longer
TARGETS = tuple(registry.EMULATED)
SHAPES = 64  # maximum number of forms per mnemonic
V_READLANE = 0xD289  # both its sources are restricted, so it is rarely hit
# Compatible fields of memory instructions, with register numbers valid for any width.
MEMORY = (
    (0, 0),
    (0, 0xFC000000),
    (0, 0xFC0000FC),
    (0, 0x0000FCFC),
    (0, 0xFCFCFCFC),
    (0x7F0000, 0xFC00FCFC),
)
# s_getreg, s_setreg (SOPK): the low 16 bits name the register, 1 is MODE.
HARDWARE_REGISTER = {0xB880, 0xB900, 0xBA00}


def _rdna_candidates(high: int, bits: Callable[[int], int]) -> Iterator[tuple[int, int, int]]:
    """Yields more candidates for legal forms of gfx11 and gfx12: three dwords, where `high` is the
    upper half of the first."""
    if 0xBE80 <= high < 0xBF00:  # SOP1: -1, the workgroup's barrier; 0x83, the time message
        yield from (
            (opcode << 8 | source, 0, 0) for opcode in range(128) for source in (0xC1, 0x83)
        )
    elif 0xB800 <= high < 0xBC00:  # SOPK: 1 is MODE
        yield 0xF801, bits(32), 0
        yield 0x1801, bits(32), 0  # its lowest bits
    elif 0xBF80 <= high < 0xC000:  # SOPP
        yield 0xFFFF, 0, 0
    elif (
        0xCC00 <= high < 0xCE00 or 0xD400 <= high < 0xD800
    ):  # VOP3P, VOP3: registers, few modifiers
        for _ in range(3):
            yield bits(5), 0x04020100 | bits(27) & 0x0381C0E0, 0
        yield bits(5), 0x00020100 | bits(18) & 0x0001C0E0, 0
        yield from ((bits(5), source | 5 << 9 | 6 << 18, 0) for source in (0x104, 4))
        if high < 0xD500:  # comparisons of vector registers, whose result is EXEC
            yield 0x7E, 0x00020104, 0
    elif 0xC400 <= high < 0xC800 or 0xEC00 <= high < 0xF000:  # gfx12's memory, in three dwords
        for opcode in range(4):  # low bits of the opcode
            yield from ((opcode << 14 | base, 0, 0x1000) for base in (0x7C, 0))


# gfx1250's WMMA: even registers, different ones for each operand.
_WMMA_SOURCES = 0x04020100 | 0x20 | 0x40 << 9 | 0x60 << 18
_SCALED = (0xCC35, 0xCC3A)  # the first half of an encoding, followed by one of the second
_SCALED_HALVES = (0xCC33, 0xCC88)


def _cdna5_candidates(high: int, bits: Callable[[int], int]) -> Iterator[tuple[int, int, int, int]]:
    """Yields more candidates for legal forms of gfx1250, in four dwords: even registers, halves of
    scaled matrix instructions, tensor data moves."""
    if 0xCC00 <= high < 0xCE00 or 0xD400 <= high < 0xD800:
        yield 0, _WMMA_SOURCES, 0, 0
        yield 0, _WMMA_SOURCES & ~(0x100 << 18), 0, 0  # a constant or scalar as the third source
        yield 0, _WMMA_SOURCES & ~(0x100 << 9) | 1 << 29, 0, 0
        yield 0x4000, 0x1800_0000 | _WMMA_SOURCES, 0, 0  # op_sel_hi
        for _ in range(2):
            yield 0, _WMMA_SOURCES | bits(3) << 29, 0, 0
    if high in _SCALED:
        for half in _SCALED_HALVES:
            yield 0, 0x02010100 << 1 & 0x3FFFF | 0x100, half << 16, _WMMA_SOURCES
            yield 0, 0x20300, half << 16 | 0x4000, _WMMA_SOURCES | 0x1800_0000
    if 0xCF00 <= high < 0xD000:  # VOPD3: registers of different banks, even ones for 64 bits
        for opcode in range(0, 1 << 16, 1 << 9):
            for third_x, second_y in ((0, 0), (0, 7), (12, 0), (12, 7)):
                yield opcode | 0x104, third_x << 24 | 0x080106, 0x03000000 | second_y << 8, 0
    if 0xD000 <= high < 0xD100:
        for opcode in range(4):
            yield opcode << 14 | 1, 0x7C000000, 0x7C7C0400, 0
            yield opcode << 14 | 1, 0x7C000000, 0x100C0400, 0
            yield opcode << 14, 0, 0, 0
    if 0xEC00 <= high < 0xF000 or 0xC400 <= high < 0xC800 or 0xD800 <= high < 0xDC00:
        for opcode in range(4):
            yield opcode << 14 | 0x7C, 0x10, 0x20, 0
            yield opcode << 14, 0x10, 0x20, 0
            yield opcode << 14 | 0x7C, 0, 0, 0
        yield 0, 0x10080604, 0, 0
    if 0x5400 <= high < 0x5800 or 0x2000 <= high < 0x6000:  # 64-bit VOP2
        yield 0x0100, 0, 0, 0


def encodings(target: str) -> bytes:
    """Returns candidates of `STRIDE` bytes each, deterministically: each pattern of the upper 16
    bits with a few patterns of the rest; the opcodes of VOP1 and SOP1 are in lower bits."""
    generator = random.Random(target)
    bits = generator.getrandbits
    vop1, sop1 = range(0x7E00, 0x8000), range(0xBE80, 0xBF00)
    highs = [*range(1 << 16), *[*vop1, *sop1, *sop1, V_READLANE] * 12]
    made = bytearray()
    for high in highs:
        # VGPRs without modifiers are legal nearly everywhere; few modifiers are in most places.
        tried = [(bits(16), bits(32) & 0x0007FFFF), (0, bits(32) & bits(32))]
        if high < 0x8000:  # VOP1, VOP2, VOPC: SDWA with legal selectors, DPP
            sdwa = generator.randrange(7) << 8 | generator.randrange(3) << 11
            sdwa |= generator.randrange(7) << 16 | generator.randrange(7) << 24
            tried.append((bits(16) & 0xFE00 | 0xF9, sdwa | bits(8) | bits(2) << 19))
            tried.append((bits(16) & 0xFE00 | 0xFA, bits(32)))
            # Even registers and row_newbcast, which DPP allows for 64 bits.
            tried.append((bits(16) & 0xFC00 | 0xFA, 0xFF015000 | bits(8) & 0xFE))
        elif high & 0xFF80 in HARDWARE_REGISTER:
            tried.append((0xF801, bits(32)))
        elif 0xD000 <= high < 0xD400:  # VOP3, VOP3P
            tried += [(bits(8), bits(27)) for _ in range(12)]
            # A mask in scalar registers as the third source, the others in vector registers.
            tried += [(bits(3), 0x0028_0000 | bits(18) | 0x20100)]
            # Matrices: three vector registers (256 and up in nine bits) valid for any width.
            # They go first: of forms that differ only in numbers the first one is kept.
            fit = [(bits(8) & 0xE0, 0x04020100 | bits(27) & 0x0381C0E0) for _ in range(8)]
            tried = fit + tried
        elif high >= 0xC000:
            tried += [(bits(16) & bits(16), fixed | bits(32) & mask) for fixed, mask in MEMORY]
        for low, second in tried:
            made += struct.pack("<4I", high << 16 | low, second, bits(32), 0)
        if not facts_of(registry.find(target)).is_gfx9:
            for low, second, third in _rdna_candidates(high, bits):
                made += struct.pack("<4I", high << 16 | low, second, third, 0)
        if facts_of(registry.find(target)).vgprs > 256:
            for low, *rest in _cdna5_candidates(high, bits):
                made += struct.pack("<4I", high << 16 | low, *rest)
    return bytes(made)


@functools.cache
def universe(target: str) -> dict[str, tuple[tuple[str, bytes], ...]]:
    """Returns, for each mnemonic with its encoding suffix, the texts and encodings of up to
    `SHAPES` forms that differ in more than numbers."""
    code = encodings(target)
    disassembler = Disassembler(target, code, 0)
    found: dict[str, dict[str, tuple[str, bytes]]] = {}
    for at in range(0, len(code), STRIDE):
        decoded = disassembler.at(at)
        if decoded is not None:
            text, size = decoded
            shapes = found.setdefault(text.split()[0], {})
            if len(shapes) < SHAPES:
                shape = re.sub(r"\d+|0x[0-9a-f]+", "#", text)
                shapes.setdefault(shape, (text, code[at : at + size]))
    return {mnemonic: tuple(shapes.values()) for mnemonic, shapes in found.items()}


@dataclass(frozen=True)
class Coverage:
    """The mnemonics of a target, with their encoding suffixes, split by whether they are
    executed."""

    target: str
    implemented: frozenset[str]
    missing: frozenset[str]

    @property
    def plain_implemented(self) -> frozenset[str]:
        """Mnemonics, without suffix, that have an implemented encoding."""
        return frozenset(split_mnemonic(name)[0] for name in self.implemented)

    @property
    def plain(self) -> frozenset[str]:
        return frozenset(split_mnemonic(name)[0] for name in self.implemented | self.missing)


@functools.cache
def coverage(target: str) -> Coverage:
    names = universe(target)
    handlers = {name: 1 for operation in table.operations().values() for name in operation.handlers}
    allocation = Allocation(256, 256, 256, 512)
    row = registry.find(target)
    registers = Registers(allocation, Constants(0, 1 << 26), row, row.wave_size)
    operations = table.operations_of(target)

    def accepted(text: str, code: bytes) -> bool:
        # A new encoder for each: s_set_gpr_idx_on changes the meaning of what follows.
        encoder = Encoder(registers, operations, handlers, null_region=0)
        try:
            encoder.encode({0: parse(text, 0, len(code))}, text)
        except InputError:
            return False
        return True

    done = {name for name, forms in names.items() if any(accepted(*form) for form in forms)}
    return Coverage(target, frozenset(done), frozenset(names.keys() - done))


def report(target: str) -> Iterator[str]:
    """Yields the report's lines: the counts, then what is missing and why."""
    found = coverage(target)
    done, every = found.plain_implemented, found.plain
    yield (
        f"{target}: {len(done)} of {len(every)} instructions"
        f" ({len(found.implemented)} of {len(found.implemented | found.missing)} with encodings)"
    )
    groups: dict[str, list[str]] = {}
    for name in sorted(found.missing):
        plain = split_mnemonic(name)[0]
        shown = name if plain in done else plain
        reason = unsupported.reason(name) or "no reason is known"
        if shown not in groups.setdefault(reason, []):
            groups[reason].append(shown)
    for reason, names in groups.items():
        yield f"  {reason}:"
        yield from (f"    {name}" for name in names)


def main() -> int:
    targets = sys.argv[1:] or list(TARGETS)
    for target in targets:
        if target not in TARGETS:
            print(f"no such target: {target}; the emulator's are {', '.join(TARGETS)}")
            return UsageError.exit_code
        print("\n".join(report(target)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
