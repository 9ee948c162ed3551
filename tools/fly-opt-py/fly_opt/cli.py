"""fly-opt-py: MLIR in, MLIR or LLVM IR out."""

from __future__ import annotations

from fly_backend.command import backend_of, backend_option
from fly_common import filter
from fly_common.command_line import version
from fly_common.command_line.command import Command
from fly_common.command_line.options import flag as option
from fly_plugin import active, with_plugins
from fly_plugin import flags as plugin_flags
from fly_target import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from fly_opt.pipeline.options import Options
    from fly_opt.reporting.observer import Observer

TOOL = "fly-opt-py"


@Command.of(
    # Each pass is a flag, and MLIR has hundreds: an unknown option is the name of a pass.
    context_settings={"ignore_unknown_options": True},
    epilog="Every pass is also a flag; flags run in the order given: --canonicalize --cse. Options "
    'follow =: --fly-set-target=chip=gfx942 or --canonicalize="max-iterations=2 top-down=false".',
)
def command(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|--PASS[=OPTIONS]", help="MLIR file [stdin], and passes to run."
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the result to FILE. [stdout]")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="CHIP", help=f"Run this target's pipeline: {registry.listed()}."),
    ] = None,
    backend: Annotated[str | None, backend_option(typer)] = None,
    emit: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="mlir, llvm, host, host-llvm [llvm for a target]"),
    ] = None,
    passes: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Run the pipeline 'builtin.module(…)'.")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run this pipeline instead of the target's.")
    ] = None,
    debug_info: Annotated[
        bool, typer.Option("-g", help="Emit line tables in the LLVM IR, from the locations.")
    ] = False,
    no_asserts: Annotated[bool, option(typer, "opt-py", "asserts")] = False,
    list_passes: Annotated[bool, typer.Option("--list-passes", help="List the passes.")] = False,
    print_pipeline: Annotated[
        bool,
        typer.Option(
            "--print-pipeline", help="Print the pipeline as text for --passes; run nothing."
        ),
    ] = False,
    split: Annotated[
        bool,
        typer.Option(
            "--split-input-file", help="Process the parts between '// -----' lines separately."
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify-diagnostics", help="Check errors against expected-error comments."),
    ] = False,
    print_before: Annotated[
        bool, typer.Option("--mlir-print-ir-before-all", help="Print each pass's input to stderr.")
    ] = False,
    print_after: Annotated[
        bool, typer.Option("--mlir-print-ir-after-all", help="Print each pass's output to stderr.")
    ] = False,
    locations: Annotated[
        bool, typer.Option("--mlir-print-debuginfo", help="Print locations in MLIR.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", help="Print the time of each step to stderr.")
    ] = False,
    draw_layout: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Draw '(4,8):(1,4)' or a tiled type as SVG."),
    ] = None,
    draw_with: Annotated[
        str | None,
        typer.Option(metavar="OPTIONS", help="tile=MxN, element=f16, vector=8, target=gfx950."),
    ] = None,
    _: Annotated[bool, version.option(typer, TOOL, "llvm-link")] = False,
) -> None:
    """Run passes on MLIR and print the result. Without options: parse, verify, print."""
    from fly_common.errors import UsageError

    from fly_opt.pipeline.options import Options

    if list_passes:
        filter.write_output(_pass_list().encode(), output)
        return
    if draw_layout is not None or draw_with is not None:
        from fly_opt import drawing

        filter.write_output(drawing.svg(draw_layout, draw_with), output)
        return
    file, flags = _sort(arguments or [])
    for text in (*flags, passes or ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            from fly_common.quoting import quoted

            raise UsageError(f"{quoted(text)}: is not UTF-8") from None
    if flags:
        chosen = {"target": target, "backend": backend, "passes": passes, "pipeline": pipeline}
        for name, value in chosen.items():
            if value is not None:
                raise UsageError(
                    f"{flags[0]} can't be combined with --{name}",
                    hint="--print-pipeline shows a pipeline's text, which --passes takes",
                )
        passes = _pipeline_of(flags)
    backend = backend_of(target, backend)
    given = (target, emit, passes, pipeline, debug_info, locations, backend, not no_asserts)
    options = Options(*given)
    if print_pipeline:
        filter.write_output(_pretty(options).encode(), output)
        return
    from fly_opt.reporting.observer import Observer

    observer = Observer(before_all=print_before, after_all=print_after, timing=timing)
    try:
        filter.stage(
            TOOL,
            file,
            lambda data, name: _work(data, name, options, observer, split, verify),
            output=output,
            suffix=".mlir",
            flags=_flags(options, split, verify),
        )
    finally:
        observer.report()


def _work(
    data: bytes, name: str, options: Options, observer: Observer, split: bool, verify: bool
) -> bytes:
    from fly_common import artifact
    from fly_common.command_line.isolation import isolate

    isolate("MLIR", name)
    from fly_opt.pipeline import pipelines, split_input
    from fly_opt.pipeline.stage import check, run

    chosen = pipelines.select(options)
    # MLIR reads empty text as an empty module, which later tools would then reject.
    if (kind := artifact.identify(data)) in (artifact.EMPTY, artifact.EMPTY_MODULE):
        check(chosen)  # report a wrong call first
        artifact.refuse(kind, artifact.MLIR, name)
    if split or verify:
        return split_input.run(data, chosen, options, name, observer, split, verify)
    return run(data, chosen, options, name, observer)


def _sort(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Separates the file from the pass flags among the arguments that click doesn't know."""
    from fly_common.errors import UsageError

    flags = [word for word in arguments if word.startswith("-") and word != filter.STDIN]
    files = [word for word in arguments if word not in flags]
    if len(files) > 1:
        raise UsageError(f"more than one input file: {', '.join(files)}")
    for flag in flags:
        if not flag.startswith("--"):
            raise UsageError(f"no such option: {flag}", hint=f"see {TOOL} --help")
    return (files[0] if files else None), flags


def _pipeline_of(flags: list[str]) -> str:
    """Returns the pipeline text for flags `--name` and `--name=options`, in their order."""
    from fly_opt.pipeline.runner import implicit_nest
    from fly_opt.pipeline.text import Step

    steps = []
    for flag in flags:
        name, _, options = flag.removeprefix("--").partition("=")
        steps.append(implicit_nest(Step(name, " ".join(options.strip("{}").split()))))
    return ",".join(map(str, steps))


def _pretty(options: Options) -> str:
    """Formats the selected pipeline, one element a line."""
    from fly_opt.pipeline import pipelines

    chosen = pipelines.select(options)
    if active() and options.passes is None:
        from fly_opt.pipeline import plugins

        return plugins.shown(chosen)
    elements = ",\n".join(f"  {element}" for element in chosen.elements)
    return f"{chosen.anchor}(\n{elements}\n)\n" if elements else f"{chosen.anchor}()\n"


def _pass_list() -> str:
    from fly_opt.pipeline import registry

    ours, theirs = registry.descriptions(), registry.upstream()
    width = max(map(len, [*ours, *theirs]))
    lines = ["Passes of this project:"]
    lines += [f"  {name:<{width}}  {text}" for name, text in ours.items()]
    lines += ["", "Passes of MLIR that it uses or that go well with it (any other works as well):"]
    lines += [f"  {name:<{width}}  {text}" for name, text in theirs.items()]
    return "\n".join(lines) + "\n"


def _flags(options: Options, split: bool, verify: bool) -> list[str]:
    """Returns the command line that gives these options."""
    flags = plugin_flags()
    for name in ("target", "backend", "emit", "passes", "pipeline"):
        if (value := getattr(options, name)) is not None:
            flags.append(f"--{name}={value}")
    flags += ["-g"] * options.debug_info
    flags += ["--mlir-print-debuginfo"] * options.locations
    flags += ["--no-asserts"] * (not options.asserts)
    return flags + ["--split-input-file"] * split + ["--verify-diagnostics"] * verify


def main() -> None:
    filter.run(with_plugins(command), TOOL)
