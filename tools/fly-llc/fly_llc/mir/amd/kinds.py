"""Classifies AMD GPU instructions by LLVM's opcode names."""

from __future__ import annotations

import re

from fly_llc.mir.instruction import Instruction

_VMEM = re.compile(r"(GLOBAL|BUFFER|TBUFFER|FLAT|SCRATCH|IMAGE)_")
_LDS = re.compile(r"DS_")
_SMEM = re.compile(r"S_(?:BUFFER_)?(?:LOAD|STORE|ATOMIC|SCRATCH)_")
_STORE = re.compile(r"_STORE_|DS_WRITE|DS_STORE")
_ATOMIC = re.compile(
    r"ATOMIC|DS_(?:ADD|SUB|INC|DEC|MIN|MAX|AND|OR|XOR|CMP|WRXCHG|RSUB|MSKOR|APPEND)"
)
# Instructions that only compute on registers, and have no effects besides their operands.
_PLAIN = re.compile(
    r"V_(?!READFIRSTLANE|MOVREL|SET_INACTIVE|NOP|INTERP|EXP_)\w+"
    r"|S_(?:MOV|CMOV|NOT|BREV|BCNT|FF|FLBIT|CLZ|CTZ|CLS|SEXT|BITSET|ADD|SUB|MIN|MAX|CSELECT|AND|OR|XOR"
    r"|NAND|NOR|XNOR|LSHL|LSHR|ASHR|BFM|MUL|BFE|ABS|ABSDIFF|CMP|CMPK|BITCMP|PACK|MOVK|MULK|ADDK|CMOVK"
    r"|WQM|QUADMASK|CVT|FMAC|FMA|RNDNE|CEIL|FLOOR|TRUNC|BITREPLICATE)\w*"
    r"|COPY|IMPLICIT_DEF|REG_SEQUENCE|INSERT_SUBREG|EXTRACT_SUBREG|SUBREG_TO_REG"
)
_WAIT = re.compile(r"S_WAIT(?:CNT|_)")
_LOW = re.compile(r"S_(?:AND|OR|XOR|ANDN1|ANDN2|NAND|NOR|XNOR|NOT)\w*SAVEEXEC|\w*_(?:term|TERM)$")


def is_memory(one: Instruction) -> bool:
    return is_vector_memory(one) or is_lds(one) or is_scalar_memory(one)


def is_vector_memory(one: Instruction) -> bool:
    return _VMEM.match(one.opcode) is not None


def is_lds(one: Instruction) -> bool:
    return _LDS.match(one.opcode) is not None


def is_scalar_memory(one: Instruction) -> bool:
    return _SMEM.match(one.opcode) is not None


def is_wait(one: Instruction) -> bool:
    return _WAIT.match(one.opcode) is not None


def reads_memory(one: Instruction) -> bool:
    return is_memory(one) and not (_STORE.search(one.opcode) and not is_atomic(one))


def writes_memory(one: Instruction) -> bool:
    return is_memory(one) and bool(_STORE.search(one.opcode) or is_atomic(one))


def is_atomic(one: Instruction) -> bool:
    return _ATOMIC.search(one.opcode) is not None


def is_ordered(one: Instruction) -> bool:
    """Whether its memory operands prevent reordering."""
    return not one.memory or "volatile" in one.memory or _ordering.search(one.memory) is not None


_ordering = re.compile(r"\b(monotonic|acquire|release|acq_rel|seq_cst)\b")


def is_movable(one: Instruction) -> bool:
    """Whether an instruction may be reordered, subject to its operands and memory accesses. False
    for everything that is not known to be safe: barriers, waits, calls, control flow, bundles, mode
    changes."""
    if one.bundled or _LOW.fullmatch(one.opcode) or "$mode" in {o.register for o in one.defined}:
        return False
    return is_memory(one) or _PLAIN.fullmatch(one.opcode) is not None
