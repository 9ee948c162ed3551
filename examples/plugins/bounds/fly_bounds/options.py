"""The options of the plugin: each field is a flag, `--bounds-buffers=hardware`, and a variable,
FLY_BOUNDS_BUFFERS."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Options:
    axes: bool = field(
        default=True, metadata={"help": "Also check each coordinate against its axis."}
    )
    buffers: Literal["check", "hardware"] = field(
        default="check",
        metadata={"help": "Accesses through buffer descriptors: check, or leave to the hardware."},
    )
