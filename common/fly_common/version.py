"""Which version of the project this is, and the option `--version` of its tools."""

from __future__ import annotations

from typing import Any

from fly_common import __version__


def option(tool: str, *programs: str) -> Any:
    """The typer option `--version`: the tool's version, and which of LLVM's `programs` it runs."""
    import typer

    def show(wanted: bool) -> None:
        if wanted:
            from fly_common.filter import write_output

            write_output("".join(f"{line}\n" for line in _lines(tool, programs)).encode(), None)
            raise typer.Exit()

    return typer.Option("--version", is_eager=True, callback=show, help="Print the version.")


def _lines(tool: str, programs: tuple[str, ...]) -> list[str]:
    from fly_common import toolchain
    from fly_common.errors import MissingError

    lines = [f"{tool} {__version__}"]
    for program in programs:
        try:
            path = toolchain.find_program(program)
            lines.append(f"{program}: LLVM {toolchain.version_of(str(path))}, {path}")
        except MissingError as error:
            lines.append(f"{program}: {error.message}")
    return lines
