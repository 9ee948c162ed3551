"""benchmarks/h200/library.py: its calls are right on the emulator, and its table is that of the
results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from h200 import library


@pytest.fixture(autouse=True)
def on_emulator(monkeypatch):
    monkeypatch.setenv("FLY_DEVICE", "emulator")


@pytest.mark.heavy
def test_calls_are_right(tmp_path):
    library.prepare(tmp_path, "gfx942", library.SMALL)
    found = [call.name for call, *_ in library.cases(tmp_path)]
    assert found == [call.name for call in library.CALLS]


def test_a_wrong_result_is_found():
    call, x = library.CALLS[0], library.torch.ones(2, 3)
    library.check(call, x, x)
    with pytest.raises(AssertionError):
        library.check(call, x, x + 1)


def test_the_page_has_the_results():
    results = library.PAGE.parents[1] / "benchmarks" / "results" / "h200-kernels.json"
    text = library.PAGE.read_text(encoding="utf-8")
    assert library.table(json.loads(results.read_text())) in text
