"""The options of a call of fly-link."""

from __future__ import annotations

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record

EMITS = ("image", "ptx", "sass")


@record
class Options:
    """`emit` is "image" (what devices load), or for NVIDIA's GPUs "ptx" (the PTX itself, as an
    image that the driver compiles) or "sass" (its disassembly). `flags` are ptxas's own options.
    `timeout` is the limit in seconds for the linker; None is `FLY_TIMEOUT`, or 300.
    """

    emit: str = "image"
    flags: tuple[str, ...] = ()
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.emit not in EMITS:
            raise UsageError(
                f"--emit {quoted(self.emit)}: must be one of {', '.join(EMITS)}",
            )
        for flag in self.flags:
            if not flag.startswith("-"):
                raise UsageError(f"{quoted(flag)} is not an option of ptxas: these begin with a -")
        if self.timeout is not None:
            from fly_common.programs import process

            process.check_limit(self.timeout, f"--timeout {self.timeout:g}")
