"""The target of a trace, for programs that query it.

A trace is valid for every target unless the program queries its target through a function of a
backend. Then the module names the target.
"""

from __future__ import annotations

from fly_backend.registry import built_in, default, find
from fly_common.record import record
from fly_target import registry

from fly_trace.core import tracing

__all__ = ["get_arch"]

HINT = f"specify it: fly-trace --target {default().default_target} (@fly.jit knows its own)"


@record(frozen=False)
class Target:
    """`chip` is LLVM's name of a processor, or None. `asked` is set when the program queries it:
    the trace is then specific to this target."""

    chip: str | None = None
    asked: bool = False

    def __post_init__(self) -> None:
        if self.chip is not None:
            registry.find(self.chip)


def check_namespace(name: str) -> None:
    """Raises InputError if a program that is traced for a target uses the namespace `fx.NAME` of
    another backend."""
    builder = tracing.active()
    if builder is None or builder.target.chip is None:
        return
    row = registry.find(builder.target.chip)
    if name in find(row.backend).namespaces:
        return
    owners = {one.name for one in built_in() if name in one.namespaces}
    targets = [one for one, other in registry.BUILT_IN.items() if other.backend in owners]
    if row.backend in {one.name for one in built_in()}:
        tracing.refuse(
            f"fx.{name} is for other hardware than {row.name}: for {', '.join(targets)}",
            "use what every target has: fx.UniversalCopy128b and other universal copies,"
            " fx.UniversalFMA, fx.UniversalAtomicAdd",
        )


def chip(what: str) -> str:
    """Returns the target for `what`. Raises InputError if the trace has none."""
    target = tracing.current(what).target
    if target.chip is None:
        tracing.refuse(f"{what} depends on the target, but this trace is for all targets", HINT)
    target.asked = True
    return target.chip


def get_arch() -> str:
    """The name of the target, such as "gfx942" or "sm_90a". The trace is then specific to it."""
    return chip("fx.get_arch")
