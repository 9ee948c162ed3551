"""`flydsl.expr.rocdl.cdna5`: gfx1250."""

from __future__ import annotations

from typing import Any

from fly_trace.backends.amd.rocdl import cdna5 as _language

from fly.flydsl.expr.primitive import element

__all__ = ["TDM", "WMMAScale", "make_tdm_atom"]

TDM = _language.TDM


def WMMAScale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    **options: Any,
) -> Any:
    """A matrix instruction with block scales. Element types are the language's or MLIR's."""
    kinds = (element(one) for one in (elem_ty_a, elem_ty_b, elem_ty_acc))
    return _language.WMMAScale(m, n, k, *kinds, **options)


def make_tdm_atom(tensor: Any, tensor_extents: Any, strides: Any = None, **options: Any) -> Any:
    """A copy of a tile by the tensor data mover. ValueError if there are not 1 to 5 extents, or
    not as many strides."""
    extents = list(tensor_extents)
    given = None if strides is None else list(strides)
    if not 1 <= len(extents) <= 5:
        raise ValueError(f"make_tdm_atom: rank must be in [1, 5], got {len(extents)}")
    if given is not None and len(given) != len(extents):
        raise ValueError(f"make_tdm_atom: expected {len(extents)} strides, got {len(given)}")
    return _language.make_tdm_atom(tensor, extents, given, **options)
