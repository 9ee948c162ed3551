"""fly-link: objects in, image out."""

from __future__ import annotations

import sys

from fly_backend.command import backend_option, named_backend
from fly_common import filter, options, version
from fly_common.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-link"


@Command.of()
def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILES]...", help="Object files, or a PTX file. [stdin]"),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the result to FILE. [stdout]")
    ] = None,
    backend: Annotated[str | None, backend_option(typer)] = None,
    emit: Annotated[str | None, options.flag(typer, "link", "emit")] = None,
    ptxas: Annotated[list[str] | None, options.flag(typer, "link", "flags")] = None,
    timeout: Annotated[float | None, options.flag(typer, "link", "timeout")] = None,
    _: Annotated[bool, version.option(typer, TOOL, "ld.lld")] = False,
) -> None:
    """Link object files into a HSACO with LLVM's ld.lld, or compile PTX to a cubin with ptxas."""
    chosen = options.fields("link", locals())
    from fly_link import link
    from fly_link.options import Options

    made = Options(**chosen)
    named = named_backend(backend)

    def warn(text: str) -> None:
        print(f"{TOOL}: warning: {text}", file=sys.stderr)

    paths = files or [filter.STDIN]
    first, *others = paths
    if paths.count(filter.STDIN) > 1:
        from fly_common.errors import UsageError

        raise UsageError("standard input can be only one of the objects")
    # Read the inputs after the first here, so that errors name them as the user gave them.
    rest = [filter.read_input(path) for path in others]
    names = [filter.input_name(path) for path in paths]

    def work(data: bytes, name: str) -> bytes:
        return link([data, *rest], names, options=made, backend=named, warn=warn)

    filter.stage(
        TOOL,
        first,
        work,
        output=output,
        suffix=_suffix,
        flags=[
            *([] if backend is None else ["--backend", backend]),
            *options.words("link", chosen),
        ],
        others=others,
        binary=made.emit == "image",
    )


def _suffix(data: bytes) -> str:
    """Returns the suffix of the file in which a refused input is saved."""
    from fly_common import artifact

    return ".ptx" if artifact.identify(data) == artifact.PTX else ".o"


def main() -> None:
    filter.run(command, TOOL)
