"""fly-llc: LLVM IR in, object out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from fly_common import filter, version

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

TOOL = "fly-llc"


@app.command(
    epilog='The processor is read from the IR ("target-cpu"), where fly-opt-py --target puts it. '
    "Points for --stop-after: finalize-isel, prologepilog, branch-folder, si-post-ra-bundler, "
    "postmisched, si-insert-waitcnts, branch-relaxation; refused where going on would give other "
    "code. MIR that fly-llc made says itself where to go on."
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
    stop_after: Annotated[
        str | None, typer.Option(metavar="PASS", help="Stop after this machine pass; print MIR.")
    ] = None,
    start_after: Annotated[
        str | None, typer.Option(metavar="PASS", help="Where MIR from elsewhere was stopped.")
    ] = None,
    _: Annotated[bool, version.option(TOOL, "llc")] = False,
) -> None:
    """Turns LLVM IR into machine code with LLVM's llc."""
    from fly_llc import Options, compile

    made = emit or ("mir" if stop_after else "obj")
    options = Options(emit=made, level=level, stop_after=stop_after, start_after=start_after)
    flags = [f"--emit={emit}"] * (emit is not None) + [f"-O{level}"] * (level is not None)
    flags += [f"--stop-after={stop_after}"] * (stop_after is not None)
    flags += [f"--start-after={start_after}"] * (start_after is not None)

    def warn(text: str) -> None:
        print(f"{TOOL}: warning: {text}", file=sys.stderr)

    filter.stage(
        TOOL,
        file,
        lambda data, name: compile(data, options, name, warn=warn),
        output=output,
        suffix=_suffix,
        flags=flags,
        binary=made == "obj",
    )


def _suffix(data: bytes) -> str:
    """The file name ending under which a refused input is kept."""
    from fly_common import artifact

    kind = artifact.identify(data)
    return {artifact.BITCODE: ".bc", artifact.MIR: ".mir"}.get(kind, ".ll")


def main() -> None:
    filter.run(app, TOOL)
