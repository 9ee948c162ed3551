"""Modules that llc crashes on, without vector operations.

LLVM 22's instruction selection crashes on a `select` of an element of a vector whose sign bits a
XOR flips, as `opt` writes two of a sort's keys. Without operations on vectors such a module
compiles. Nothing but the crash tells which modules these are.
"""

from __future__ import annotations

from fly_common.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.source import Source

SCALARIZER = ("-passes=scalarizer", "-", "-o", "-")


def scalarized(source: Source) -> Source | None:
    """Returns the module with an operation for each element of a vector, which means the same. None
    if there is no such module: `opt` is missing or fails too, or the input is MIR."""
    from fly_common.errors import FlyError
    from fly_common.programs import toolchain

    if source.resume is not None:
        return None
    try:
        running = toolchain.start_program("opt", SCALARIZER, source.data)
    except FlyError:
        return None
    try:
        done = running.wait()
    finally:
        running.end()
    if done.returncode or not done.stdout:
        return None
    return replace(source, data=done.stdout)
