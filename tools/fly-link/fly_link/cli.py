"""fly-link: objects in, HSACO out."""

from __future__ import annotations

import sys

from fly_common import filter, version
from fly_common.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-link"


@Command.of()
def command(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILES]...", help="Object files. [stdin]")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the HSACO to FILE. [stdout]")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Kill ld.lld after this time. [300]")
    ] = None,
    _: Annotated[bool, version.option(typer, TOOL, "ld.lld")] = False,
) -> None:
    """Link object files into a HSACO with LLVM's ld.lld."""
    from fly_link import link

    def warn(text: str) -> None:
        print(f"{TOOL}: warning: {text}", file=sys.stderr)

    if timeout is not None:
        from fly_common import process

        process.check_limit(timeout, f"--timeout {timeout:g}")
    paths = files or [filter.STDIN]
    first, *others = paths
    if paths.count(filter.STDIN) > 1:
        from fly_common.errors import UsageError

        raise UsageError("standard input can be only one of the objects")
    # Read the inputs after the first here, so that errors name them as the user gave them.
    rest = [filter.read_input(path) for path in others]
    names = [filter.input_name(path) for path in paths]

    def work(data: bytes, name: str) -> bytes:
        from fly_common import process

        with process.limited(timeout):
            return link([data, *rest], names, warn=warn)

    filter.stage(
        TOOL,
        first,
        work,
        output=output,
        suffix=".o",
        flags=[] if timeout is None else ["--timeout", f"{timeout:g}"],
        others=others,
        binary=True,
    )


def main() -> None:
    filter.run(command, TOOL)
