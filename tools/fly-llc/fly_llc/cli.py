"""fly-llc: LLVM IR in, object out."""

from __future__ import annotations

import sys

from fly_backend.command import backend_option, named_backend
from fly_common import diagnostics, filter
from fly_common.command_line import options, version
from fly_common.command_line.command import Command
from fly_plugin import with_plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-llc"


@Command.of(
    epilog='The processor is read from the IR ("target-cpu"), where fly-opt-py --target puts it. '
    "PASS is a machine pass listed by --list-points, or one of the points post-isel, pre-ra, "
    "post-ra, post-frame, pre-sched2, pre-waits, pre-emit (POINT=WHAT is enough). WHAT is a "
    "command that reads MIR and writes MIR, one of fly-llc's own filters (nop-sled, schedule, "
    "peephole, tighten-waits, pressure), or plugin.so:NAME. MIR printed by fly-llc records where "
    "to resume."
)
def command(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="LLVM IR, bitcode or MIR. [stdin]")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the result to FILE. [stdout]")
    ] = None,
    backend: Annotated[str | None, backend_option(typer)] = None,
    emit: Annotated[str | None, options.flag(typer, "llc", "emit")] = None,
    level: Annotated[int | None, options.flag(typer, "llc", "level")] = None,
    insert: Annotated[list[str] | None, options.flag(typer, "llc", "insert")] = None,
    replace: Annotated[list[str] | None, options.flag(typer, "llc", "replace")] = None,
    disable_pass: Annotated[list[str] | None, options.flag(typer, "llc", "disable")] = None,
    in_process: Annotated[bool, options.flag(typer, "llc", "in_process")] = False,
    llvm: Annotated[list[str] | None, options.flag(typer, "llc", "flags")] = None,
    no_verify: Annotated[bool, options.flag(typer, "llc", "verify")] = False,
    timeout: Annotated[float | None, options.flag(typer, "llc", "timeout")] = None,
    dump_mir: Annotated[str | None, options.flag(typer, "llc", "dump")] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print to stderr what the insertions changed.")
    ] = False,
    stop_after: Annotated[str | None, options.flag(typer, "llc", "stop_after")] = None,
    stop_before: Annotated[str | None, options.flag(typer, "llc", "stop_before")] = None,
    start_after: Annotated[str | None, options.flag(typer, "llc", "start_after")] = None,
    start_before: Annotated[str | None, options.flag(typer, "llc", "start_before")] = None,
    list_points: Annotated[
        bool,
        typer.Option(
            "--list-points", help="List the machine passes; with FILE, test resuming at each."
        ),
    ] = False,
    _: Annotated[bool, version.option(typer, TOOL, "llc")] = False,
) -> None:
    """Compile LLVM IR to machine code with LLVM's llc, with insertion points for machine passes."""
    said = options.fields("llc", locals())
    named_backend(backend)  # its code generation is found by the module's triple
    from fly_llc import Options, compile

    # -stop-after and -stop-before produce MIR.
    said.setdefault("emit", "mir" if stop_after or stop_before else "obj")
    chosen = Options(**said)

    warn = diagnostics.warner(TOOL)

    def work(data: bytes, name: str) -> bytes:
        from fly_common.programs import process

        with process.limited(timeout):
            if list_points:
                from fly_llc import listing

                return listing.text(data, chosen, name).encode()
            result = compile(data, chosen, name, warn=warn)
            if diff:
                from fly_llc.codegen import comparison

                print(comparison.report(data, result, chosen, name), file=sys.stderr)
            return result

    filter.stage(
        TOOL,
        file,
        work,
        output=output,
        suffix=_suffix,
        flags=_flags(sys.argv[1:], file, output),
        binary=lambda data: data.startswith(b"\x7fELF"),
    )


def _flags(words: list[str], file: str | None, output: str | None) -> list[str]:
    """Returns the user's arguments except the files, for the command that repeats a failure."""
    kept, skip = [], False
    for word in words:
        if skip or word == file:
            skip = False
        elif word == "-o":
            skip = True
        elif not (output and word in (f"-o{output}", f"-o={output}")):
            kept.append(word)
    return kept


def _suffix(data: bytes) -> str:
    """Returns the suffix of the file in which a refused input is saved."""
    from fly_common import artifact

    kind = artifact.identify(data)
    return {artifact.BITCODE: ".bc", artifact.MIR: ".mir"}.get(kind, ".ll")


def main() -> None:
    filter.run(with_plugins(command), TOOL)
