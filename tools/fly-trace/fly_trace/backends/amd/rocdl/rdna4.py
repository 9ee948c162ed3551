"""`fx.rocdl.rdna4`: gfx12."""

from __future__ import annotations

from fly_dialect.atoms import MmaOp
from fly_dialect.atoms.amd.wmma import Gfx120xWmma

from fly_trace.backends.amd.atoms import wmma
from fly_trace.backends.amd.waits import rdna4_s_waitcnt as s_waitcnt
from fly_trace.values.dtypes import F32, DType

__all__ = ["WMMA", "s_waitcnt"]


def WMMA(
    m: int,
    n: int,
    k: int,
    elem_ty_ab: DType,
    elem_ty_acc: DType = F32,
    *,
    sign_a: bool = False,
    sign_b: bool = False,
    clamp: bool = False,
) -> MmaOp:
    """The matrix instruction of gfx1200 and gfx1201. See `fx.rocdl.rdna3.WMMA`."""
    signs = {"sign_a": sign_a, "sign_b": sign_b, "clamp": clamp}
    return wmma(Gfx120xWmma, "fx.rocdl.rdna4.WMMA", m, n, k, elem_ty_ab, elem_ty_acc, **signs)
