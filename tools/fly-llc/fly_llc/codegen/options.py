"""The options of a call of fly-llc."""

from __future__ import annotations

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record

EMITS = ("obj", "asm", "mir")


@record
class Options:
    """`emit` is "obj", "asm", "mir" or a backend's own name for its result (`points`). `level` is
    -O of code generation; None is 2, or for MIR the level at which it was made. `stop_after` and
    `stop_before` name the machine pass or point (`points.named`) at which to stop and print MIR.
    `start_after` and `start_before` are for MIR that does not record where it was stopped. `flags`
    are LLVM's own options ("-amdgpu-…=…").

    `insert` holds the programs to run on the MIR within the pipeline, in the syntax of `--insert`
    and `--replace` (`insertions.parse`). `disable` names passes to omit. `in_process` runs native
    passes in llc's own process instead of as filters. `verify` runs LLVM's machine verifier on each
    filter's output. `dump` is a folder for a MIR file per point. `timeout` is the limit in seconds
    for each run of llc or of a filter; None is `FLY_TIMEOUT`, or 300.
    """

    emit: str = "obj"
    level: int | None = None
    stop_after: str | None = None
    stop_before: str | None = None
    start_after: str | None = None
    start_before: str | None = None
    flags: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    in_process: bool = False
    verify: bool = True
    dump: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.emit not in EMITS:
            from fly_llc.codegen import points

            known = (*EMITS, *(kind for one in points.code_generations() for kind in one.kinds))
            if self.emit not in known:
                raise UsageError(f"--emit {self.emit}: must be one of {', '.join(known)}")
        if self.level not in (None, 0, 1, 2, 3):
            raise UsageError(f"-O {self.level}: must be 0, 1, 2 or 3")
        for pair in (("stop_after", "stop_before"), ("start_after", "start_before")):
            if all(getattr(self, name) for name in pair):
                first, second = (f"--{name.replace('_', '-')}" for name in pair)
                raise UsageError(f"{first} can't be combined with {second}")
        if self.stop and self.emit != "mir":
            raise UsageError(f"--{self.stop[0]} prints MIR, which contradicts --emit {self.emit}")
        if self.timeout is not None:
            from fly_common.programs import process

            process.check_limit(self.timeout, f"--timeout {self.timeout:g}")
        for flag in self.flags:
            if not flag.startswith("-"):
                raise UsageError(f"{quoted(flag)} is not an LLVM option: these begin with a dash")

    @property
    def stop(self) -> tuple[str, str] | None:
        """The name and the value of the option that stops the pipeline."""
        if self.stop_after:
            return "stop-after", self.stop_after
        return ("stop-before", self.stop_before) if self.stop_before else None

    @property
    def changes_pipeline(self) -> bool:
        """Whether something runs or is omitted within the pipeline."""
        return bool(self.insert or self.replace or self.disable or self.dump)
