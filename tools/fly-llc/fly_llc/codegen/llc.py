"""Runs of LLVM's `llc`: its command line, its output, and what its words mean.

`llc` always reads its standard input and never learns a file's name or folder, so that none of
them can reach the bytes it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fly_common.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.process import Running

    from fly_llc.codegen.options import Options
    from fly_llc.codegen.points import Point
    from fly_llc.codegen.source import Source

Warn = Callable[[str], None]

# A crash costs llc 0.15 s of looking up symbols that nobody sees.
LOAD = "-load=/proc/self/fd/"  # of a library in memory (`native.shim`)
STREAMS = ("-disable-symbolication", "-o", "-", "-")


@record
class Run:
    """llc's output, None where it failed; what it said; the signal that ended it, if one did."""

    output: bytes | None
    stderr: str
    signal: int | None = None


def generate(
    source: Source,
    emit: str,
    stop: Point | None = None,
    *,
    verify: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> Run:
    """Code generation of `source`, to its end ("obj" or "asm") or to the point `stop`, as MIR.

    Without `stop`, and for a source that is IR, the command line is what a person would type. With
    `verify`, LLVM's machine verifier looks at the code after each pass, which costs little beside a
    run for it alone. `meanwhile` is called while llc works.
    """
    target = source.target
    words = code_words(target.cpu, source.level, source.flags, target.features)
    if source.resume:
        words += ["-x", "mir", source.resume.start]
    if verify:
        words.append("-verify-machineinstrs")
    words.append(stop.stop if stop else f"-filetype={emit}")
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

    return replace(done, output=resume.restore(done.output, source.data, emit))


def code_words(
    cpu: str, level: int, flags: Sequence[str] = (), features: Sequence[str] = ()
) -> list[str]:
    """What llc is told of the code to make."""
    attributes = [f"-mattr={','.join(features)}"] if features else []
    return [f"-mcpu={cpu}", f"-O{level}", *flags, *attributes]


def expected(cpu: str, options: Options) -> list[str] | None:
    """The arguments that an undisturbed run on IR for `cpu` will probably have; None if what runs
    depends on more."""
    from fly_llc.codegen.source import LEVEL

    if options.weaves or options.emit not in ("obj", "asm"):
        return None
    level = LEVEL if options.level is None else options.level
    return [*code_words(cpu, level, options.flags), f"-filetype={options.emit}", *STREAMS]


def start(words: Sequence[str], data: bytes) -> Running:
    """Starts llc with these words. It inherits the descriptors that they load libraries from."""
    from fly_common import toolchain

    named = [word.removeprefix(LOAD) for word in words if word.startswith(LOAD)]
    inherited = [int(number) for number in named if number.isdecimal()]
    return toolchain.start_program("llc", [*words, *STREAMS], data, pass_fds=inherited)


def finish(running: Running) -> Run:
    """What a started llc did. A crash is a failure like others: LLVM reports much of what it can't
    compile by aborting."""
    done = running.wait()
    output = None if done.returncode else done.stdout
    signal = -done.returncode if done.returncode < 0 else None
    return Run(output, done.stderr.decode(errors="replace"), signal)


def run(words: Sequence[str], data: bytes) -> Run:
    """llc with these words, to its end."""
    return finish(start(words, data))


def judge(done: Run, source: Source, warn: Warn | None) -> bytes:
    """llc's output. Raises what its words mean, or passes them on where they are only warnings."""
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
