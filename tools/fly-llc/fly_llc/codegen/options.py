"""What a call of fly-llc asks for."""

from __future__ import annotations

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record

EMITS = ("obj", "asm", "mir")


@record
class Options:
    """`emit` is "obj", "asm" or "mir". `level` is code generation's -O; None is 2, or for MIR the
    level it was made at. `stop_after` and `stop_before` name a machine pass or a point
    (`points.named`) at which to stop, giving MIR; `start_after` and `start_before` are for MIR that
    does not say where it was stopped. `flags` are options of LLVM's own ("-amdgpu-…=…").

    `insert` holds what runs on the MIR within the pipeline, in the words of `--insert` and
    `--replace` (`insertions.parse`); `disable` names passes that are left out. `in_process` runs
    native passes in llc's own process, and not as filters. `verify` runs LLVM's machine verifier on
    what each filter made. `dump` is a folder that gets a MIR file for each point. `timeout` ends
    each run of llc, and of a filter, that takes longer, in seconds; None is `FLY_TIMEOUT`, else
    300.
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
            raise UsageError(f"--emit {self.emit}: must be one of {', '.join(EMITS)}")
        if self.level not in (None, 0, 1, 2, 3):
            raise UsageError(f"-O {self.level}: must be 0, 1, 2 or 3")
        for pair in (("stop_after", "stop_before"), ("start_after", "start_before")):
            if all(getattr(self, name) for name in pair):
                first, second = (f"--{name.replace('_', '-')}" for name in pair)
                raise UsageError(f"{first} can't be combined with {second}")
        if self.stop and self.emit != "mir":
            raise UsageError(f"--{self.stop[0]} prints MIR, which contradicts --emit {self.emit}")
        if self.timeout is not None:
            from fly_common import process

            process.check_limit(self.timeout, f"--timeout {self.timeout:g}")
        for flag in self.flags:
            if not flag.startswith("-"):
                raise UsageError(f"{quoted(flag)} is not an LLVM option: these begin with a dash")

    @property
    def stop(self) -> tuple[str, str] | None:
        """The option that says where to stop, and its value."""
        if self.stop_after:
            return "stop-after", self.stop_after
        return ("stop-before", self.stop_before) if self.stop_before else None

    @property
    def weaves(self) -> bool:
        """Whether anything is to be done within the pipeline."""
        return bool(self.insert or self.replace or self.disable or self.dump)
