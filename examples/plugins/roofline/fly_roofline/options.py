"""The options of the plugin: `--roofline-plot FILE`, or FLY_ROOFLINE_PLOT, and so on. They are for
fly-run; what is compiled does not depend on them."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    peak_flops: float = field(
        default=0.0,
        metadata={"help": "The chip's most FLOPs per second by vector instructions; 0: its data."},
    )
    peak_matrix_flops: float = field(
        default=0.0, metadata={"help": "The same by matrix instructions."}
    )
    peak_bandwidth: float = field(
        default=0.0, metadata={"help": "The chip's most bytes per second of memory."}
    )
    plot: str = field(default="", metadata={"help": "Write a plot to this file, as SVG."})

    def __post_init__(self) -> None:
        if min(self.peak_flops, self.peak_matrix_flops, self.peak_bandwidth) < 0:
            raise ValueError("a peak is a positive number")
