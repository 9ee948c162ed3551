"""The command `fly-trace`."""

from __future__ import annotations

from fly_backend.command import backend_option, named_backend
from fly_common import filter
from fly_common.command_line import version
from fly_common.command_line.command import Command
from fly_plugin import with_plugins
from fly_target import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer


@Command.of()
def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:ENTRY]", help="Python file, and the @fly.jit function in it."
        ),
    ],
    sig: Annotated[
        list[str] | None,
        typer.Option(
            "--sig",
            metavar="SIGNATURE",
            help="Parameter types: 'A: f32[M,N], B: f32[?,128], n: i32, BLOCK = 256'.",
        ),
    ] = None,
    like: Annotated[
        list[str] | None,
        typer.Option("--like", metavar="NAME=FILE.npy", help="Take dtype and rank from this file."),
    ] = None,
    static: Annotated[
        bool, typer.Option("--static", help="Take the extents from --like files too.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="CHIP",
            help=f"The GPU, for programs that query it: {registry.listed()}.",
        ),
    ] = None,
    backend: Annotated[str | None, backend_option(typer)] = None,
    frontend: Annotated[
        str,
        typer.Option(
            "--frontend",
            metavar="NAME",
            help="Whose tracing runs: fly, or flydsl for FlyDSL's own.",
        ),
    ] = "fly",
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PYTHON", help="The interpreter that has FlyDSL."),
    ] = None,
    argument: Annotated[
        list[str] | None,
        typer.Option(
            "--argument",
            metavar="TEXT",
            help="An argument of FILE, which FlyDSL's tracing runs as a program.",
        ),
    ] = None,
    no_loc: Annotated[bool, typer.Option("--no-loc", help="Print no source locations.")] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the result to FILE. [stdout]"),
    ] = None,
    _: Annotated[bool, version.option(typer, "fly-trace")] = False,
) -> None:
    """Trace a GPU kernel written in Python and print it as MLIR.

    Runs the host function ENTRY and the kernels that it launches once, on symbolic values. ENTRY
    may be omitted if FILE has only one.
    """
    named_backend(backend)  # its namespaces are names of fx
    path, entry = _split(source)
    types = _signature(sig or [], like or [], static)
    if frontend == "fly":
        _only_with_frontend(python=python, argument=argument)
        from fly_trace.session.trace import trace_file

        text = trace_file(path, entry, types, locations=not no_loc, target=target)
    else:
        from fly_trace import frontends

        arguments = tuple(argument or ())
        request = frontends.Request(path, entry, types, arguments, target, python, not no_loc)
        text = frontends.find(frontend)(request)
    filter.write_output(text.encode(), output)


def _only_with_frontend(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            from fly_common.errors import UsageError

            raise UsageError(f"--{name} is for --frontend flydsl")


def _split(source: str) -> tuple[str, str | None]:
    path, colon, entry = source.rpartition(":")
    if colon and entry.isidentifier():
        return path, entry
    return source, None


def _signature(sigs: list[str], likes: list[str], static: bool):
    from fly_common.errors import UsageError

    from fly_trace.signatures import signature
    from fly_trace.signatures.npy_headers import of_npy

    found = {}
    for like in likes:
        name, equals, path = like.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--like {like}: is not NAME=FILE.npy")
        found[name] = of_npy(path, static)
    if static and not likes:
        raise UsageError("--static needs --like files")
    for text in sigs:
        found.update(signature.parse(text))
    return found


def main() -> None:
    filter.run(with_plugins(command), "fly-trace")


if __name__ == "__main__":
    main()
