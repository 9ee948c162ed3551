"""The dialect `fly_rocdl`, for features specific to AMD hardware, with FlyDSL's names."""

from __future__ import annotations

from fly_dialect.amd.buffers import BUFFER_SPACE, check_buffer_ptr, infer_get_buffer_rsrc
from fly_dialect.extension import Extension
from fly_dialect.op_info import OpInfo

NAMESPACE = "fly_rocdl"

ROCDL = Extension(
    ops=(OpInfo("get_buffer_rsrc", 1, 1, infer_get_buffer_rsrc, dialect=NAMESPACE),),
    atoms={
        "fly_dialect.atoms.amd.mfma": ("fly_rocdl.cdna3.mfma", "fly_rocdl.cdna4.mfma_scale"),
        "fly_dialect.atoms.amd.wmma": (
            "fly_rocdl.gfx11.wmma",
            "fly_rocdl.gfx120x.wmma",
            "fly_rocdl.gfx1250.wmma",
            "fly_rocdl.gfx1250.wmma_scale",
        ),
        "fly_dialect.atoms.amd.buffer": (
            "fly_rocdl.cdna3.buffer_atomic",
            "fly_rocdl.cdna3.buffer_copy",
            "fly_rocdl.cdna3.buffer_copy_lds",
            "fly_rocdl.cdna4.buffer_load_async_lds",
            "fly_rocdl.cdna4.global_load_async_lds",
        ),
        "fly_dialect.atoms.amd.lds_transpose": ("fly_rocdl.cdna4.lds_read_trans",),
        "fly_dialect.atoms.amd.tdm": ("fly_rocdl.gfx1250.tdm",),
    },
    spaces={BUFFER_SPACE: check_buffer_ptr},
)
