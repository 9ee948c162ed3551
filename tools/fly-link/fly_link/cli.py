"""fly-link: objects in, image out."""

from __future__ import annotations

from fly_backend.command import backend_option, named_backend
from fly_common import diagnostics, filter
from fly_common.command_line import options, version
from fly_common.command_line.command import Command
from fly_plugin import flags as plugin_flags
from fly_plugin import with_plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

TOOL = "fly-link"


@Command.of()
def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]...",
            help="Object files, or a PTX file. [stdin]",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the result to FILE. [stdout]")
    ] = None,
    backend: Annotated[str | None, backend_option(typer)] = None,
    emit: Annotated[str | None, options.flag(typer, "link", "emit")] = None,
    ptxas: Annotated[list[str] | None, options.flag(typer, "link", "flags")] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="shared", help="Make a shared library with a C interface."),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option("--header", metavar="FILE", help="Write the library's C header to FILE."),
    ] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Let the library also run on the host's processor.")
    ] = False,
    timeout: Annotated[float | None, options.flag(typer, "link", "timeout")] = None,
    _: Annotated[bool, version.option(typer, TOOL, "ld.lld")] = False,
) -> None:
    """Link object files into a HSACO with LLVM's ld.lld, or compile PTX to a cubin with ptxas. With
    --host shared, make a library for C programs of one input for each target."""
    chosen = options.fields("link", locals())
    from fly_link import link
    from fly_link.options import Options

    made = Options(**chosen)
    named = named_backend(backend)
    _check_host(host, header, cpu, made.emit)

    warn = diagnostics.warner(TOOL)

    paths = files or [filter.STDIN]
    first, *others = paths
    if paths.count(filter.STDIN) > 1:
        from fly_common.errors import UsageError

        raise UsageError("standard input can be only one of the objects")
    # Read the inputs after the first here, so that errors name them as the user gave them.
    rest = [filter.read_input(path) for path in others]
    names = [filter.input_name(path) for path in paths]

    def work(data: bytes, name: str) -> bytes:
        if host is None:
            return link([data, *rest], names, options=made, backend=named, warn=warn)
        from fly_link.shared.building import make

        given = [data, *rest]
        made_library = make(given, names, for_cpu=cpu, options=made, backend=named, warn=warn)
        if header is not None:
            from pathlib import Path

            filter.write_atomically(Path(header), made_library.header.encode())
        return made_library.data

    filter.stage(
        TOOL,
        first,
        work,
        output=output,
        suffix=_suffix,
        flags=[
            *plugin_flags(),
            *([] if backend is None else ["--backend", backend]),
            *_host_words(host, header, cpu),
            *options.words("link", chosen),
        ],
        others=others,
        binary=made.emit == "image",
    )


def _check_host(host: str | None, header: str | None, cpu: bool, emit: str) -> None:
    """Raises UsageError for options of libraries that do not go together."""
    from fly_common.errors import UsageError
    from fly_common.quoting import quoted

    if host is None:
        for flag, given in (("--header", header is not None), ("--cpu", cpu)):
            if given:
                raise UsageError(f"{flag} requires --host shared")
    elif host != "shared":
        raise UsageError(f"--host {quoted(host)}: must be shared")
    elif emit == "sass":
        raise UsageError("--host shared makes a library: --emit sass does not apply")


def _host_words(host: str | None, header: str | None, cpu: bool) -> list[str]:
    words = [] if host is None else ["--host", host]
    words += [] if header is None else ["--header", header]
    return [*words, "--cpu"] if cpu else words


def _suffix(data: bytes) -> str:
    """Returns the suffix of the file in which a refused input is saved."""
    from fly_common import artifact

    kinds = {artifact.PTX: ".ptx", artifact.HSACO: ".hsaco", artifact.CUBIN: ".cubin"}
    return kinds.get(artifact.identify(data), ".o")


def main() -> None:
    filter.run(with_plugins(command), TOOL)
