"""The points of the machine pipeline: where code generation stops, and goes on from MIR.

A point is before or after a machine pass, by the name llc knows it by; `greedy,1` is the second run
of a pass that runs several times. A backend names more of them by what people mean: `named`.

Stopping, printing MIR, reading it and going on gives the very bytes of an undisturbed run at nearly
every point for most modules. No point does so for every module: MIR does not carry the order in
which a call graph is compiled, all that alias analysis knew, nor stack slots that were removed; and
at a few places LLVM can't go on at all. So nothing here is promised: it is tried.
"""

from __future__ import annotations

import functools
import re

from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record


@record
class Point:
    """`side` is "before" or "after"."""

    side: str
    machine_pass: str

    def __str__(self) -> str:
        return f"{self.side} {self.machine_pass}"

    @property
    def stop(self) -> str:
        """llc's option that ends a run here."""
        return f"-stop-{self.side}={self.machine_pass}"

    @property
    def start(self) -> str:
        """llc's option that begins a run here."""
        return f"-start-{self.side}={self.machine_pass}"


@record
class Named:
    """A point by what holds there. Without optimisation (-O0) the pipeline has other passes; None
    where it has none of the kind.

    `promises` say what going on there gives for kernels without calls, by words of the backend's
    (`CodeGeneration`): "exact", the bytes of an undisturbed run, is what holds where nothing is
    said; "registers", the same instructions, perhaps with other registers; "other", perhaps other
    code. An llc that goes on from MIR lacks the alias analysis by address space, which LLVM adds
    together with the passes of IR: up to the last scheduling it keeps in order what it then can't
    tell apart.
    """

    name: str
    point: Point
    unoptimised: Point | None
    holds: str
    promises: tuple[tuple[str, str], ...] = ()

    def promise(self, word: str) -> str:
        """What going on gives for kernels that the word describes."""
        return dict(self.promises).get(word, "exact")


@record
class CodeGeneration:
    """A backend's machine pipeline. `triple` is what llc is asked about it by, `triples` the
    regular expression of the triples that it makes code for, `first_pass` the machine pass that all
    others are behind. `header_features` are the subtarget features that an object's header
    records."""

    triple: str
    triples: str
    first_pass: str
    header_features: tuple[str, ...]
    points: tuple[Named, ...]


@functools.cache
def code_generation(cpu: str) -> CodeGeneration:
    """The backend's of a processor; for one that has no row, the default backend's."""
    from fly_backend.registry import default, find
    from fly_common.resolve import resolve
    from fly_target import registry

    row = registry.BUILT_IN.get(cpu)
    return resolve((find(row.backend) if row else default()).codegen)


@functools.cache
def code_generations() -> tuple[CodeGeneration, ...]:
    """Those of the backends that come with the compiler."""
    from fly_backend.registry import built_in
    from fly_common.resolve import resolve

    return tuple(resolve(backend.codegen) for backend in built_in())


def named(cpu: str) -> dict[str, Named]:
    """The points of a processor's pipeline that have names, in the pipeline's order."""
    return {one.name: one for one in code_generation(cpu).points}


# The first line of the MIR that fly-llc prints, so that going on needs no flags. A YAML comment.
_NOTE = rb"# fly-llc: stopped (?P<side>before|after) (?P<pass>[\w,-]+) at -O(?P<level>[0-3])\n"


# Analyses run between the passes and change nothing: no points of their own.
_ANALYSES = (
    r"(machine-?(post)?dom(inator)?-?tree|machine-(loops|cycles|block-freq|opt-remark-emitter)"
    r"|lazy-machine-block-freq|slotindexes|liveintervals|livevars|livedebugvars|livestacks"
    r"|virtregmap|liveregmatrix|edge-bundles|spill-code-placement)(,\d+)?"
)


def is_analysis(name: str) -> bool:
    """Whether a pass only looks, and so is no point that one means."""
    return re.fullmatch(_ANALYSES, name) is not None


@functools.cache
def machine_passes(cpu: str, level: int) -> tuple[str, ...]:
    """The machine passes of a processor's pipeline in their order, as llc lists them. Each is
    distinct: the second run of a pass is `name,1`.

    The list is kept in the content store, by llc's content: asking llc takes as long as compiling.
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
    """The names of the machine passes, as llc prints them for these options."""
    from fly_common import toolchain

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
    """The point that a user names. UsageError for a pass that the pipeline does not have."""
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
    """Where a point is in the pipeline, for putting several in order."""
    place = machine_passes(cpu, level).index(point.machine_pass)
    return 2 * place + (point.side == "after")


def note(point: Point, level: int) -> bytes:
    """The line that says where MIR was stopped."""
    return f"# fly-llc: stopped {point} at -O{level}\n".encode()


def read_note(mir: bytes) -> tuple[Point, int] | None:
    """The point and the level that `note` wrote; None for MIR from elsewhere."""
    match = re.match(_NOTE, mir)
    if match is None:
        return None
    return Point(match["side"].decode(), match["pass"].decode()), int(match["level"])
