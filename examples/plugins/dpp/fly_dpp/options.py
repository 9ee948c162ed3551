"""The option of the plugin: `--dpp-report`, or FLY_DPP_REPORT=true."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    report: bool = field(
        default=False, metadata={"help": "Print to standard error what was replaced."}
    )
