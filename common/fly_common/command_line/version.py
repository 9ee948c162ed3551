"""The version of the project, and the option `--version` of its tools."""

from __future__ import annotations

from fly_common import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def option(typer: Any, tool: str, *programs: str) -> Any:
    """Returns the option `--version` for `typer` or its stand-in. It prints the tool's version and
    the versions of LLVM's `programs` that it runs."""

    def show(wanted: bool) -> bool:
        if wanted:
            from fly_common.filter import write_output

            write_output("".join(f"{line}\n" for line in _lines(tool, programs)).encode(), None)
            raise typer.Exit()
        return wanted

    return typer.Option("--version", is_eager=True, callback=show, help="Print the version.")


def _lines(tool: str, programs: tuple[str, ...]) -> list[str]:
    from fly_common.errors import MissingError
    from fly_common.programs import toolchain

    lines = [f"{tool} {__version__}"]
    for program in programs:
        try:
            path = toolchain.find_program(program)
            lines.append(f"{program}: LLVM {toolchain.version_of(path)}, {path}")
        except MissingError as error:
            lines.append(f"{program}: {error.message}")
    return lines
