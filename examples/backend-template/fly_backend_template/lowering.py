"""The backend's part of fly-opt-py: the pipeline of `rocm` with one other fragment."""

from __future__ import annotations

from collections.abc import Mapping

from fly_opt.backends.amd.lowering import RocmLowering
from fly_opt.backends.amd.pipeline import binary_preparation, pre_binary
from fly_opt.lowering.interface import Pipeline
from fly_target.target import Target

REPLACED = {"fly-kernel-attributes": "template-kernel-attributes{waves=4}"}


def template(target: Target, debug_info: bool) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → one LLVM module."""
    last = (REPLACED.get(fragment, fragment) for fragment in binary_preparation(debug_info))
    return (*pre_binary(target), *last)


class TemplateLowering(RocmLowering):
    # The pipeline with the backend's name is the one that its targets run.
    pipelines: Mapping[str, Pipeline] = {"template": template}
    passes: Mapping[str, str] = {
        **RocmLowering.passes,
        "template-kernel-attributes": "fly_backend_template.kernel_attributes",
    }


LOWERING = TemplateLowering()
