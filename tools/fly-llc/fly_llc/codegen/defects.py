"""Passes of LLVM that are known to generate wrong code for some modules, and code without them.

No property of LLVM IR tells where such a pass strikes, since LLVM forms much of what it needs
later. The machine code is checked instead, in two steps. The output of an ordinary run is searched
for instructions without which the pass cannot have struck, which takes microseconds. Only if they
are there, llc runs once more up to the pass, and for some passes to its end as well, and the MIR
decides. Where the pass would strike, code generation resumes after it, or starts again with llc's
option to leave it out. All other modules keep the bytes that llc gives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from fly_common.errors import InputError, Place
from fly_common.record import record, replace

from fly_llc.codegen import points
from fly_llc.codegen.points import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.llc import Run
    from fly_llc.codegen.source import Source


@record
class Defect:
    """A pass that generates wrong code. `fixed` is the first major version of LLVM whose releases
    all have the correction, `issue` where the defect is described.

    `possible` refers to a function of llc's output, what that is ("obj", "asm" or "mir") and the
    processor. It returns False only if the pass has not struck. `strikes` refers to a function of
    the MIR before the pass, which returns whether the pass may strike. If that is not enough to
    know, `struck` refers to one of the MIR before and after it, which returns whether it has.
    `option` is llc's option to leave the pass out, if there is one.
    """

    machine_pass: str
    fixed: int
    issue: str
    possible: str
    strikes: str
    struck: str | None = None
    option: str | None = None


def avoid(
    done: Run,
    source: Source,
    emit: str,
    stop: Point | None,
    generate: Callable[[Source, str, Point | None], Run],
) -> Run:
    """Returns `done`, llc's run for these arguments, or one without the passes that strike, which
    are listed in the pipeline's order. `generate` runs llc.

    Raises InputError if llc cannot leave such a pass out for this module.
    """
    for defect in points.code_generation(source.target.cpu).defects:
        if not done.output or not _may_have_struck(defect, done.output, source, emit, stop):
            continue
        mir = generate(source, "mir", Point("before", defect.machine_pass)).output
        if mir is not None and not _resolved(defect.strikes)(mir):
            continue
        if mir is not None and defect.struck:
            after = generate(source, "mir", Point("after", defect.machine_pass)).output
            if after is not None and not _resolved(defect.struck)(mir, after):
                continue
        source, again = _left_out(defect, source, mir, emit, stop, generate)
        if again is None or again.output is None:
            raise InputError(
                f"LLVM's {defect.machine_pass} generates wrong code for this module, and llc can't "
                "leave it out",
                place=Place(source.name),
                hint=f"a later LLVM has the correction of {defect.issue}",
            )
        left_out = (*done.left_out, defect.machine_pass)
        done = replace(again, stderr=done.stderr, left_out=left_out)
    return done


def _left_out(
    defect: Defect,
    source: Source,
    mir: bytes | None,
    emit: str,
    stop: Point | None,
    generate: Callable[[Source, str, Point | None], Run],
) -> tuple[Source, Run | None]:
    """Runs llc without a pass. `mir` is the module before it. Returns what llc started from, too:
    the passes that follow may have defects as well."""
    if any(flag.startswith(f"-fly-insert={defect.machine_pass}=") for flag in source.flags):
        raise InputError(
            f"LLVM's {defect.machine_pass} generates wrong code for this module, and can't be left "
            "out with a native pass after it in llc's process",
            place=Place(source.name),
            hint="without --in-process, a native pass runs as a filter",
        )
    # llc does not find a place beside a pass that it leaves out itself.
    ends = [point.machine_pass for point in (source.resume, stop) if point]
    if defect.option and defect.machine_pass not in ends:
        other = replace(source, flags=(*source.flags, defect.option))
        return other, generate(other, emit, stop)
    if mir is None:
        return source, None
    other = source.at(Point("after", defect.machine_pass), mir)
    return other, generate(other, emit, stop)


def _may_have_struck(
    defect: Defect, output: bytes, source: Source, emit: str, stop: Point | None
) -> bool:
    cpu, level = source.target.cpu, source.level
    if not _resolved(defect.possible)(output, "mir" if stop else emit, cpu):
        return False
    if llc_version() >= defect.fixed:
        return False
    if defect.machine_pass not in points.machine_passes(cpu, level):
        return False
    place = points.position(Point("before", defect.machine_pass), cpu, level)
    started = source.resume is None or points.position(source.resume, cpu, level) <= place
    return started and (stop is None or points.position(stop, cpu, level) > place)


@functools.cache
def llc_version() -> int:
    """Returns llc's major version. It is cached in the content store, as `machine_passes` is."""
    from fly_common.programs import toolchain
    from fly_store import identity
    from fly_store.store import Store, default_store, key_of

    def asked() -> bytes:
        return str(toolchain.version_of(toolchain.find_program("llc"))).encode()

    key = key_of(f"major version\n{identity.program('llc')}", b"")
    return int(Store(default_store().folder).obtain(key, asked, label="llc's version"))


def _resolved(reference: str) -> Callable[..., bool]:
    from fly_common.resolve import resolve

    return resolve(reference)
