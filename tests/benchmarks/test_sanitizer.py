"""h200_devices.sanitizer: finds compute-sanitizer, and reports what its tools found."""

from __future__ import annotations

import pytest
from h200_devices import sanitizer


@pytest.fixture
def sanitized(tmp_path, monkeypatch):
    """A compute-sanitizer whose synccheck finds an error in the command `bad`."""
    made = tmp_path / sanitizer.NAME
    made.write_text(
        '#!/bin/sh\necho "$@" >> ' + f"{tmp_path}/log\n"
        'case "$*" in *synccheck*bad) exit 9;; *memcheck*dies) exit 1;; esac\n'
    )
    made.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "log"


def test_both_tools_run(sanitized, capfd):
    assert sanitizer.main(["python", "good"]) == 0
    assert sanitized.read_text().splitlines() == [
        "--tool memcheck --error-exitcode 9 python good",
        "--tool synccheck --error-exitcode 9 python good",
    ]
    assert capfd.readouterr().out == "memcheck: clean\nsynccheck: clean\n"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("bad", "memcheck: clean\nsynccheck: found errors\n"),
        ("dies", "memcheck: exit 1\nsynccheck: clean\n"),
    ],
)
def test_what_a_tool_finds_is_a_failure(sanitized, capfd, word, told):
    assert sanitizer.main(["python", word]) == 1
    assert capfd.readouterr().out == told


def test_in_a_toolkit(tmp_path, monkeypatch):
    (tmp_path / "nvidia/cu13/bin").mkdir(parents=True)
    program = tmp_path / "nvidia/cu13/bin" / sanitizer.NAME
    program.touch()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert sanitizer.find() == str(program)


def test_it_says_that_there_is_none(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sanitizer, "places", lambda: iter(()))
    assert sanitizer.main(["python"]) == sanitizer.MISSING
    assert "compute-sanitizer was not found" in capsys.readouterr().out
