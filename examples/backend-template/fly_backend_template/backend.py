"""The backend's record: that of `rocm` with another lowering and another device."""

from fly_backend.amd import ROCM
from fly_common.record import replace

BACKEND = replace(
    ROCM,
    name="template",
    lowering="fly_backend_template.lowering:LOWERING",
    devices={"template": "fly_backend_template.device:CountingEmulator"},
)
