"""Disassembles machine code with LLVM's own disassembler in libLLVM, called through ctypes.

A call costs 4-9 µs. The library is opened with RTLD_LOCAL: MLIR's bindings contain another LLVM,
and the two can share a process as long as neither sees the other's symbols.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from fly_common.errors import MissingError
from fly_common.programs import toolchain
from fly_target import registry
from fly_target.amd.facts import facts_of
from fly_target.amd.triple import TRIPLE

_PADDING = 16  # bytes, as many as the longest instruction
_TEXT_ROOM = 512  # the longest text LLVM prints for these targets has under 200 characters


class Disassembler:
    """Disassembles `code`, whose first byte has the address `base`, for waves of `wave_size` lanes,
    which is the width of masks. None: the target's default."""

    def __init__(self, target: str, code: bytes, base: int, wave_size: int | None = None):
        self.code = code
        self.base = base
        self._library = _library()
        self._context = _context(target, wave_size or registry.find(target).wave_size)
        is_gfx9 = facts_of(registry.find(target)).is_gfx9
        self._is_forbidden = _is_forbidden if is_gfx9 else _is_forbidden_rdna
        # LLVM 22 reads past the end for a literal that does not fit, so the code is padded.
        self._padded = code + bytes(_PADDING)
        self._start = ctypes.cast(ctypes.c_char_p(self._padded), ctypes.c_void_p).value or 0
        self._text = ctypes.create_string_buffer(_TEXT_ROOM)

    def at(self, pc: int) -> tuple[str, int] | None:
        """Returns the text and the size in bytes of the instruction at `pc`; None for bytes that
        encode nothing, operands the encoding forbids, or an address outside the code."""
        offset = pc - self.base
        left = len(self.code) - offset
        if offset < 0 or left < 4 or offset % 4:
            return None
        if self._is_forbidden(self.code[offset : offset + 16]):
            return None
        start: Any = self._start + offset
        patched = _with_third_source(self.code[offset : offset + 16])
        if patched is not None and self._is_forbidden is _is_forbidden_rdna:
            start = ctypes.c_char_p(patched)
        size = self._library.LLVMDisasmInstruction(
            self._context, start, left + _PADDING, pc, self._text, _TEXT_ROOM
        )
        if not 0 < size <= left:
            return None
        text = self._text.value.decode().strip()
        # LLVM marks what the encoding forbids with comments: `/*Invalid immediate*/` after an
        # operand, `; Warning: SGPR_64: scalar reg isn't aligned 7` at the end.
        return (text, size) if text and "/*" not in text and ";" not in text else None


def _is_forbidden(code: bytes) -> bool:
    """Whether `code` is one of the illegal encodings of gfx9 on which LLVM 22 crashes.

    There are three kinds. SDWA selectors 7 are reserved, and the printer's table has seven entries.
    A 64-bit encoding has no room for a literal (source 255; only gfx10 and later allow it), and the
    printer reads a subtarget feature table that does not exist. If the two matrices of gfx950's
    f8f6f4 MFMA are constants, the decoder treats them as registers. Field positions: CDNA3 ISA,
    chapter "Microcode Formats"; found by disassembling a million random encodings a target.
    """
    low = int.from_bytes(code[:4], "little")
    high = int.from_bytes(code[4:8], "little")
    if low >> 31 == 0:
        if low & 0x1FF != 0xF9:  # not SDWA
            return False
        kind = low >> 25
        is_vop1, is_vopc = kind == 0x3F, kind == 0x3E
        return (
            (high >> 16) & 7 == 7
            or (not is_vop1 and (high >> 24) & 7 == 7)
            or (not is_vopc and (high >> 8) & 7 == 7)
        )
    encoding = low >> 26
    if encoding == 0x34:  # VOP3 and VOP3P
        if 255 in (high & 0x1FF, (high >> 9) & 0x1FF, (high >> 18) & 0x1FF):
            return True
        opcode = (low >> 16) & 0x3FF
        if opcode == _LD_SCALE and len(code) > 8:  # the first half of a 128-bit encoding
            return _is_forbidden(code[8:])
        if opcode in _F8F6F4 and not (high & 0x100 and high & 0x20000):
            return True
        scalar_result = opcode < 0x100 or opcode in (_READLANE, _READFIRSTLANE)
        return scalar_result and low & 0xFF == 255
    return encoding in (0x38, 0x3A) and high >> 24 == 255  # MUBUF, MTBUF: soffset


def _is_forbidden_rdna(code: bytes) -> bool:
    """Like `_is_forbidden`, for gfx11 and later: gfx12's barrier instructions can't have a literal
    (source 255), and the printer reads its bits. If the matrices of gfx1250's f8f6f4 WMMA are not
    vector registers, the decoder treats them as such, as for gfx950."""
    low = int.from_bytes(code[:4], "little")
    if low >> 23 == _SOP1:
        return low & 0xFF == 255 and (low >> 8 & 0xFF) in _BARRIERS
    if low >> 16 in _SCALED_WMMA:  # the first half of a 128-bit encoding
        code = code[8:]
        low = int.from_bytes(code[:4], "little")
    high = int.from_bytes(code[4:8], "little")
    return low >> 16 & 0xFFFF == _F8F6F4_WMMA and not (high & 0x100 and high & 0x20000)


def _with_third_source(code: bytes) -> bytes | None:
    """Returns a scaled WMMA with the value that LLVM 22 expects in the unused third source of its
    first half; newer assemblers put 0 there. None for other code."""
    low, high = (int.from_bytes(code[start : start + 4], "little") for start in (0, 4))
    if low >> 16 not in _SCALED_WMMA or len(code) < 16:
        return None
    high = high & ~(0x1FF << 18) | 0x100 << 18
    return code[:4] + high.to_bytes(4, "little") + code[8:] + bytes(_PADDING)


_SOP1, _BARRIERS = 0x17D, range(0x4E, 0x53)  # top bits of the encoding, gfx12's opcodes in it
_SCALED_WMMA, _F8F6F4_WMMA = (0xCC35, 0xCC3A), 0xCC33  # upper halves of gfx1250's encodings
_READLANE, _READFIRSTLANE = 0x289, 0x142  # VOP3 opcodes whose destination is scalar
_LD_SCALE, _F8F6F4 = 0x3AC, (0x3AD, 0x3AE)  # VOP3P opcodes of gfx950


@functools.cache
def _library() -> Any:
    path = toolchain.find_library()
    try:
        # PyDLL keeps the GIL: a call takes less time than releasing it, and an LLVM context is not
        # thread-safe.
        library = ctypes.PyDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        for part in ("TargetInfo", "TargetMC", "Disassembler"):
            getattr(library, f"LLVMInitializeAMDGPU{part}")()
        create = library.LLVMCreateDisasmCPUFeatures
        decode = library.LLVMDisasmInstruction
    except (OSError, AttributeError) as error:
        raise MissingError(
            f"{path} can't disassemble AMD GPU code: {error}",
            hint="install an LLVM built with the AMDGPU target (Debian: apt-get install llvm-22),"
            " or set FLY_LLVM_DIR",
        ) from None
    pointer = ctypes.c_void_p
    create.restype = pointer
    create.argtypes = [ctypes.c_char_p] * 3 + [pointer, ctypes.c_int, pointer, pointer]
    decode.restype = ctypes.c_size_t
    decode.argtypes = [
        pointer, pointer, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
    ]  # fmt: skip
    return library


@functools.cache
def _context(target: str, wave_size: int) -> int:
    """Returns LLVM's disassembler for a processor. It lives as long as the process."""
    row = registry.find(target)
    features = [facts_of(row).features]
    if len(row.wave_sizes) > 1:
        features.append(f"+wavefrontsize{wave_size}")
    context = _library().LLVMCreateDisasmCPUFeatures(
        TRIPLE.encode(),
        row.cpu.encode(),
        ",".join(filter(None, features)).encode(),
        None,
        0,
        None,
        None,
    )
    if not context:
        raise MissingError(f"this LLVM has no disassembler for {target}")
    return context
