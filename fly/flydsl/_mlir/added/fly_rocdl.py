"""`flydsl._mlir.dialects.fly_rocdl`: types of copies and matrix instructions, and descriptors."""

from __future__ import annotations

import importlib
from typing import Any

from fly_dialect.atoms.amd import buffer, lds_transpose, mfma
from fly_dialect.atoms.amd.tdm import Tdm
from fly_dialect.atoms.amd.wmma import Gfx11Wmma, Gfx120xWmma, Gfx1250Wmma, Gfx1250WmmaScale

from fly.flydsl.numbers.types import text_of

# FlyDSL's class → the instruction of this project, and which of its fields are element types.
_TYPES: dict[str, Any] = {
    "CopyOpCDNA3BufferCopyType": buffer.BufferCopy,
    "CopyOpCDNA3BufferCopyLDSType": buffer.BufferCopyLds,
    "CopyOpCDNA3BufferAtomicType": buffer.BufferAtomic,
    "CopyOpCDNA4BufferLoadAsyncLDSType": buffer.BufferLoadAsyncLDS,
    "CopyOpCDNA4GlobalLoadAsyncLDSType": buffer.GlobalLoadAsyncLDS,
    "CopyOpCDNA4LdsReadTransposeType": lds_transpose.LdsReadTranspose,
    "CopyOpGFX1250TDMType": Tdm,
    "MmaOpCDNA3_MFMAType": mfma.Mfma,
    "MmaOpCDNA4_MFMAScaleType": mfma.MfmaScale,
    "MmaOpGFX11_WMMAType": Gfx11Wmma,
    "MmaOpGFX120X_WMMAType": Gfx120xWmma,
    "MmaOpGFX1250_WMMAType": Gfx1250Wmma,
    "MmaOpGFX1250_WMMAScaleType": Gfx1250WmmaScale,
}


class TargetAddressSpace:
    """Memory behind a buffer descriptor."""

    BufferDesc = "#fly_rocdl.buffer_desc"


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else text_of(value)


class _Kind(type):
    """The class of FlyDSL's types: `isinstance` asks for the instruction of this project."""

    family: type

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.family)


def _type(name: str, family: Any) -> type:
    def get(*fields: Any, **named: Any) -> Any:
        return family(*map(_plain, fields), **{key: _plain(one) for key, one in named.items()})

    doc = f"{family.__name__} of MLIR."
    return _Kind(name, (), {"get": staticmethod(get), "family": family, "__doc__": doc})


globals().update({name: _type(name, family) for name, family in _TYPES.items()})


def get_buffer_rsrc(ptr: Any) -> Any:
    """The buffer descriptor of a pointer."""
    universal = importlib.import_module("fly.flydsl.expr.rocdl.universal")
    get_buffer_rsrc = universal.get_buffer_rsrc

    return get_buffer_rsrc(ptr)


__all__ = [*_TYPES, "TargetAddressSpace", "get_buffer_rsrc"]
