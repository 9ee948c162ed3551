"""The points of the machine pipeline at which code generation can stop and resume from MIR.

A point is before or after a machine pass, which is named as in llc: `greedy,1` is the second run of
a pass that runs several times. A backend gives some points names of their own: see `named`.

For most modules, stopping at a point, printing MIR and resuming from it gives the bytes of an
uninterrupted run. No point does so for every module: MIR lacks the order in which a call graph is
compiled, parts of the alias analysis, and removed stack slots. At a few points LLVM cannot resume
at all. fly-llc therefore does not rely on a table: it tries each point.
"""

from __future__ import annotations

import functools
import re

from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.defects import Defect
    from fly_llc.codegen.ir_defects import IRDefect


@record
class Point:
    """A point `side` ("before" or "after") a machine pass."""

    side: str
    machine_pass: str

    def __str__(self) -> str:
        return f"{self.side} {self.machine_pass}"

    @property
    def stop(self) -> str:
        """llc's option that stops here."""
        return f"-stop-{self.side}={self.machine_pass}"

    @property
    def start(self) -> str:
        """llc's option that starts here."""
        return f"-start-{self.side}={self.machine_pass}"


@record
class Named:
    """A point with a name of its own. The pipeline without optimisation (-O0) has other passes; the
    pass is None if it has no equivalent.

    `promises` maps groups of the backend (`CodeGeneration`) to what resuming here gives for kernels
    without calls: "exact", the bytes of an uninterrupted run, which is the default; "registers",
    the same instructions with possibly other registers; "other", possibly other code. An llc that
    resumes from MIR lacks the alias analysis by address space, which LLVM adds together with the IR
    passes: up to the last scheduling pass, it then keeps accesses in order that it cannot
    distinguish.
    """

    name: str
    point: Point
    unoptimised: Point | None
    holds: str
    promises: tuple[tuple[str, str], ...] = ()

    def promise(self, word: str) -> str:
        """Returns what resuming gives for kernels of the group `word`."""
        return dict(self.promises).get(word, "exact")


@record
class IRPass:
    """A pass of this project on LLVM IR. `run` refers to a function of the module's text, its
    target and LLVM's options, which returns another text or None."""

    name: str
    run: str


@record
class CodeGeneration:
    """A backend's machine pipeline. `triple` is used to query llc about it. `triples` and
    `processors` are regular expressions for the supported triples and the processors' names.
    `first_pass` is the machine pass that precedes all others.

    `ir_passes` are this project's own passes on LLVM IR, which run before llc's from -O1.
    `header_features` are regular expressions for the subtarget features that an object's header
    records, `default_features` those of a module that sets none. `product` is llc's file type of
    the result, which the next stage reads, and `kinds` are further names for it (`--emit`).
    `finish` refers to a function of the result and of the LLVM IR it was made from, which returns
    the result to print; `comparison` refers to the function behind --diff. `filters` are those of
    fly-llc's own filters that know the processors' instructions. `defects` and `ir_defects` are
    passes on machine code and on LLVM IR that generate wrong code for some modules.
    """

    triple: str
    triples: str
    processors: str
    first_pass: str
    header_features: tuple[str, ...]
    points: tuple[Named, ...]
    default_features: tuple[str, ...] = ()
    product: str = "obj"
    kinds: tuple[str, ...] = ()
    finish: str = ""
    comparison: str = ""
    filters: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()
    ir_defects: tuple[IRDefect, ...] = ()
    ir_passes: tuple[IRPass, ...] = ()

    def file_type(self, emit: str) -> str:
        """Returns llc's file type for `emit`, "obj" or "asm"."""
        return self.product if emit == "obj" else emit


@functools.cache
def code_generation(cpu: str) -> CodeGeneration:
    """Returns the machine pipeline of a processor: by its row, or by the form of its name. It is
    the default backend's if no other has such processors."""
    from fly_backend.registry import default, find
    from fly_common.resolve import resolve
    from fly_target import registry

    if row := registry.BUILT_IN.get(cpu):
        return resolve(find(row.backend).codegen)
    known = (one for one in code_generations() if re.fullmatch(one.processors, cpu))
    return next(known, None) or resolve(default().codegen)


@functools.cache
def of_triple(triple: str) -> CodeGeneration | None:
    """Returns the machine pipeline for a triple: that of the chips with this triple, or the first
    that supports it. None if none does."""
    from fly_backend.registry import find
    from fly_common.resolve import resolve
    from fly_target import registry

    row = next((row for row in registry.BUILT_IN.values() if row.triple == triple), None)
    if row is not None:
        return resolve(find(row.backend).codegen)
    return next((one for one in code_generations() if re.match(one.triples, triple)), None)


def code_generations() -> tuple[CodeGeneration, ...]:
    """Returns the machine pipelines of the built-in backends, then of the others in use."""
    from fly_backend.registry import loaded
    from fly_common.resolve import resolve

    return tuple(resolve(name) for name in dict.fromkeys(one.codegen for one in loaded()))


def named(cpu: str) -> dict[str, Named]:
    """Returns the named points of a processor's pipeline, in pipeline order."""
    return {one.name: one for one in code_generation(cpu).points}


def every_name() -> dict[str, str]:
    """Maps the named points of all machine pipelines in use to what holds there, in an order that
    agrees with each pipeline's."""
    order: list[str] = []
    holds: dict[str, str] = {}
    for one in code_generations():
        at = 0
        for point in one.points:
            if point.name not in holds:
                order.insert(at, point.name)
                holds[point.name] = point.holds
            at = order.index(point.name) + 1
    return {name: holds[name] for name in order}


# The first line of the MIR that fly-llc prints, a YAML comment. It makes flags for resuming
# unnecessary.
_NOTE = rb"# fly-llc: stopped (?P<side>before|after) (?P<pass>[\w,-]+) at -O(?P<level>[0-3])\n"


# Analyses run between the passes and change nothing. They are not points.
_ANALYSES = (
    r"(machine-?(post)?dom(inator)?-?tree|machine-(loops|cycles|block-freq|opt-remark-emitter)"
    r"|lazy-machine-block-freq|slotindexes|liveintervals|livevars|livedebugvars|livestacks"
    r"|virtregmap|liveregmatrix|edge-bundles|spill-code-placement)(,\d+)?"
)


def is_analysis(name: str) -> bool:
    """Returns whether a pass is an analysis, and so not a point."""
    return re.fullmatch(_ANALYSES, name) is not None


@functools.cache
def machine_passes(cpu: str, level: int) -> tuple[str, ...]:
    """Returns the machine passes of a processor's pipeline in order, as llc lists them. Repeated
    passes are numbered: the second run of a pass is `name,1`.

    The list is cached in the content store by llc's identity: querying llc takes as long as
    compiling.
    """
    from fly_store import identity
    from fly_store.store import Store, default_store, key_of

    words = [
        f"-mtriple={code_generation(cpu).triple}",
        f"-mcpu={cpu}",
        f"-O{level}",
        "-debug-pass=Arguments",
    ]
    key = key_of(f"machine passes\n{identity.program('llc')}", " ".join(words).encode())
    store = Store(default_store().folder)
    listed = store.obtain(
        key, lambda: _listed(words, code_generation(cpu).first_pass), label="machine passes"
    )
    runs: dict[str, int] = {}
    found = []
    for name in listed.decode().split():
        number = runs.get(name, 0)
        runs[name] = number + 1
        found.append(f"{name},{number}" if number else name)
    return tuple(found)


def _listed(words: list[str], first: str) -> bytes:
    """Returns the names of the machine passes, as llc prints them with these options."""
    from fly_common.programs import toolchain

    done = toolchain.run_program("llc", [*words, "-filetype=null", "-o", "-", "-"], b"")
    for line in done.stderr.decode(errors="replace").splitlines():
        names = [word.removeprefix("-") for word in line.split()]
        if first in names:
            return " ".join(names[names.index(first) :]).encode()
    raise MissingError(
        f"llc does not list the machine passes after {first}",
        hint=toolchain.HOW_TO_GET.format(name="llc"),
    )


def find(side: str | None, name: str, cpu: str, level: int) -> Point:
    """Returns the point that a user named. Raises UsageError if the pipeline lacks the pass."""
    known = named(cpu)
    if name in known:
        point = known[name].point if level else known[name].unoptimised
        if point is None:
            raise UsageError(
                f"there is no {name} at -O0", hint=f"it is {known[name].point} at -O1 to -O3"
            )
        return point
    if side is None:
        raise UsageError(
            f"{quoted(name)} is not an insertion point",
            hint=f"use before:{name} or after:{name}; the named points are {', '.join(known)}",
        )
    name = name.removesuffix(",0")
    passes = machine_passes(cpu, level)
    if name not in passes:
        raise _unknown(name, passes, cpu, level)
    return Point(side, name)


def _unknown(name: str, passes: tuple[str, ...], cpu: str, level: int) -> UsageError:
    import difflib

    near = difflib.get_close_matches(name, [*named(cpu), *passes], 3, 0.5)
    runs = [known for known in passes if known.partition(",")[0] == name.partition(",")[0]]
    if runs:
        hint = f"it runs {len(runs)} times: {', '.join(runs)}"
    elif near:
        hint = f"did you mean {' or '.join(near)}? --list-points lists them all"
    else:
        hint = "fly-llc --list-points lists them all"
    return UsageError(f"the pipeline of {cpu} at -O{level} has no machine pass {name}", hint=hint)


def position(point: Point, cpu: str, level: int) -> int:
    """Returns the position of a point in the pipeline, for sorting points."""
    place = machine_passes(cpu, level).index(point.machine_pass)
    return 2 * place + (point.side == "after")


def note(point: Point, level: int) -> bytes:
    """Returns the line that records where MIR was stopped."""
    return f"# fly-llc: stopped {point} at -O{level}\n".encode()


def read_note(mir: bytes) -> tuple[Point, int] | None:
    """Returns the point and the level that `note` wrote, or None for other MIR."""
    match = re.match(_NOTE, mir)
    if match is None:
        return None
    return Point(match["side"].decode(), match["pass"].decode()), int(match["level"])
