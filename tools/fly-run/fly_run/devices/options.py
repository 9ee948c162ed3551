"""How a device is to run kernels, whichever it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_run.emulator.watch.observe import Observer

# Called now and then while a kernel runs: workgroups done, workgroups in all.
Progress = Callable[[int, int], None]

MFMA = ("exact", "fast")  # how matrix instructions may be computed
STRICT = "FLY_STRICT"  # in the environment: what --strict is on the command line


@dataclass(frozen=True)
class Options:
    """What a device can't do of this it ignores or refuses.

    `max_instructions` ends a launch after so many wave instructions. `threads` is how many host
    threads share a long grid; unless it is given, as many as there are processors, and one where
    the order of workgroups would show. `observers` hear of instructions as they are executed.
    `mfma` is how matrix instructions are computed where they are emulated: "exact", as the best
    public model of the hardware has it, or "fast", as chains of fused multiply-adds.
    `strict` ends a launch that reads registers before their loads have arrived, races on LDS, or
    lets uninitialised values matter; FLY_STRICT=1 in the environment asks for it too.
    """

    max_instructions: int | None = None
    threads: int | None = None
    progress: Progress | None = None
    observers: tuple[Observer, ...] = ()
    mfma: str = "exact"
    strict: bool = False

    @property
    def private(self) -> bool:
        """Whether a device with these options belongs to one caller, who hears of its launches."""
        return bool(self.observers or self.strict or self.progress)


DEFAULTS = Options()


def in_environment(options: Options | None) -> Options:
    """The options, with what the environment asks for."""
    options = options or DEFAULTS
    if not options.strict and os.environ.get(STRICT, "0") not in ("", "0"):
        return replace(options, strict=True)
    return options
