"""`fx.rocdl.cdna4`: gfx950."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms import CopyOp, MmaOp
from fly_dialect.atoms.amd import buffer, lds_transpose, mfma
from fly_dialect.types import bits

from fly_trace.atoms.atom import element, made
from fly_trace.backends.amd.rocdl.cdna3 import s_waitcnt
from fly_trace.values.dtypes import F32, DType

__all__ = [
    "BufferLoadAsyncLDS",
    "BufferLoadAsyncLDS32b",
    "BufferLoadAsyncLDS96b",
    "BufferLoadAsyncLDS128b",
    "GlobalLoadAsyncLDS",
    "GlobalLoadAsyncLDS32b",
    "GlobalLoadAsyncLDS96b",
    "GlobalLoadAsyncLDS128b",
    "LDSReadTrans",
    "LDSReadTrans4_64b",
    "LDSReadTrans6_96b",
    "LDSReadTrans8_64b",
    "LDSReadTrans16_64b",
    "MFMAScale",
    "MFMA_Scale",
    "s_waitcnt",
]


def LDSReadTrans(trans_granularity: int, bit_size: int) -> CopyOp:
    """A transposing LDS read of elements of `trans_granularity` bits, executed by 16 threads."""
    family = lds_transpose.LdsReadTranspose
    return made(family, "fx.rocdl.cdna4.LDSReadTrans", trans_granularity, bit_size)


def BufferLoadAsyncLDS(bit_size: int) -> CopyOp:
    """An asynchronous buffer_load … lds. End a group with fx.rocdl.asyncmark(), and wait for it
    with fx.rocdl.wait_asyncmark(n). State: soffset, imm_offset."""
    return made(buffer.BufferLoadAsyncLDS, "fx.rocdl.cdna4.BufferLoadAsyncLDS", bit_size)


def GlobalLoadAsyncLDS(bit_size: int) -> CopyOp:
    """An asynchronous global_load_lds, from a tensor without a descriptor."""
    return made(buffer.GlobalLoadAsyncLDS, "fx.rocdl.cdna4.GlobalLoadAsyncLDS", bit_size)


def _of(function: Any, name: str, *fields: int) -> Any:
    def sized() -> CopyOp:
        return function(*fields)

    sized.__name__ = sized.__qualname__ = name
    sized.__doc__ = f"{function.__name__}({', '.join(map(str, fields))})"
    return sized


LDSReadTrans4_64b = _of(LDSReadTrans, "LDSReadTrans4_64b", 4, 64)
LDSReadTrans6_96b = _of(LDSReadTrans, "LDSReadTrans6_96b", 6, 96)
LDSReadTrans8_64b = _of(LDSReadTrans, "LDSReadTrans8_64b", 8, 64)
LDSReadTrans16_64b = _of(LDSReadTrans, "LDSReadTrans16_64b", 16, 64)
BufferLoadAsyncLDS32b = _of(BufferLoadAsyncLDS, "BufferLoadAsyncLDS32b", 32)
BufferLoadAsyncLDS96b = _of(BufferLoadAsyncLDS, "BufferLoadAsyncLDS96b", 96)
BufferLoadAsyncLDS128b = _of(BufferLoadAsyncLDS, "BufferLoadAsyncLDS128b", 128)
GlobalLoadAsyncLDS32b = _of(GlobalLoadAsyncLDS, "GlobalLoadAsyncLDS32b", 32)
GlobalLoadAsyncLDS96b = _of(GlobalLoadAsyncLDS, "GlobalLoadAsyncLDS96b", 96)
GlobalLoadAsyncLDS128b = _of(GlobalLoadAsyncLDS, "GlobalLoadAsyncLDS128b", 128)


def MFMA_Scale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: DType,
    elem_ty_b: DType | None = None,
    elem_ty_acc: DType = F32,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
) -> MmaOp:
    """A matrix instruction with a scale per block along K. State: scale_a, scale_b."""
    what = "fx.rocdl.cdna4.MFMA_Scale"
    a, acc = element(elem_ty_a, what), element(elem_ty_acc, what)
    b = a if elem_ty_b is None else element(elem_ty_b, what)
    runs = 2 if 8 in (bits(a), bits(b)) else 1
    fields = {"opsel_a": opsel_a, "opsel_b": opsel_b, "runs": runs}
    return made(mfma.MfmaScale, what, m, n, k, a, b, acc, **fields)


MFMAScale = MFMA_Scale
