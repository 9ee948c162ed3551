"""What `python -m fly.flydsl` prints of a program that is wrong, and its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = {
    "import flydsl.nothing": (1, "ModuleNotFoundError: fly.flydsl has no module flydsl.nothing"),
    "from flydsl.expr import nothing": (1, "ImportError: cannot import name 'nothing'"),
    "import flydsl\nraise RuntimeError('own')": (1, "RuntimeError: own"),
    "def f(:": (1, "SyntaxError: "),
    "import sys\nsys.exit(7)": (7, ""),
}


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fly.flydsl", *words]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("text", PROGRAMS)
def test_errors_of_programs(text: str, tmp_path: Path):
    """As Python prints them, without lines of what runs the program."""
    program = tmp_path / "program.py"
    program.write_text(text)
    done, (status, said) = ran(str(program)), PROGRAMS[text]
    assert done.returncode == status
    assert said in done.stderr
    assert "runpy" not in done.stderr
    assert "__main__" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.py",), "there is no program nothing.py"),
        (("--bogus", "x.py"), "unknown option --bogus"),
        (("-m", "nothing_at_all"), "there is no module nothing_at_all"),
        (("-m", "nothing_at_all.x"), "there is no module nothing_at_all.x"),
        ((), "usage: "),
    ],
)
def test_wrong_calls(words: tuple[str, ...], said: str):
    done = ran(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
