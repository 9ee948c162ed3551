"""The stage: `compile` turns LLVM IR into an object, assembly or MIR by running LLVM's `llc`.

`llc` always reads its standard input and never learns a file's name or folder, so that none of
them can reach the bytes it makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common.errors import InputError, Place, UsageError

if TYPE_CHECKING:
    from fly_llc.target import Target

EMITS = ("obj", "asm", "mir")
LEVEL = 2  # llc's own default


@dataclass(frozen=True)
class Options:
    """`emit` is "obj", "asm" or "mir". `level` is code generation's -O; None is 2, or for MIR the
    level it was made at. `stop_after` and `start_after` name points (`points.POINTS`); stopping
    gives MIR, and starting is for MIR that does not say where it was stopped."""

    emit: str = "obj"
    level: int | None = None
    stop_after: str | None = None
    start_after: str | None = None

    def __post_init__(self) -> None:
        if self.emit not in EMITS:
            raise UsageError(f"--emit {self.emit}: must be one of {', '.join(EMITS)}")
        if self.level not in (None, 0, 1, 2, 3):
            raise UsageError(f"-O {self.level}: must be 0, 1, 2 or 3")
        if self.stop_after and self.emit != "mir":
            raise UsageError(
                f"--stop-after makes MIR, and --emit {self.emit} asks for something else"
            )


@dataclass(frozen=True)
class _Source:
    """An input that llc can read. `text` is its LLVM IR in text form (for MIR the IR in it)."""

    data: bytes
    text: str
    resume: str | None  # MIR: the pass it was stopped after
    level: int


def compile(
    source: bytes,
    options: Options,
    name: str = "<stdin>",
    *,
    warn: Callable[[str], None] | None = None,
) -> bytes:
    """The code of `source`: LLVM IR text, bitcode, or MIR text.

    `name` stands for the input in messages. `warn` is given llc's warnings, a line each.
    Raises InputError for what llc refuses, UsageError for options that contradict the input,
    MissingError where there is no LLVM.
    """
    from fly_llc import points
    from fly_llc.target import read_target

    prepared = _prepare(source, options, name)
    target = read_target(prepared.text, name)
    if options.emit == "mir":
        stop = points.check(options.stop_after or points.NAMES[-1])
        return _stop(prepared, target, stop, name, warn)
    done = _run(_arguments(target, prepared, options.emit, None), prepared.data)
    return _judge(done, prepared, name, target, warn)


def _stop(
    source: _Source, target: Target, stop: str, name: str, warn: Callable[[str], None] | None
) -> bytes:
    """The MIR after the pass `stop`, if going on from it gives the object that an undisturbed run
    gives: this is tried each time, because no table could promise it for every module."""
    from fly_llc import points

    if source.resume and points.NAMES.index(stop) <= points.NAMES.index(source.resume):
        raise UsageError(
            f"can't stop after {stop}: the MIR was stopped after {source.resume} already"
        )
    whole = _run(_arguments(target, source, "obj", None), source.data)
    expected = _judge(whole, source, name, target, warn)

    def stopped(after: str) -> bytes | None:
        mir = _run(_arguments(target, source, "mir", after), source.data).output
        again = _Source(mir or b"", "", after, source.level)
        return (
            mir
            if _run(_arguments(target, again, "obj", None), again.data).output == expected
            else None
        )

    if (mir := stopped(stop)) is not None:
        return points.note(stop, source.level) + mir
    later = points.NAMES[points.NAMES.index(source.resume) + 1 :] if source.resume else points.NAMES
    exact = [point for point in later if point != stop and stopped(point) is not None]
    raise InputError(
        f"going on after {stop} would give other code than an undisturbed run",
        place=Place(name),
        hint=f"for this module it is exact after {', '.join(exact)}"
        if exact
        else f"it is exact at no point for this module; llc -stop-after={stop} shows the MIR there",
    )


def _judge(
    done: _Run, source: _Source, name: str, target: Target, warn: Callable[[str], None] | None
) -> bytes:
    """llc's output. Raises what its words mean, or passes them on where they are only warnings."""
    if done.output is not None and not done.stderr:
        return done.output
    from fly_llc import refusal

    if done.output is None or refusal.is_refusal(done.stderr):
        text = source.data.decode(errors="replace")
        raise refusal.explain(done.stderr, text, name, target.cpu, done.signal)
    if warn:
        for line in refusal.warnings(done.stderr):
            warn(line)
    return done.output


def fingerprint(options: Options) -> str:
    """What this stage's result depends on besides its input: the options and llc's build."""
    from fly_common import toolchain

    return f"fly-llc 1 {options} {toolchain.fingerprint('llc')}"


def _prepare(source: bytes, options: Options, name: str) -> _Source:
    """Checks what the input is, and finds its IR text and where to begin."""
    from fly_common import artifact

    kind = artifact.identify(source)
    if kind == artifact.MIR:
        resume, level = _resumption(source, options, name)
        # The IR is the first of MIR's YAML documents.
        text = source.partition(b"\n...")[0].decode(errors="replace")
        return _Source(source, text, resume, level)
    if options.start_after:
        raise UsageError(
            f"--start-after goes on from MIR, and the input is {kind.noun}",
            hint="fly-llc --stop-after PASS makes MIR",
        )
    level = LEVEL if options.level is None else options.level
    if kind == artifact.BITCODE:
        return _Source(source, _disassemble(source, name), None, level)
    if kind not in (artifact.LLVM_IR, artifact.TEXT):
        artifact.refuse(kind, artifact.LLVM_IR, name)
    return _Source(source, source.decode(errors="replace"), None, level)


def _resumption(source: bytes, options: Options, name: str) -> tuple[str, int]:
    """After which pass, and at which level, to go on from MIR."""
    from fly_llc import points

    after, made_at = points.read_note(source) or (None, LEVEL)
    level = made_at if options.level is None else options.level
    after = options.start_after or after
    if after is None:
        raise InputError(
            "the MIR does not say where it was stopped",
            place=Place(name),
            hint="say after which pass with --start-after PASS",
        )
    return points.check(after), level


def _disassemble(bitcode: bytes, name: str) -> str:
    """The text of `bitcode`, from llvm-dis."""
    from fly_common import toolchain

    from fly_llc import refusal

    done = toolchain.run_program("llvm-dis", ["-o", "-", "-"], bitcode)
    if done.returncode:
        raise InputError(
            f"the bitcode is damaged: {refusal.last_words(done.stderr.decode(errors='replace'))}",
            place=Place(name),
            hint="it was cut short on its way, or a newer LLVM wrote it",
        )
    return done.stdout.decode(errors="replace")


def _arguments(target: Target, source: _Source, emit: str, stop: str | None) -> list[str]:
    """llc's command line. Without `stop` and `resume` it is what a person would type."""
    arguments = [f"-mcpu={target.cpu}", f"-O{source.level}"]
    if target.features:
        arguments.append(f"-mattr={','.join(target.features)}")
    if source.resume:
        arguments += ["-x", "mir", f"-start-after={source.resume}"]
    if stop:
        arguments.append(f"-stop-after={stop}")
    else:
        arguments.append(f"-filetype={emit}")
    # A crash costs llc 0.15 s of looking up symbols that nobody sees.
    return [*arguments, "-disable-symbolication", "-o", "-", "-"]


@dataclass(frozen=True)
class _Run:
    """llc's output, None where it failed; what it said; the signal that ended it, if one did."""

    output: bytes | None
    stderr: str
    signal: int | None = None


def _run(arguments: list[str], data: bytes) -> _Run:
    """A crash is a failure like others: LLVM reports much of what it can't compile by aborting."""
    from fly_common import toolchain

    try:
        done = toolchain.run_program("llc", arguments, data)
    except toolchain.Crash as crash:
        return _Run(None, crash.stderr, crash.signal)
    return _Run(None if done.returncode else done.stdout, done.stderr.decode(errors="replace"))
