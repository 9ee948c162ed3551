"""The environment variables that the runtime reads in the process that uses it."""

from __future__ import annotations

from dataclasses import dataclass

from fly_common.errors import MissingError, UsageError
from fly_target import registry
from fly_target.target import Target

from fly_run.hip_runtime import injected

TARGET, DEFERRED = "FLY_HIP_TARGET", "FLY_HIP_DEFER_FAULTS"
LOG, LIMIT = "FLY_HIP_LOG", "FLY_HIP_MAX_INSTRUCTIONS"
DEFAULT_TARGET = "gfx942"


@dataclass(frozen=True)
class Settings:
    """`targets`: the chips, one device each. `failures`: the text of FLY_HIP_FAIL. `logs`: whether
    calls are printed. `defers`: whether the next call that waits returns a fault, instead of the
    launch. `limit`: of the wave instructions of a launch."""

    targets: tuple[Target, ...]
    failures: str
    logs: bool
    defers: bool
    limit: int | None


def read(given: dict[str, str]) -> Settings:
    """Reads the variables. UsageError or MissingError for a wrong one."""
    return Settings(
        targets(given.get(TARGET) or DEFAULT_TARGET),
        given.get(injected.VARIABLE, ""),
        given.get(LOG, "0") not in ("", "0"),
        given.get(DEFERRED, "0") not in ("", "0"),
        _limit(given.get(LIMIT, "")),
    )


def targets(text: str) -> tuple[Target, ...]:
    """Returns the chips of a list: "gfx942" or "gfx942,gfx1100"."""
    made = []
    for name in (one.strip() for one in text.split(",")):
        row = registry.get(name)
        if row is None or not row.emulated:
            known = ", ".join(registry.EMULATED)
            raise MissingError(f"the emulator does not run {name}", hint=f"it runs {known}")
        made.append(row)
    return tuple(made)


def _limit(text: str) -> int | None:
    if text and not (text.isdecimal() and int(text) > 0):
        raise UsageError(f"{LIMIT}={text}: must be a number of instructions above 0")
    return int(text) if text else None
