"""The options of the chain's stages: one table of where each of them can be set.

Stages have typed options of their own (`fly_opt.pipeline.options.Options`,
`fly_llc.codegen.options.Options`); opt has words. Command-line flags, keywords of `@fly.jit` and
environment variables are read through this table, so a new option is a row here and a field there.
"""

from __future__ import annotations

from fly_common.record import record

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@record
class Option:
    """`stage` is "opt-py", "opt", "llc" or "link", `field` the name in its options. `flag` is the
    command-line flag, `keyword` that of `@fly.jit`, `variable` the environment variable; "" if
    there is none.

    `kind` says how text is parsed: "text", "level" (0 to 3), "switch", "seconds"; for several
    values "words" (separated as in a shell), "paths" (as in PATH), "lines" (by line breaks or
    semicolons). `inverse`: the flag sets the field to false.
    """

    stage: str
    field: str
    flag: str = ""
    kind: str = "text"
    keyword: str = ""
    variable: str = ""
    metavar: str = ""
    help: str = ""
    inverse: bool = False

    @property
    def many(self) -> bool:
        return self.kind in ("words", "paths", "lines")

    @property
    def parameter(self) -> str:
        """The parameter for the flag's value in the command's function."""
        return self.field if len(self.flag) == 2 else self.flag.lstrip("-").replace("-", "_")


OPTIONS = (
    Option("opt-py", "target", "--target"),
    Option("opt-py", "backend", "--backend"),
    Option("opt-py", "emit", "--emit"),
    Option("opt-py", "passes", "--passes"),
    Option("opt-py", "pipeline", "--pipeline"),
    Option("opt-py", "debug_info", "-g", "switch"),
    Option("opt-py", "locations", "--mlir-print-debuginfo", "switch"),
    Option(
        *("opt-py", "asserts", "--no-asserts", "switch", "asserts", "FLY_ASSERTS"),
        help="Leave out the asserts of kernels.",
        inverse=True,
    ),
    # opt is LLVM's. `fly.chains.tuning.Tuning.opt_words` converts these options to its arguments.
    Option("opt", "level", "-O", "level", "opt_level", "FLY_OPT_LEVEL"),
    Option("opt", "pipeline", "-passes", "text", "opt_pipeline", "FLY_OPT_PIPELINE"),
    Option("opt", "plugins", "-load-pass-plugin", "paths", "opt_plugins", "FLY_OPT_PLUGINS"),
    Option("opt", "options", "", "words", "opt_options", "FLY_OPT_OPTIONS"),
    Option("llc", "emit", "--emit", "text", metavar="obj|asm|mir|ptx", help="Output format. [obj]"),
    Option("llc", "level", "-O", "level", metavar="0|1|2|3", help="Optimization level. [2]"),
    Option(
        *("llc", "flags", "--llvm", "words", "llc_options", "FLY_LLC_OPTIONS"),
        metavar="-OPTION",
        help="Pass one of LLVM's own options to llc.",
    ),
    Option(
        *("llc", "insert", "--insert", "lines", "insert", "FLY_LLC_INSERT"),
        metavar="before|after:PASS=WHAT",
        help="Run WHAT on the MIR at this point. Repeatable.",
    ),
    Option(
        *("llc", "replace", "--replace", "lines", "replace", "FLY_LLC_REPLACE"),
        metavar="PASS=WHAT",
        help="Run WHAT instead of a machine pass.",
    ),
    Option(
        *("llc", "disable", "--disable-pass", "lines", "disable_passes", "FLY_LLC_DISABLE_PASSES"),
        metavar="PASS",
        help="Skip a machine pass.",
    ),
    Option(
        *("llc", "in_process", "--in-process", "switch"),
        help="Run native passes in the llc process, not as filters.",
    ),
    Option(
        *("llc", "verify", "--no-verify", "switch"),
        help="Don't run LLVM's machine verifier on the output of WHAT.",
        inverse=True,
    ),
    Option(
        *("llc", "timeout", "--timeout", "seconds"),
        metavar="SECONDS",
        help="Kill llc, or a WHAT, after this time. [300]",
    ),
    Option(
        *("llc", "dump", "--dump-mir"),
        metavar="DIR",
        help="Write the MIR at each point to DIR.",
    ),
    Option(
        *("llc", "stop_after", "--stop-after"),
        metavar="PASS",
        help="Stop after this machine pass and print MIR.",
    ),
    Option(
        *("llc", "stop_before", "--stop-before"),
        metavar="PASS",
        help="Stop before this machine pass and print MIR.",
    ),
    Option(
        *("llc", "start_after", "--start-after"),
        metavar="PASS",
        help="Resume MIR after this machine pass.",
    ),
    Option(
        *("llc", "start_before", "--start-before"),
        metavar="PASS",
        help="Resume MIR before this machine pass.",
    ),
    Option(
        *("link", "emit", "--emit"),
        metavar="image|ptx|sass",
        help="Output format; ptx and sass are for NVIDIA. [image]",
    ),
    Option(
        *("link", "flags", "--ptxas", "words"),
        metavar="-OPTION",
        help="Pass one of ptxas's own options to it.",
    ),
    Option(
        *("link", "timeout", "--timeout", "seconds"),
        metavar="SECONDS",
        help="Kill ld.lld, or ptxas, after this time. [300]",
    ),
)
# The keywords of `@fly.jit`.
KEYWORDS = {row.keyword: row for row in OPTIONS if row.keyword}


def of_stage(stage: str) -> dict[str, Option]:
    """Returns a stage's options by field."""
    return {row.field: row for row in OPTIONS if row.stage == stage}


def flag(typer: Any, stage: str, field: str) -> Any:
    """Returns the option as a typer parameter of a tool's command."""
    row = of_stage(stage)[field]
    if row.kind == "switch":
        return typer.Option(row.flag, help=row.help)
    return typer.Option(row.flag, metavar=row.metavar, help=row.help)


def fields(stage: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that a command's parameters set. Unset ones are omitted."""
    made: dict[str, Any] = {}
    for field, row in of_stage(stage).items():
        value = arguments.get(row.parameter)
        if row.kind == "switch":
            if value:
                made[field] = not row.inverse
        elif value is not None:
            made[field] = tuple(value) if row.many else value
    return made


def words(stage: str, values: Mapping[str, Any]) -> list[str]:
    """Returns the fields as arguments of the stage's command line."""
    rows, made = of_stage(stage), []
    for field, value in values.items():
        row = rows[field]
        if row.kind == "switch":
            made += [row.flag] * (bool(value) is not row.inverse)
        elif row.many:
            made += [word for one in value for word in (row.flag, str(one))]
        elif value is not None:
            made += [row.flag, str(value)]
    return made
