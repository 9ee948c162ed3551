"""fly-run: HSACO in, results out."""

from __future__ import annotations

from fly_common import filter
from fly_common.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-run"


@Command.of(
    epilog="VALUE is x.npy, a number, zeros(shape,dtype), full(shape,dtype,value), arange(n,dtype) "
    "or random(shape,dtype,seed=0); VALUE:out.npy writes the result there. C=out.npy names the "
    "result of a tensor that is only written. With --kernel, values come in order, and numbers "
    "have types: i32:5, f32:2.5, bytes:00ff, lds:1024."
)
def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [NAME=VALUE]...", help="Code object [stdin], and arguments by name."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="auto|hip|cuda|emulator", help="Where to run. [auto]")
    ] = "auto",
    inspect: Annotated[
        bool, typer.Option("--inspect", help="Print kernels, arguments and program; run nothing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="--inspect, --stats or --trace as JSON.")
    ] = False,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="Launch this kernel, without a program.")
    ] = None,
    grid: Annotated[
        str | None, typer.Option(metavar="X[,Y[,Z]]", help="Workgroups, for --kernel. [1]")
    ] = None,
    block: Annotated[
        str | None, typer.Option(metavar="X[,Y[,Z]]", help="Work items of each, for --kernel.")
    ] = None,
    lds: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Dynamic LDS, for --kernel. [0]")
    ] = None,
    max_instructions: Annotated[
        int | None,
        typer.Option(metavar="N", help="End a launch after N wave instructions (emulator)."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", help="Host threads for a long grid (emulator)."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="End at missing waits, LDS races, uses of uninitialised values (emulator).",
        ),
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Tell what the launches did (emulator).")
    ] = False,
    mfma: Annotated[
        str,
        typer.Option(metavar="exact|fast", help="Sums of matrix instructions (emulator)."),
    ] = "exact",
    host: Annotated[
        str, typer.Option(metavar="jit|py|interp", help="What runs the host program. [auto]")
    ] = "auto",
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write each instruction and its results (emulator)."),
    ] = None,
    trace_only: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Trace one kernel, group, wave, pc range, lanes."),
    ] = None,
    trace_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Trace so many instructions. [1000]")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No table of results.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Runs a code object on a device, with arguments from .npy files."""
    from fly_run.shell import command as shell

    if version:
        return filter.write_output(shell.version().encode(), None)
    shell.call(
        shell.Call(
            words=tuple(words or ()),
            device=device,
            inspect=inspect or (json and not (stats or trace)),
            json=json,
            kernel=kernel,
            grid=grid,
            block=block,
            lds=lds,
            max_instructions=max_instructions,
            threads=threads,
            strict=strict,
            stats=stats,
            mfma=mfma,
            host=host,
            trace=trace,
            trace_only=tuple(trace_only or ()),
            trace_limit=trace_limit,
            quiet=quiet,
        )
    )


def main() -> None:
    filter.run(command, TOOL)
