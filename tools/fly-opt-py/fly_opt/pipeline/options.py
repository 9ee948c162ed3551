"""The options of a call of fly-opt-py, except those that only affect what it displays."""

from __future__ import annotations

from fly_common.record import record

EMISSIONS = ("mlir", "llvm", "host", "host-llvm")


@record
class Options:
    """The options that determine the output's bytes.

    `target`, `pipeline` and `passes` select what runs; see `pipelines.select`. Without options the
    module is parsed, verified and printed.
    """

    target: str | None = None  # gfx942: run that target's pipeline
    emit: str | None = None  # one of EMISSIONS; None: llvm where a target's pipeline runs
    passes: str | None = None  # a textual pipeline
    pipeline: str | None = None  # the name of a backend's pipeline
    debug_info: bool = False  # line tables in the LLVM IR (-g)
    locations: bool = False  # `loc(…)` in printed MLIR
    backend: str | None = None  # what compiles for the target; None: the backend of its row
    asserts: bool = True  # whether kernels check their asserts
