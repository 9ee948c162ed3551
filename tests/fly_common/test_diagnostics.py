"""Errors and warnings as JSON, and the calls that lead to an error."""

import json
import os
import subprocess
import sys

import pytest
from fly_common import diagnostics
from fly_common.errors import InputError, Place, Related, UsageError
from fly_common.programs import llvm_diagnostics

TEXT = "    y = 'ä𝄞' + x"


def printed(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.fixture(autouse=True)
def chosen(monkeypatch):
    monkeypatch.setattr(diagnostics, "_chosen", None)
    monkeypatch.delenv(diagnostics.VARIABLE, raising=False)


def test_json_has_the_protocols_numbers(capsys):
    assert diagnostics.take(["a.py", "--diagnostics=json", "-x"]) == ["a.py", "-x"]
    # The caret is at `x`, behind a character of two UTF-16 units.
    error = InputError("wrong", place=Place("k.py", 7, TEXT.index("x") + 1, TEXT), hint="mend it")
    error.related = (Related("called in k", Place("k.py", 9, 5, "    f(x)", 4)),)
    diagnostics.print_error(error, "fly-x")
    assert printed(capsys) == [
        {
            "source": "fly-x",
            "severity": "error",
            "message": "wrong",
            "file": "k.py",
            "range": {"start": {"line": 6, "character": 16}, "end": {"line": 6, "character": 17}},
            "hint": "mend it",
            "related": [
                {
                    "message": "called in k",
                    "file": "k.py",
                    "range": {
                        "start": {"line": 8, "character": 4},
                        "end": {"line": 8, "character": 8},
                    },
                }
            ],
        }
    ]


def test_json_of_what_is_not_known(capsys):
    diagnostics.take(["--diagnostics", "json"])
    diagnostics.warner("fly-x")("odd")
    diagnostics.warner("fly-x")(diagnostics.Warning("odd too", place=Place("k.py")))
    diagnostics.warner("fly-x")(diagnostics.Warning("odd line", place=Place("k.py", 3, None, "ab")))
    diagnostics.print_failure("fly-x", "out of memory", "less")
    first, second, third, fourth = printed(capsys)
    assert (first["severity"], first["file"], first["range"]) == ("warning", None, None)
    assert (second["file"], second["range"], second["related"]) == ("k.py", None, [])
    assert third["range"] == {
        "start": {"line": 2, "character": 0},
        "end": {"line": 2, "character": 2},
    }
    assert (fourth["severity"], fourth["hint"]) == ("error", "less")


def test_text(capsys):
    assert diagnostics.take(["--diagnostics=text", "--", "--diagnostics=json"]) == [
        "--",
        "--diagnostics=json",
    ]
    place = Place("k.py", 2, 3, "  a", calls=(Place("k.py", 8, 1, "f()"),))
    diagnostics.warner("fly-x")(diagnostics.Warning("odd", place=place, hint="mend it"))
    assert capsys.readouterr().err == (
        "fly-x: warning: k.py:2:3: odd\n    a\n    ^\n  called at k.py:8:1: f()\n  mend it\n"
    )


def test_the_variable_and_the_flag(monkeypatch):
    monkeypatch.setenv(diagnostics.VARIABLE, "json")
    assert diagnostics.is_json()
    diagnostics.take(["--diagnostics=text"])
    assert not diagnostics.is_json()


@pytest.mark.parametrize("words", [["--diagnostics=xml"], ["--diagnostics"]])
def test_unknown_formats(words):
    with pytest.raises(UsageError, match="must be text or json"):
        diagnostics.take(words)


def test_long_chains_are_shortened():
    error = InputError("deep", place=Place("k.py", 1, 1, "a"))
    error.related = tuple(Related("called", Place("k.py", n, 1)) for n in range(2, 22))
    lines = error.render("t").splitlines()
    assert lines[3:] == [
        *(f"  called at k.py:{n}:1" for n in range(2, 6)),
        "  … 12 more calls",
        *(f"  called at k.py:{n}:1" for n in range(18, 22)),
    ]
    error.related = (Related("called", Place("k.py", 4, 1, "f(x)")),) * 60
    assert error.render("t").splitlines()[3:] == ["  called at k.py:4:1: f(x) (60 times)"]
    assert str(error).endswith("  called at k.py:4:1: f(x) (60 times)")


@pytest.mark.parametrize(
    ("tool", "words", "text", "severity"),
    [
        ("fly_trace", ["missing.py"], "", "error"),
        ("fly_opt", ["--no-such-pass"], "", "error"),
        ("fly_llc", [], "define void @f( {", "error"),
        ("fly_link", [], "nothing", "error"),
        ("fly_run", ["missing.hsaco"], "", "error"),
    ],
)
def test_all_tools(tool, words, text, severity, tmp_path):
    code = f"from {tool}.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--diagnostics=json"],
        input=text.encode(),
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "FLY_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode
    (line,) = done.stderr.splitlines()
    said = json.loads(line)
    assert list(said) == ["source", "severity", "message", "file", "range", "hint", "related"]
    assert said["severity"] == severity


def test_what_llvm_says():
    found, rest = llvm_diagnostics.warnings(
        "warning: k.py:8:14: loop not unrolled: why\nwarning: <unknown>:0:0: odd\n"
        "warning: <unknown>:0:0: odd\nremark: other\n"
    )
    assert [(one.message, str(one.place)) for one in found] == [
        ("loop not unrolled: why", "k.py:8:14"),
        ("odd", "None"),
    ]
    assert rest == "remark: other"


def test_column_0_is_the_line(tmp_path):
    file = tmp_path / "k.py"
    file.write_text("\n    def k():\n")
    assert llvm_diagnostics.place(str(file), 2, 0) == Place(str(file), 2, 5, "    def k():")
    assert llvm_diagnostics.place("gone.py", 2, 0) == Place("gone.py", 2)
    assert llvm_diagnostics.place("<unknown>", 0, 0) is None
