"""fly-run: HSACO in, results out."""

from __future__ import annotations

from fly_backend.command import backend_option
from fly_common import filter
from fly_common.command_line.command import Command
from fly_plugin import with_plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-run"


@Command.of(
    epilog="VALUE is x.npy, a number, zeros(shape,dtype), full(shape,dtype,value), arange(n,dtype) "
    "or random(shape,dtype,seed=0); VALUE:out.npy writes the result to out.npy. C=out.npy is "
    "enough for a tensor that is only written. address:VALUE is the address of an array, for a "
    "number of 64 bits. With --kernel, values are positional, and numbers have types: i32:5, "
    "f32:2.5, bytes:00ff, lds:1024."
)
def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [NAME=VALUE]...", help="Code object [stdin], and arguments by name."
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(metavar="auto|hip|cuda|emulator|cpu|exec:COMMAND", help="Device to run on."),
    ] = "auto",
    backend: Annotated[str | None, backend_option(typer)] = None,
    inspect: Annotated[
        bool, typer.Option("--inspect", help="Print kernels, arguments and program; run nothing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print --inspect, --stats, --trace or --bench as JSON.")
    ] = False,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="Launch this kernel without a program.")
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="X[,Y[,Z]]", help="Number of workgroups, for --kernel. [1]"),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(metavar="X[,Y[,Z]]", help="Work items per workgroup, for --kernel."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="X[,Y[,Z]]", help="Workgroups of a cluster, for --kernel."),
    ] = None,
    lds: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Bytes of dynamic LDS, for --kernel. [0]")
    ] = None,
    margin: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", help="Bytes around each array that kernels may read (emulator). [0]"
        ),
    ] = None,
    max_instructions: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop a launch after N wave instructions (emulator)."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of host threads for a long grid (emulator)."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop at missing waits, LDS races and uses of uninitialized values (emulator);"
            " at races on shared memory (cpu).",
        ),
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print statistics of the launches (emulator).")
    ] = False,
    bench: Annotated[
        bool, typer.Option("--bench", help="Repeat the launches, and print how long they take.")
    ] = False,
    repeat: Annotated[
        int | None, typer.Option(metavar="N", help="Number of repetitions, for --bench. [100]")
    ] = None,
    warm_up: Annotated[
        int | None,
        typer.Option(metavar="N", help="Repetitions before those, which do not count. [10]"),
    ] = None,
    flops: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help="FLOPs of the program, as in 2*m*n*k, for --bench."),
    ] = None,
    sanitize: Annotated[
        str | None,
        typer.Option(metavar="address", help="Run under AddressSanitizer (--device cpu)."),
    ] = None,
    mfma: Annotated[
        str,
        typer.Option(metavar="exact|fast", help="How matrix instructions sum (emulator)."),
    ] = "exact",
    host: Annotated[
        str, typer.Option(metavar="jit|py|interp", help="What runs the host program.")
    ] = "auto",
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write executed instructions to FILE (emulator)."),
    ] = None,
    trace_only: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Trace only this kernel, group, wave, pc or lanes."),
    ] = None,
    trace_limit: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of traced instructions. [1000]")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Don't print the table of results.")
    ] = False,
    hip: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Run the command after -- with a HIP runtime library that is an emulated TARGET.",
        ),
    ] = None,
    hip_runtime: Annotated[
        bool, typer.Option("--hip-runtime", help="Print the folder of that library, libamdhip64.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Run a code object on a device, with arguments from .npy files."""
    from fly_run.shell import command as shell

    if version:
        return filter.write_output(shell.version().encode(), None)
    if hip is not None or hip_runtime:
        from fly_run.shell import hip as hip_shell

        if hip is not None:
            hip_shell.run(hip, tuple(words or ()))
        return filter.write_output(f"{hip_shell.folder()}\n".encode(), None)
    shell.call(
        shell.Call(
            words=tuple(words or ()),
            device=device,
            backend=backend,
            inspect=inspect or (json and not (stats or trace or bench)),
            json=json,
            kernel=kernel,
            grid=grid,
            block=block,
            cluster=cluster,
            margin=margin or 0,
            lds=lds,
            max_instructions=max_instructions,
            threads=threads,
            strict=strict,
            sanitize=sanitize,
            stats=stats,
            mfma=mfma,
            host=host,
            trace=trace,
            trace_only=tuple(trace_only or ()),
            trace_limit=trace_limit,
            quiet=quiet,
            bench=bench,
            repeat=repeat,
            warm_up=warm_up,
            flops=flops,
        )
    )


def main() -> None:
    filter.run(with_plugins(command), TOOL)
