"""The table's numbers, and when a progress bar shows."""

import io
import math
import os
import pty
import sys

import numpy as np
import pytest
from fly_run.shell import report


@pytest.mark.parametrize(
    ("array", "dtype", "row"),
    [
        (np.arange(10, dtype=np.int32), "i32", ("0", "9", "4.5", "0 1 2 3 …")),
        (np.array([1.5, -2.25]), "f64", ("-2.25", "1.5", "-0.375", "1.5 -2.25")),
        (np.array([True, False]), "bool", ("false", "true", "0.5", "true false")),
        (np.array([0x3F80, 0xC000], np.uint16), "bf16", ("-2", "1", "-0.5", "1 -2")),
        (np.array([], np.float32), "f32", ("", "", "", "")),
        (np.array(7, np.uint8), "u8", ("7", "7", "7", "7")),
        (np.array([1, math.nan, 3.0]), "f64", ("1", "3", "2", "1 nan 3 (1 NaN)")),
        (np.array([math.nan] * 2, "f4"), "f32", ("nan", "nan", "nan", "nan nan (2 NaN)")),
        (np.array([60000] * 4, np.float16), "f16", ("60000",) * 3 + ("60000 60000 60000 60000",)),
        (np.array([math.inf, 1.0]), "f64", ("1", "inf", "inf", "inf 1")),
        (np.arange(6).reshape(2, 3).T, "i64", ("0", "5", "2.5", "0 3 1 4 …")),
    ],
)
def test_summary(array, dtype, row):
    assert report.summary(array, dtype) == row


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, *, terminal: bool, seconds: float) -> str:
    stream = Terminal() if terminal else io.StringIO()
    clock = iter([0.0, *[seconds] * 100])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(report.time, "monotonic", lambda: next(clock, seconds))
    monkeypatch.setenv("TERM", "xterm")
    bar = report.ProgressBar()
    for done in range(1, 5):
        bar(done, 4)
    bar.close()
    return stream.getvalue()


def test_short_runs_show_no_progress(monkeypatch):
    assert shown(monkeypatch, terminal=True, seconds=0.9) == ""


def test_pipes_show_no_progress(monkeypatch):
    assert shown(monkeypatch, terminal=False, seconds=90) == ""


def test_long_runs_show_progress(monkeypatch):
    assert "workgroups" in shown(monkeypatch, terminal=True, seconds=90)


def test_the_table_on_a_terminal(assemble, add_program, tmp_path):
    """On a pseudo-terminal: the same cells, laid out by rich."""
    path = tmp_path / "add.hsaco"
    path.write_bytes(assemble("add", manifest=add_program))
    words = [str(path), "A=arange(9)", "B=arange(9)", f"C={tmp_path}/c.npy"]
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"COLUMNS": "200", "TERM": "dumb"}
        os.execv(
            sys.executable, [sys.executable, "-c", "from fly_run.cli import main; main()", *words]
        )
    text = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text
    lines = text.decode().splitlines()
    (row,) = [line for line in lines if line.strip().startswith("C ")]
    assert row.split()[:6] == ["C", "f32", "9", "0", "16", "8"]
    assert row.rstrip().endswith("c.npy")
