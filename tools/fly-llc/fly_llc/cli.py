"""fly-llc: LLVM IR in, object out."""

from __future__ import annotations

import sys

from fly_common import filter, version
from fly_common.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-llc"


@Command.of(
    epilog='The processor is read from the IR ("target-cpu"), where fly-opt-py --target puts it. '
    "PASS is a machine pass as --list-points lists it, or one of the points post-isel, pre-ra, "
    "post-ra, post-frame, pre-sched2, pre-waits, pre-emit (POINT=WHAT will do). WHAT is a command "
    "that reads MIR and writes MIR, a filter of fly-llc's own (nop-sled, schedule, peephole, "
    "tighten-waits, pressure), or plugin.so:NAME. MIR that fly-llc made says itself where to go on."
)
def command(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="LLVM IR, bitcode or MIR. [stdin]")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Where the result goes. [stdout]")
    ] = None,
    emit: Annotated[
        str | None, typer.Option(metavar="obj|asm|mir", help="What to make. [obj]")
    ] = None,
    level: Annotated[
        int | None, typer.Option("-O", metavar="0|1|2|3", help="Effort of code generation. [2]")
    ] = None,
    insert: Annotated[
        list[str] | None,
        typer.Option(
            metavar="before|after:PASS=WHAT", help="Run WHAT on the MIR there. Repeatable."
        ),
    ] = None,
    replace: Annotated[
        list[str] | None,
        typer.Option(metavar="PASS=WHAT", help="Run WHAT in place of a machine pass."),
    ] = None,
    disable_pass: Annotated[
        list[str] | None, typer.Option(metavar="PASS", help="Leave a machine pass out.")
    ] = None,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Run native passes in llc's process, not as filters."),
    ] = False,
    llvm: Annotated[
        list[str] | None,
        typer.Option("--llvm", metavar="-OPTION", help="An option of LLVM's own, for llc."),
    ] = None,
    no_verify: Annotated[
        bool,
        typer.Option("--no-verify", help="Don't run LLVM's machine verifier on what WHAT made."),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End llc, or a WHAT, that runs longer. [300]"),
    ] = None,
    dump_mir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write a MIR file for each point there.")
    ] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Tell on stderr what the insertions changed.")
    ] = False,
    stop_after: Annotated[
        str | None, typer.Option(metavar="PASS", help="Stop after this machine pass; print MIR.")
    ] = None,
    stop_before: Annotated[
        str | None, typer.Option(metavar="PASS", help="Stop before it; print MIR.")
    ] = None,
    start_after: Annotated[
        str | None, typer.Option(metavar="PASS", help="Where MIR from elsewhere was stopped.")
    ] = None,
    start_before: Annotated[
        str | None, typer.Option(metavar="PASS", help="The same, before a pass.")
    ] = None,
    list_points: Annotated[
        bool,
        typer.Option(
            "--list-points", help="List the machine passes, and what holds there; try FILE."
        ),
    ] = False,
    _: Annotated[bool, version.option(typer, TOOL, "llc")] = False,
) -> None:
    """Turns LLVM IR into machine code with LLVM's llc, and lets others in between."""
    from fly_llc import Options, compile

    stop = stop_after or stop_before
    made = emit or ("mir" if stop else "obj")
    options = Options(
        emit=made,
        level=level,
        stop_after=stop_after,
        stop_before=stop_before,
        start_after=start_after,
        start_before=start_before,
        flags=tuple(llvm or ()),
        insert=tuple(insert or ()),
        replace=tuple(replace or ()),
        disable=tuple(disable_pass or ()),
        in_process=in_process,
        verify=not no_verify,
        dump=dump_mir,
        timeout=timeout,
    )

    def warn(text: str) -> None:
        print(f"{TOOL}: warning: {text}", file=sys.stderr)

    def work(data: bytes, name: str) -> bytes:
        from fly_common import process

        with process.limited(timeout):
            if list_points:
                from fly_llc import listing

                return listing.text(data, options, name).encode()
            result = compile(data, options, name, warn=warn)
            if diff:
                from fly_llc import comparison

                print(comparison.report(data, result, options, name), file=sys.stderr)
            return result

    filter.stage(
        TOOL,
        file,
        work,
        output=output,
        suffix=_suffix,
        flags=_flags(sys.argv[1:], file, output),
        binary=made == "obj" and not list_points,
    )


def _flags(words: list[str], file: str | None, output: str | None) -> list[str]:
    """The words that the user gave besides the files: for saying how to repeat a failure."""
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
    """The file name ending under which a refused input is kept."""
    from fly_common import artifact

    kind = artifact.identify(data)
    return {artifact.BITCODE: ".bc", artifact.MIR: ".mir"}.get(kind, ".ll")


def main() -> None:
    filter.run(command, TOOL)
