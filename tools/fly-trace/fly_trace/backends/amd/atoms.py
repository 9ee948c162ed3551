"""Copy and matrix instructions of AMD's targets."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms import CopyOp, MmaOp
from fly_dialect.atoms.amd import buffer, mfma
from fly_dialect.atoms.amd.wmma import Gfx11Wmma, Gfx120xWmma, Gfx1250Wmma

from fly_trace.atoms.atom import AtomicOp, element, made
from fly_trace.backends.amd.arch import chosen
from fly_trace.values.dtypes import F32, DType

__all__ = [
    "MFMA",
    "WMMA",
    "BufferAtomic",
    "BufferAtomicAdd",
    "BufferAtomicMax",
    "BufferAtomicMin",
    "BufferAtomicPkAdd",
    "BufferCopy",
    "BufferCopy8b",
    "BufferCopy16b",
    "BufferCopy32b",
    "BufferCopy64b",
    "BufferCopy128b",
    "BufferCopyLDS",
    "BufferCopyLDS32b",
    "BufferCopyLDS128b",
    "SyncScope",
]


_WMMA = {"RDNA3": Gfx11Wmma, "RDNA4": Gfx120xWmma, "gfx1250": Gfx1250Wmma}


class SyncScope:
    """LLVM's AMDGPU synchronization scopes."""

    Agent, Workgroup, Wavefront, OneAs = "agent", "workgroup", "wavefront", "one-as"
    AgentOneAs, WorkgroupOneAs = "agent-one-as", "workgroup-one-as"
    WavefrontOneAs, SingleThreadOneAs = "wavefront-one-as", "singlethread-one-as"


def BufferCopy(bit_size: int, cache_modifier: int = 0) -> CopyOp:
    """buffer_load or buffer_store of `bit_size` bits, to or from a tensor of make_buffer_tensor.
    `cache_modifier` 2 is non-temporal. State: soffset, in elements."""
    return made(buffer.BufferCopy, "fx.rocdl.BufferCopy", bit_size, cache_modifier)


def _copy(bits: int) -> Any:
    def function(cache_modifier: int = 0) -> CopyOp:
        return BufferCopy(bits, cache_modifier)

    function.__name__ = function.__qualname__ = f"BufferCopy{bits}b"
    function.__doc__ = f"BufferCopy of {bits} bits."
    return function


BufferCopy8b, BufferCopy16b, BufferCopy32b = _copy(8), _copy(16), _copy(32)
BufferCopy64b, BufferCopy128b = _copy(64), _copy(128)


def BufferCopyLDS(bit_size: int) -> CopyOp:
    """buffer_load … lds: from memory with a descriptor directly to LDS. State: soffset,
    imm_offset."""
    return made(buffer.BufferCopyLds, "fx.rocdl.BufferCopyLDS", bit_size)


def BufferCopyLDS32b() -> CopyOp:
    """BufferCopyLDS of 32 bits."""
    return BufferCopyLDS(32)


def BufferCopyLDS128b() -> CopyOp:
    """BufferCopyLDS of 128 bits (gfx950)."""
    return BufferCopyLDS(128)


def BufferAtomic(atomic_op: str, val_type: DType) -> CopyOp:
    """An atomic update of memory with a descriptor. State: soffset."""
    what = "fx.rocdl.BufferAtomic"
    return made(buffer.BufferAtomic, what, atomic_op, element(val_type, what))


def _atomic(op: str) -> Any:
    def function(val_type: DType) -> CopyOp:
        return BufferAtomic(op, val_type)

    function.__name__ = function.__qualname__ = f"BufferAtomic{op.title()}"
    function.__doc__ = f"An atomic `{op}` to memory behind a descriptor."
    return function


BufferAtomicAdd, BufferAtomicMax = _atomic("add"), _atomic("max")
BufferAtomicMin = _atomic("min")


def BufferAtomicPkAdd(val_type: DType) -> CopyOp:
    """An atomic addition of two packed 16-bit floats."""
    what = "fx.rocdl.BufferAtomicPkAdd"
    return made(buffer.BufferAtomic, what, AtomicOp.Add, f"vector<2x{element(val_type, what)}>")


def MFMA(m: int, n: int, k: int, elem_ty_ab: DType, elem_ty_acc: DType = F32) -> MmaOp:
    """A CDNA matrix instruction on an m × n × k tile. A and B have `elem_ty_ab`, C and D
    `elem_ty_acc`."""
    what = "fx.rocdl.MFMA"
    ab, acc = element(elem_ty_ab, what), element(elem_ty_acc, what)
    return made(mfma.Mfma, what, m, n, k, ab, ab, acc)


def WMMA(
    m: int, n: int, k: int, elem_ty_ab: DType, elem_ty_acc: DType = F32, **signs: bool
) -> MmaOp:
    """The matrix instruction of the trace's target: RDNA3, RDNA4 or gfx1250. See
    `fx.rocdl.rdna3.WMMA` and `rdna4.WMMA`. The part of a tile that a thread holds differs between
    them."""
    what = "fx.rocdl.WMMA"
    return wmma(chosen(what, _WMMA), what, m, n, k, elem_ty_ab, elem_ty_acc, **signs)


def wmma(family: Any, what: str, m: int, n: int, k: int, ab: Any, acc: Any, **signs: bool) -> MmaOp:
    """The WMMA of one generation."""
    ab, acc = element(ab, what), element(acc, what)
    return made(family, what, m, n, k, ab, ab, acc, **signs)
