"""Options for running kernels, common to all devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_run.emulator.watch.observe import Observer

# Called periodically while a kernel runs, with the workgroups done and their total.
Progress = Callable[[int, int], None]

MFMA = ("exact", "fast")  # arithmetic models of matrix instructions
STRICT = "FLY_STRICT"  # environment variable for --strict


@dataclass(frozen=True)
class Options:
    """Options for running kernels. A device ignores or rejects those it does not support.

    `max_instructions` limits the wave instructions of a launch. `threads` is the number of host
    threads for a long grid; by default the number of processors, or one if the order of workgroups
    would affect the result. `observers` are notified of executed instructions. `mfma` selects the
    arithmetic of emulated matrix instructions: "exact" follows the best public model of the
    hardware, "fast" uses chains of fused multiply-adds. `strict` stops a launch that reads
    registers before their loads have arrived, races on LDS, or depends on uninitialised values; on
    `cpu`, one that races on shared memory. The environment variable FLY_STRICT=1 enables it too.
    """

    max_instructions: int | None = None
    threads: int | None = None
    progress: Progress | None = None
    observers: tuple[Observer, ...] = ()
    mfma: str = "exact"
    strict: bool = False

    @property
    def private(self) -> bool:
        """Whether a device with these options serves a single caller, who observes its launches."""
        return bool(self.observers or self.strict or self.progress)

    @property
    def emulators(self) -> str | None:
        """The first of these options that asks for something that only the emulator does (`strict`:
        and `cpu`), as the command line calls it."""
        asked = (
            ("--strict (FLY_STRICT)", self.strict),
            ("--stats or --trace", bool(self.observers)),
            ("--max-instructions", self.max_instructions is not None),
            ("--threads", self.threads is not None),
            (f"--mfma {self.mfma}", self.mfma != MFMA[0]),
        )
        return next((option for option, is_asked in asked if is_asked), None)


DEFAULTS = Options()


def in_environment(options: Options | None) -> Options:
    """Returns the options, updated from the environment."""
    options = options or DEFAULTS
    if not options.strict and os.environ.get(STRICT, "0") not in ("", "0"):
        return replace(options, strict=True)
    return options
