"""The quick reader of command lines, against typer: on every option of every tool they agree."""

from __future__ import annotations

import contextlib
import functools
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from fly_common.command_line.command import Command
from fly_common.errors import UsageError
from hypothesis import given, settings
from hypothesis import strategies as st
from typer._click.exceptions import ClickException

MODULES = ("fly_trace", "fly_opt", "fly_llc", "fly_link", "fly_run")
COMMANDS: dict[str, Command] = {
    module: importlib.import_module(f"{module}.cli").command for module in MODULES
}
VALUES = {str: ["gfx942", "x=y", "-", "-x", "--emit", ""], int: ["3", "-1"], float: ["2.5", "1e3"]}
every = pytest.mark.parametrize("module", MODULES)


@functools.cache
def application(module: str) -> tuple[typer.Typer, list[dict[str, Any]]]:
    """The tool's typer application, doing nothing but keep what it is called with."""
    command = COMMANDS[module]
    command.app()
    kept: list[dict[str, Any]] = []
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    @app.command(**command.settings)
    @functools.wraps(command.function)
    def keep(**values: Any) -> None:
        kept.append(values)

    return app, kept


def by_typer(module: str, words: list[str]) -> dict[str, Any] | None:
    """What typer makes of the words; None where it calls nothing."""
    app, kept = application(module)
    kept.clear()
    with contextlib.suppress(ClickException):
        app(words, standalone_mode=False, prog_name=module)
    return kept[0] if kept else None


def options(module: str) -> list[Any]:
    """Typer's own list of the tool's options, without `--help` and `--version`."""
    found = typer.main.get_command(application(module)[0]).params
    return [one for one in found if one.param_type_name == "option" and one.name != "_"]


def values_of(option: Any) -> list[str]:
    kinds = {"text": str, "integer": int, "float": float, "str": str, "int": int}
    return VALUES[kinds[option.type.name]]


@every
def test_every_option_is_read_as_typer_reads_it(module):
    """In each way of writing it, once and twice, before and behind a free word."""
    free = ["k.ll"]
    for option in options(module):
        for flag in option.opts:
            if option.is_flag:
                calls = [[flag], [flag, flag]]
            else:
                values = values_of(option)
                calls = [[flag, value] for value in values]
                calls += [
                    [f"{flag}={value}" if flag.startswith("--") else f"{flag}{value}"]
                    for value in values
                    if value
                ]
                calls += [[*one, *other] for one in calls[:3] for other in calls[-2:]]
            for words in calls:
                expected = by_typer(module, [*words, *free])
                assert expected is not None, words
                assert COMMANDS[module].read([*words, *free]) == expected, words
                assert COMMANDS[module].read([*free, *words]) == expected, words


@every
def test_no_option_at_all(module):
    for words in ([], ["-"], ["a"], ["a", "b"], ["a", "-", "c=d"]):
        read = COMMANDS[module].read(words)
        assert read == by_typer(module, words)


@every
@settings(max_examples=150)
@given(data=st.data())
def test_it_never_disagrees(module, data):
    """Whatever the words are: the quick reader leaves them to typer, or finds what typer finds."""
    flags = [flag for option in options(module) for flag in option.opts]
    joined = [flag + tail for flag in flags for tail in ("=", "=x", "3", "x")]
    odd = ["--", "-", "", "--help", "--version", "--none", "-Z", "-qg", "--=", "-3", "k.ll", "2"]
    words = data.draw(st.lists(st.sampled_from([*flags, *joined, *odd]), max_size=6))
    read = COMMANDS[module].read(words)
    assert read is None or read == by_typer(module, words)


def command(
    file: Annotated[str, typer.Argument()],
    count: Annotated[int, typer.Option("-c", min=1)] = 1,
    quiet: Annotated[bool, typer.Option()] = False,
    stop: Annotated[int, typer.Option(callback=lambda code: stop(code))] = 0,
) -> None:
    print(file, count, quiet)


def stop(code: int) -> int:
    if code == 130:
        raise typer.Abort()
    if code:
        raise typer.Exit(code)
    return code


def test_what_is_left_to_typer(capsys):
    """An option with a range, a switch with two names, one with a callback."""
    made = Command(command)
    assert made.read(["a"]) == {"file": "a", "count": 1, "quiet": False, "stop": 0}
    for words in ([], ["a", "-c2"], ["a", "--quiet"], ["a", "--no-quiet"], ["a", "--stop=3"]):
        assert made.read(words) is None
    assert made("fly-x", ["a", "-c2", "--quiet"]) == 0
    assert capsys.readouterr().out == "a 2 True\n"
    assert made("fly-x", ["a", "--stop=3"]) == 3
    with pytest.raises(KeyboardInterrupt):
        made("fly-x", ["a", "--stop=130"])
    with pytest.raises(UsageError, match="Missing argument 'file'") as caught:
        made("fly-x", [])
    assert caught.value.hint == "see fly-x --help"


@every
def test_a_good_call_does_not_import_typer(module, tmp_path):
    source = Path(__file__).parents[3] / "examples" / "vector_add.py"
    words = [str(source if module == "fly_trace" else tmp_path / "absent")]
    program = (
        f"import sys; sys.argv = ['tool', {words[0]!r}]\n"
        f"from {module}.cli import main\n"
        "try:\n  main()\n"
        "except SystemExit:\n"
        "  print(sorted({'typer', 'click'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[]"
