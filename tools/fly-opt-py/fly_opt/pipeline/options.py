"""What a call of fly-opt-py asks for, apart from what it is shown along the way."""

from __future__ import annotations

from dataclasses import dataclass

EMISSIONS = ("mlir", "llvm", "host", "host-llvm")


@dataclass(frozen=True)
class Options:
    """The options that decide the output's bytes.

    Of `target`, `pipeline`, `passes` the first that applies decides what runs; see
    `pipelines.select`. Nothing given means: parse, verify, print.
    """

    target: str | None = None  # gfx942: run that target's pipeline
    emit: str | None = None  # one of EMISSIONS; None: llvm where a target's pipeline runs
    passes: str | None = None  # a textual pipeline
    pipeline: str | None = None  # a pipeline of `the backends` by name
    debug_info: bool = False  # line tables in the LLVM IR (-g)
    locations: bool = False  # `loc(…)` in printed MLIR
