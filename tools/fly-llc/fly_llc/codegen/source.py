"""The input of code generation: LLVM IR, bitcode or MIR, and the options that llc needs for it."""

from __future__ import annotations

from fly_common.errors import InputError, Place, UsageError
from fly_common.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.points import Point
    from fly_llc.codegen.target import Target

LEVEL = 2  # llc's own default


@record
class Source:
    """An input that llc can read. `name` is its name in messages. `resume` is the point at which
    MIR was stopped; `ir_pass` is the pass on LLVM IR at which code generation begins, if it is not
    the first one. `level` is -O of code generation; `flags` are LLVM's options. `plain` is the
    input as it was read, if a pass of this project has changed it."""

    data: bytes
    name: str
    target: Target
    level: int
    resume: Point | None = None
    flags: tuple[str, ...] = ()
    ir_pass: str | None = None
    plain: bytes | None = None

    def at(self, point: Point, mir: bytes) -> Source:
        """Returns the same module as MIR at a point."""
        from fly_llc.codegen.resume import readable

        return replace(self, data=readable(mir), resume=point, ir_pass=None, plain=None)

    @property
    def start(self) -> list[str]:
        """llc's options for where it starts."""
        if self.resume:
            return ["-x", "mir", self.resume.start]
        return [f"-start-before={self.ir_pass}"] if self.ir_pass else []


def prepare(data: bytes, options: Options, name: str) -> Source:
    """Detects the input's format, and reads its target, its level and its starting point."""
    from fly_common import artifact

    from fly_llc.codegen.target import read_target

    kind = artifact.identify(data)
    if kind == artifact.MIR:
        from fly_llc.codegen.resume import readable

        # The IR is the first of MIR's YAML documents.
        target = read_target(data.partition(b"\n...")[0].decode(errors="replace"), name)
        resume, level = _resumption(data, options, target, name)
        return Source(readable(data), name, target, level, resume, options.flags)
    if options.start_after or options.start_before:
        side = "after" if options.start_after else "before"
        raise UsageError(
            f"--start-{side} resumes from MIR, but the input is {kind.noun}",
            hint="fly-llc --stop-after PASS prints MIR",
        )
    level = LEVEL if options.level is None else options.level
    if kind == artifact.BITCODE:
        text = _disassemble(data, name)
        if artifact.is_empty_module(text):
            artifact.refuse(artifact.EMPTY_MODULE, artifact.LLVM_IR, name)
    elif kind in (artifact.LLVM_IR, artifact.TEXT):
        text = data.decode(errors="replace")
    else:
        artifact.refuse(kind, artifact.LLVM_IR, name)
    source = Source(data, name, read_target(text, name), level, None, options.flags)
    return _changed(source, text, options) if level else source


def _changed(source: Source, text: str, options: Options) -> Source:
    """Runs this project's passes on LLVM IR."""
    from fly_common.resolve import resolve

    from fly_llc.codegen import points

    changed = None
    for one in points.code_generation(source.target.cpu).ir_passes:
        if one.name not in options.disable:
            changed = resolve(one.run)(changed or text, source.target, source.flags) or changed
    return replace(source, data=changed.encode(), plain=source.data) if changed else source


def _resumption(data: bytes, options: Options, target: Target, name: str) -> tuple[Point, int]:
    """Returns the point and the level at which to resume from MIR."""
    from fly_llc.codegen import points

    noted, made_at = points.read_note(data) or (None, LEVEL)
    level = made_at if options.level is None else options.level
    if options.start_after:
        return points.find("after", options.start_after, target.cpu, level), level
    if options.start_before:
        return points.find("before", options.start_before, target.cpu, level), level
    if noted is None:
        raise InputError(
            "the MIR does not say where it was stopped",
            place=Place(name),
            hint="use --start-after PASS or --start-before PASS",
        )
    return noted, level


def _disassemble(bitcode: bytes, name: str) -> str:
    """Returns the text of `bitcode`, from llvm-dis."""
    from fly_common.programs import toolchain

    from fly_llc.codegen import refusal

    done = toolchain.run_program("llvm-dis", ["-o", "-", "-"], bitcode)
    if done.returncode:
        raise InputError(
            f"the bitcode is damaged: {refusal.last_words(done.stderr.decode(errors='replace'))}",
            place=Place(name),
            hint="it is truncated, or was written by a newer LLVM",
        )
    return done.stdout.decode(errors="replace")
