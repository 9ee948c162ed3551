"""`--diff`: the comparison of code with and without insertions, by the backend's own means."""

from __future__ import annotations

from fly_common.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.options import Options


def report(source: bytes, made: bytes, options: Options, name: str) -> str:
    """Returns the table. UsageError if the backend compares nothing."""
    from fly_common.resolve import resolve

    from fly_llc.codegen import points
    from fly_llc.codegen.source import prepare

    target = prepare(source, options, name).target
    reference = points.code_generation(target.cpu).comparison
    if not reference:
        raise UsageError(
            f"--diff compares objects, but the result for {target.cpu} is text",
            hint="--emit asm with and without the insertions, and diff, compare it",
        )
    return resolve(reference)(source, made, options, name)
