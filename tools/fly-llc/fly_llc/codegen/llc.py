"""Runs LLVM's `llc`: its command line, its output, and its error messages.

`llc` always reads standard input and never sees a file name or folder, so the output cannot depend
on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fly_common.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.diagnostics import Warn
    from fly_common.programs.process import Running

    from fly_llc.codegen.options import Options
    from fly_llc.codegen.points import Point
    from fly_llc.codegen.source import Source

# After a crash, llc would spend 0.15 s on symbolizing a stack that nobody sees.
LOAD = "-load=/proc/self/fd/"  # loads a library in memory (`native.shim`)
STREAMS = ("-disable-symbolication", "-o", "-", "-")


@record
class Run:
    """llc's output (None if it failed), its standard error, and the signal that ended it.
    `left_out` are passes that would have generated wrong code (`defects`)."""

    output: bytes | None
    stderr: str
    signal: int | None = None
    left_out: tuple[str, ...] = ()


def generate(
    source: Source,
    emit: str,
    stop: Point | None = None,
    *,
    verify: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> Run:
    """Runs code generation of `source` to the end ("obj" or "asm"), or to the point `stop`, as MIR.

    Without `stop`, and for IR, the command line is one that a user would type. With `verify`,
    LLVM's machine verifier runs after each pass, which is cheap compared with a separate run.
    `meanwhile` is called while llc runs. Passes that would generate wrong code for this module are
    left out (`defects`) or get another input (`ir_defects`), and a module on which llc crashes is
    tried once more in another form (`crashes`). A module that llc refuses is compiled without the
    changes of this project's passes, so that messages are about the module that was given.
    """
    from fly_llc.codegen import points

    source, done = _searched(source, emit, stop, verify, meanwhile)
    if done.output is None and source.plain is not None:
        source = replace(source, data=source.plain, plain=None)
        source, done = _searched(source, emit, stop, verify)
    if done.signal is not None:
        from fly_llc.codegen import crashes

        other = crashes.scalarized(source)
        if other is not None:
            other, again = _searched(other, emit, stop, verify)
            if again.output is not None:
                source, done = other, again
    if done.output is None or not points.code_generation(source.target.cpu).defects:
        return done
    from fly_llc.codegen import defects

    return defects.avoid(done, source, emit, stop, _generate)


def _searched(
    source: Source,
    emit: str,
    stop: Point | None = None,
    verify: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[Source, Run]:
    """Runs code generation, and again if a pass on LLVM IR needs another input (`ir_defects`).
    Returns the module of the last run and its result."""
    from fly_llc.codegen import ir_defects

    searches: list[ir_defects.Search | None] = []

    def start_again(option: str) -> Running:
        target = source.target
        words = code_words(target.cpu, source.level, source.flags, target.features)
        return start([*words, option], source.data)

    def search() -> None:
        searches.append(ir_defects.search(source, start_again))
        if meanwhile:
            meanwhile()

    try:
        done = _generate(source, emit, stop, verify, search)
        search_run = searches[0]
        if search_run is None or done.output is None or (other := search_run.result()) is None:
            return source, done
    finally:
        if searches and searches[0] is not None:
            searches[0].end()
    again = _generate(other, emit, stop, verify)
    if again.output is None:
        raise search_run.failed()
    return other, replace(again, stderr=done.stderr)


def _generate(
    source: Source,
    emit: str,
    stop: Point | None = None,
    verify: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> Run:
    from fly_llc.codegen import points

    target = source.target
    kind = points.code_generation(target.cpu).file_type(emit)
    words = code_words(target.cpu, source.level, source.flags, target.features)
    words += source.start
    if verify:
        words.append("-verify-machineinstrs")
    words.append(stop.stop if stop else f"-filetype={kind}")
    running = start(words, source.data)
    try:
        if meanwhile:
            meanwhile()
        done = finish(running)
    finally:
        running.end()
    if done.output is None or stop or not source.resume:
        return done
    from fly_llc.codegen import resume

    return replace(done, output=resume.restore(done.output, source.data, kind))


def code_words(
    cpu: str, level: int, flags: Sequence[str] = (), features: Sequence[str] = ()
) -> list[str]:
    """Returns llc's arguments that affect the code."""
    attributes = [f"-mattr={','.join(features)}"] if features else []
    return [f"-mcpu={cpu}", f"-O{level}", *flags, *attributes]


def expected(cpu: str, options: Options) -> list[str] | None:
    """Returns the likely arguments of a plain run on IR for `cpu`, or None if they depend on more
    than these options."""
    from fly_llc.codegen import points
    from fly_llc.codegen.source import LEVEL

    if options.changes_pipeline or options.emit not in ("obj", "asm"):
        return None
    level = LEVEL if options.level is None else options.level
    generation = points.code_generation(cpu)
    words = code_words(cpu, level, options.flags, generation.default_features)
    return [*words, f"-filetype={generation.file_type(options.emit)}", *STREAMS]


def start(words: Sequence[str], data: bytes) -> Running:
    """Starts llc with these arguments. It inherits the file descriptors of libraries it loads."""
    from fly_common.programs import toolchain

    named = [word.removeprefix(LOAD) for word in words if word.startswith(LOAD)]
    inherited = [int(number) for number in named if number.isdecimal()]
    return toolchain.start_program("llc", [*words, *STREAMS], data, pass_fds=inherited)


def finish(running: Running) -> Run:
    """Waits for llc and returns its result. A crash is an ordinary failure: LLVM aborts on much
    that it cannot compile."""
    done = running.wait()
    output = None if done.returncode else done.stdout
    signal = -done.returncode if done.returncode < 0 else None
    return Run(output, done.stderr.decode(errors="replace"), signal)


def run(words: Sequence[str], data: bytes) -> Run:
    """Runs llc with these arguments."""
    return finish(start(words, data))


def checked_output(done: Run, source: Source, warn: Warn | None) -> bytes:
    """Returns llc's output. Raises its error messages, and passes warnings to `warn`."""
    if done.output is not None and not done.stderr:
        return done.output
    from fly_llc.codegen import refusal

    if done.output is None or refusal.is_refusal(done.stderr):
        text = source.data.decode(errors="replace")
        raise refusal.explain(done.stderr, text, source.name, source.target.cpu, done.signal)
    if warn:
        for line in refusal.warnings(done.stderr):
            warn(line)
    return done.output
