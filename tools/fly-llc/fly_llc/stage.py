"""The stage: `compile` turns LLVM IR into an object, assembly or MIR with LLVM's `llc`."""

from __future__ import annotations

from fly_common.errors import InputError, Place, UsageError
from fly_common.record import replace

from fly_llc.codegen.options import EMITS, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.diagnostics import Warn

    from fly_llc.codegen.points import Point
    from fly_llc.codegen.source import Source


def compile(
    source: bytes, options: Options, name: str = "<stdin>", *, warn: Warn | None = None
) -> bytes:
    """Compiles `source`: LLVM IR text, bitcode, or MIR text.

    `name` is the input's name in messages. `warn` is called with each of llc's warnings.
    Raises InputError for errors of llc or of an inserted filter, UsageError for options that
    contradict the input, MissingError if LLVM or a filter is not found.
    """
    from fly_common.programs import process

    with process.limited(options.timeout):
        return _compile(source, options, name, warn)


def _compile(source: bytes, options: Options, name: str, warn: Warn | None) -> bytes:
    from fly_plugin import active

    from fly_llc.codegen import points
    from fly_llc.codegen.source import prepare

    if active() or b"\n!fly.plugins = " in source:
        source = _before_llc(source, name)
    prepared = prepare(source, options, name)
    generation = points.code_generation(prepared.target.cpu)
    own = {one.name for one in generation.ir_passes}
    if not own.isdisjoint(options.disable):
        options = replace(options, disable=tuple(n for n in options.disable if n not in own))
    if options.emit not in EMITS:
        if options.emit not in generation.kinds:
            raise UsageError(f"--emit {options.emit}: the module is for {prepared.target.cpu}")
        options = replace(options, emit="obj")
    made = _generate(prepared, options, warn)
    if options.emit != "obj" or not generation.finish or prepared.resume is not None:
        return _after_llc(made, options)
    from fly_common.resolve import resolve

    return _after_llc(resolve(generation.finish)(made, source), options)


def _before_llc(source: bytes, name: str) -> bytes:
    """Checks the plugins that LLVM IR was made with, and runs the slots before code generation.
    MIR has already passed them."""
    from fly_common import artifact
    from fly_plugin import active, contents, stamps

    if artifact.identify(source) == artifact.MIR:
        return source
    stamps.check(stamps.in_llvm(source), name, "fly-llc")
    for slot in ("llvm.end", "llc.begin") if active() else ():
        source = contents.apply(slot, source)
    return source


def _after_llc(made: bytes, options: Options) -> bytes:
    from fly_plugin import active

    if not active() or options.emit != "obj":
        return made
    from fly_plugin import contents

    return contents.apply("llc.end", made)


def _inserts(options: Options) -> bool:
    """Whether something runs or is omitted within the pipeline."""
    from fly_plugin import active

    if options.changes_pipeline or not active():
        return options.changes_pipeline
    from fly_plugin.contents import machine_seats

    return any(machine_seats())


def _generate(prepared: Source, options: Options, warn: Warn | None) -> bytes:
    from fly_llc.codegen import llc

    stop = None
    if options.emit == "mir":
        from fly_llc.codegen import points

        side, wanted = options.stop or ("stop-before", "pre-emit")
        side = side.removeprefix("stop-")
        stop = points.find(side, wanted, prepared.target.cpu, prepared.level)
        _check_order(prepared, stop)
    if _inserts(options):
        from fly_llc.insertion import interleaving

        return interleaving.compile(prepared, options, stop, warn)
    if stop is not None:
        return _stop(prepared, stop, warn)
    return llc.checked_output(llc.generate(prepared, options.emit), prepared, warn)


def _check_order(source: Source, stop: Point) -> None:
    from fly_llc.codegen import points

    if source.resume is None:
        return
    here = (source.target.cpu, source.level)
    if points.position(stop, *here) <= points.position(source.resume, *here):
        raise UsageError(f"can't stop {stop}: the MIR was already stopped {source.resume}")


def _stop(source: Source, stop: Point, warn: Warn | None) -> bytes:
    """Returns the MIR at the point `stop`, if resuming from it gives the object of an uninterrupted
    run. This is tried each time, because no table could guarantee it for every module."""
    from fly_llc.codegen import llc, points

    whole = llc.checked_output(llc.generate(source, "obj"), source, warn)

    def stopped(point: Point) -> bytes | None:
        mir = llc.generate(source, "mir", point).output
        if mir is None:
            return None
        again = llc.generate(source.at(point, mir), "obj").output
        return source.at(point, mir).data if again == whole else None

    if (mir := stopped(stop)) is not None:
        return points.note(stop, source.level) + mir
    here = (source.target.cpu, source.level)
    first = points.position(source.resume, *here) if source.resume else -1
    exact = []
    for named in points.named(source.target.cpu).values():
        point = named.point if source.level else named.unoptimised
        if point and points.position(point, *here) > first and stopped(point) is not None:
            exact.append(named.name)
    raise InputError(
        f"resuming {stop} would give different code than an uninterrupted run",
        place=Place(source.name),
        hint=f"for this module, resuming is exact at {', '.join(exact)}"
        if exact
        else f"for this module, resuming is exact nowhere; llc {stop.stop} shows the MIR there",
    )


def fingerprint(options: Options) -> str:
    """Identifies what this stage's result depends on besides its input: the options, llc's build,
    and the contents of every filter and plugin. The time limit is not included."""
    from fly_store import identity

    untimed = replace(options, timeout=None)
    parts = [f"fly-llc 6 {untimed} {identity.program('llc')}"]
    if options.changes_pipeline:
        from fly_llc.insertion import filters

        parts += filters.identities(options)
    return "\n".join(parts)
