"""Tables, and the progress bar on a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fly

from .planted import blocks, scale, sums

HERE = Path(__file__).parent


def test_a_report_lists_all_configurations():
    x, y = np.ones((64, 64), np.float32), np.zeros(64, np.float32)
    configs = [fly.Config(ACROSS=across) for across in (False, True)]
    tuned = fly.autotune(configs, key=["n"])(sums)
    lines = tuned.report(x, y).splitlines()
    assert lines[0] == "sums: n=64, X:f32 Y:f32, gfx942 on emulator"
    assert lines[1].split() == (
        ["configuration", "cost", "relative", "limit", "waves", "per", "SIMD", "VGPRs", "LDS"]
    )
    assert re.fullmatch(r"ACROSS=True +[\d,]+ cycles  1\.00 +latency +8 +\d+ +0", lines[2])
    assert lines[3].startswith("ACROSS=False ")
    assert lines[4:] == ["measured by counts of the emulator, cost model 1"]


def test_the_report_of_a_call(monkeypatch, capsys):
    monkeypatch.setenv("FLY_AUTOTUNE", "report")
    x = np.ones(64, np.float32)
    tuned = fly.autotune(blocks(64, 128), key=["n"])(scale)
    tuned(x)
    tuned(x)
    err = capsys.readouterr().err
    assert err.count("configuration") == 1
    assert err.startswith("scale: n=64, X:f32, gfx942 on emulator\n")


def test_nothing_is_printed_otherwise(monkeypatch, capsys):
    monkeypatch.setenv("FLY_AUTOTUNE", "1")
    fly.autotune(blocks(64, 128), key=["n"])(scale)(np.ones(64, np.float32))
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("shared_handlers")
def test_a_bar_on_a_terminal():
    program = (
        f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
        "import numpy as np, fly, planted\n"
        "t = fly.autotune(planted.blocks(64, 128), key=['n'])(planted.scale)\n"
        "t.tune(np.ones(64, np.float32))\n"
        "print('rich' in sys.modules)\n"
    )
    leader, follower = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=follower, stdout=subprocess.PIPE, env=environment
    )
    os.close(follower)
    text = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert done.stdout == b"True\n", text
    assert "tuning scale" in text
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
