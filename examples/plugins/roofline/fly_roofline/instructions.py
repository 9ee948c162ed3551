"""What a machine instruction costs: floating-point operations and bytes, by its opcode in MIR.

FLOPs are those that AMD's counters SQ_INSTS_VALU_{ADD,MUL,FMA,TRANS}_* and those of matrix
instructions, SQ_INSTS_VALU_MFMA_MOPS_*, stand for: an addition, subtraction or multiplication is 1;
a fused multiply-add 2; a reciprocal, root, exponential, logarithm, sine or cosine 1; a packed
instruction that for each half; a dot product of n pairs 2n; an M×N×K matrix product 2·M·N·K for
each of its blocks. Comparisons, minima, conversions, scalings (ldexp, div_scale, div_fixup) and
moves are none.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Cost(NamedTuple):
    """The costs of an instruction: FLOPs of each active lane, of the wave by scalar instructions,
    and of the wave by matrix instructions; bytes of global memory that each active lane loads,
    stores, and changes atomically; bytes that the wave loads by scalar loads."""

    flops: int = 0
    wave_flops: int = 0
    matrix: int = 0
    load: int = 0
    store: int = 0
    atomic: int = 0
    scalar: int = 0

    def plus(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Cost()
_TYPE = r"(?:F16|BF16|F32|F64|LEGACY_F32|DX9_ZERO_F32)"
# The first pattern that matches the opcode without V_ or S_ counts.
_FLOPS = (
    (rf"PK_(?:FMA|FMAC)_{_TYPE}", 4),
    (rf"PK_(?:ADD|MUL)_{_TYPE}", 2),
    (r"DOT2\w*_F(?:16|32)_(?:F|BF)16|DOT2C?(?:ACC)?_F32_(?:F|BF)16|DOT2_BF16_BF16", 4),
    (r"(?:FMA|MAD)_MIX(?:LO|HI)?_\w+", 2),
    (rf"(?:FMA|FMAC|FMAAK|FMAMK|MAD|MAC|MADAK|MADMK|DIV_FMAS)_{_TYPE}", 2),
    (rf"(?:ADD|SUB|SUBREV|MUL)_{_TYPE}", 1),
    (rf"(?:RCP|RCP_IFLAG|RSQ|SQRT|EXP|LOG|SIN|COS)_{_TYPE}", 1),
)
_PATTERNS = tuple((re.compile(rf"(?:{pattern})(?:_|$)"), flops) for pattern, flops in _FLOPS)
_MATRIX = re.compile(
    r"V_(?:MFMA(?:_SCALE)?|SMFMAC|WMMA(?:_SCALE(?:16)?)?|SWMMAC)_(?P<result>[A-Z]+\d+|BF16F32)_"
    r"(?P<m>\d+)X(?P<n>\d+)X(?P<k>\d+)"
    r"_?(?P<type>F32|F16|BF16_1K|BF16|F64|F8F6F4|\w+?)(?:_|$)"
)
# The K of the instructions with several blocks, and with 4 × 4 matrices always 16 of them (f64: 4).
_BLOCKS = {
    **{(32, k, name): 2 for k, name in ((1, "F32"), (4, "F16"), (2, "BF16"), (4, "BF16_1K"))},
    **{(16, k, name): 4 for k, name in ((1, "F32"), (4, "F16"), (2, "BF16"), (4, "BF16_1K"))},
}
_MEMORY = re.compile(r"(?:GLOBAL|BUFFER|TBUFFER)_(?P<what>LOAD|STORE|ATOMIC)_(?P<rest>\w+)")
_SCALAR = re.compile(r"S_(?:BUFFER_)?LOAD_(?P<rest>\w+)")
_SIZE = re.compile(r"(?P<unit>DWORD|[SU]?BYTE|[SU]?SHORT|[UI]8|[UI]16)(?:X(?P<count>\d+))?(?:_|$)")
# What goes to LDS, scratch or global memory by the address. Its space is data.
_FLAT = re.compile(r"FLAT_(?:LOAD|STORE|ATOMIC)_|IMAGE_")


class Unknown(Exception):
    """Raised for what can't be counted, with the reason."""


def cost(opcode: str) -> Cost:
    """Returns the cost of an opcode. Raises Unknown if it depends on an address."""
    if opcode.startswith("V_DUAL_"):
        first, _, second = opcode.removeprefix("V_DUAL_").partition("_X_")
        return Cost(flops=_flops(first) + _flops(second))
    if opcode.startswith("V_"):
        matrix = _MATRIX.match(opcode)
        if matrix is not None:
            return Cost(matrix=_matrix_flops(matrix))
        if opcode.startswith("V_S_"):  # gfx12: transcendental functions of scalars
            return Cost(wave_flops=_flops(opcode.removeprefix("V_S_")))
        return Cost(flops=_flops(opcode.removeprefix("V_")))
    scalar = _SCALAR.match(opcode)
    if scalar is not None:
        return Cost(scalar=_bytes(opcode, scalar["rest"]))
    if opcode.startswith("S_"):
        return Cost(wave_flops=_flops(opcode.removeprefix("S_")))
    memory = _MEMORY.match(opcode)
    if memory is not None:
        return _access(opcode, memory["what"], memory["rest"])
    if _FLAT.match(opcode):
        raise Unknown(f"{opcode} accesses LDS, scratch or global memory, by its address")
    if opcode.startswith(("INLINEASM", "SI_CALL", "S_SWAPPC")):
        raise Unknown(f"{opcode} runs other code")
    return NOTHING


def _flops(name: str) -> int:
    return next((flops for pattern, flops in _PATTERNS if pattern.match(name)), 0)


def _matrix_flops(found: re.Match[str]) -> int:
    if found["result"].startswith("I"):
        return 0
    m, n, k = (int(found[axis]) for axis in "mnk")
    if m == 4:
        blocks = 4 if found["type"] == "F64" else 16
    else:
        blocks = _BLOCKS.get((m, k, found["type"]), 1)
    return 2 * m * n * k * blocks


def _access(opcode: str, what: str, rest: str) -> Cost:
    if what == "ATOMIC":
        wide = re.search(r"_X2(?:_|$)|F64|_B64|_U64", rest) is not None
        return Cost(atomic=8 if wide else 4)
    size = _bytes(opcode, rest.removeprefix("LDS_"))
    return Cost(load=size) if what == "LOAD" else Cost(store=size)


def _bytes(opcode: str, rest: str) -> int:
    found = _SIZE.match(rest)
    if found is None:
        raise Unknown(f"the bytes of {opcode} are not known")
    unit = 4 if found["unit"] == "DWORD" else 1 if found["unit"][-1] in "E8" else 2
    return unit * int(found["count"] or 1)
