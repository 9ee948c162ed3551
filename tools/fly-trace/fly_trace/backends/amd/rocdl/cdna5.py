"""`fx.rocdl.cdna5`: gfx1250."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fly_dialect.atoms import CopyOp, MmaOp
from fly_dialect.atoms.amd.tdm import MAX_RANK, NO_LIMIT, TILE_STRIDE, Tdm
from fly_dialect.atoms.amd.wmma import Gfx1250Wmma, Gfx1250WmmaScale

from fly_trace.atoms.atom import CopyAtom, element, made, make_copy_atom
from fly_trace.backends.amd.atoms import wmma
from fly_trace.backends.amd.scheduling import emit
from fly_trace.core import tracing
from fly_trace.gpu.immediates import number
from fly_trace.values.dtypes import F32, DType

__all__ = [
    "TDM",
    "WMMA",
    "WMMAScale",
    "make_tdm_atom",
    "s_wait_asynccnt",
    "s_wait_tensorcnt",
]


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
    """The matrix instruction of gfx1250. See `fx.rocdl.rdna3.WMMA`."""
    signs = {"sign_a": sign_a, "sign_b": sign_b, "clamp": clamp}
    return wmma(Gfx1250Wmma, "fx.rocdl.cdna5.WMMA", m, n, k, elem_ty_ab, elem_ty_acc, **signs)


def WMMAScale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: DType,
    elem_ty_b: DType | None = None,
    elem_ty_acc: DType | None = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
    mod_c: int = 0,
    reuse_a: bool = False,
    reuse_b: bool = False,
    block_size: int = 32,
) -> MmaOp:
    """A matrix instruction with an E8M0 scale for each `block_size` values along K, 32 or 16.

    State: `scale_a` and `scale_b`, whose byte i is the scale of block i of this thread's row of A
    or column of B (i32, or i64 for blocks of 16). `opsel_a` and `opsel_b` select the 16 threads
    that supply the scales, `mod_c` is a modifier of C, `reuse_a` and `reuse_b` are hints."""
    what = "fx.rocdl.cdna5.WMMAScale"
    a, acc = element(elem_ty_a, what), element(elem_ty_acc or F32, what)
    b = a if elem_ty_b is None else element(elem_ty_b, what)
    fields = {"opsel_a": opsel_a, "opsel_b": opsel_b, "mod_c": mod_c, "block_size": block_size}
    fields |= {"reuse_a": reuse_a, "reuse_b": reuse_b}
    return made(Gfx1250WmmaScale, what, m, n, k, a, b, acc, **fields)


def TDM(
    rank: int,
    num_warps: int,
    pad_interval: int = 0,
    pad_amount: int = 0,
    cache_modifier: int = 0,
    atomic_barrier: bool = False,
    early_timeout: bool = False,
) -> CopyOp:
    """A copy of a whole tile between global memory and LDS by the tensor data mover.

    The tile of `rank` modes, 1 to 5, is divided among `num_warps` waves, all of which execute the
    copy. In LDS, `pad_amount` elements are skipped after each `pad_interval`; a copy to memory has
    no such gaps. Wait for it with `s_wait_tensorcnt`. State: see `make_tdm_atom`, and
    `imm_offset`, bytes that are added to the address in memory."""
    fields = (rank, num_warps, pad_interval, pad_amount, cache_modifier)
    return made(Tdm, "fx.rocdl.cdna5.TDM", *fields, bool(atomic_barrier), bool(early_timeout))


def make_tdm_atom(
    tensor: Any,
    tensor_extents: Sequence[Any],
    strides: Sequence[Any] | None = None,
    *,
    num_warps: int,
    pad_interval: int = 0,
    pad_amount: int = 0,
    cache_modifier: int = 0,
    atomic_barrier: bool = False,
    early_timeout: bool = False,
) -> CopyAtom:
    """A copy atom of `TDM` for tiles of a tensor, whose elements it takes from `tensor`.

    `tensor_extents` says for each mode, the outermost first, how many elements the tensor has from
    the tile's start on: beyond them a tile gets zeros and is not stored. None is no limit.
    `strides` are the tensor's, in elements; the innermost is 1 and is not read. None stands for the
    tile's own stride."""
    extents = list(tensor_extents)
    given = [None] * len(extents) if strides is None else list(strides)
    if not 1 <= len(extents) <= MAX_RANK:
        tracing.refuse(
            f"make_tdm_atom: a tensor of {len(extents)} modes", f"it has 1 to {MAX_RANK}"
        )
    if len(given) != len(extents):
        tracing.refuse(f"make_tdm_atom: {len(extents)} extents need as many strides, or none")
    op = TDM(
        len(extents),
        num_warps,
        pad_interval,
        pad_amount,
        cache_modifier,
        atomic_barrier,
        early_timeout,
    )
    atom = make_copy_atom(op, tensor.element_type)
    for mode, extent in enumerate(extents):
        atom = atom.set_value(f"extent_{mode}", NO_LIMIT if extent is None else extent)
    for mode, stride in enumerate(given[:-1]):
        atom = atom.set_value(f"stride_{mode}", TILE_STRIDE if stride is None else stride)
    return atom


def _wait(name: str, what: str, count: Any) -> None:
    emit(name, what, count=f"{number(count, what, 63)} : i16")


def s_wait_tensorcnt(count: int = 0) -> None:
    """Waits until at most `count` copies of this wave by the tensor data mover are under way. The
    other waves' copies have arrived after a barrier that follows their wait."""
    _wait("s.wait.tensorcnt", "fx.rocdl.cdna5.s_wait_tensorcnt", count)


def s_wait_asynccnt(count: int = 0) -> None:
    """Waits until at most `count` asynchronous copies to or from LDS are under way."""
    _wait("s.wait.asynccnt", "fx.rocdl.cdna5.s_wait_asynccnt", count)
