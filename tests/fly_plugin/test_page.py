"""docs/plugins.md: its table names tests that exist, its list of slots is the whole list."""

from __future__ import annotations

import re
from pathlib import Path

from fly_plugin import slots
from plugins import ROOT

PAGE = (ROOT / "docs" / "plugins.md").read_text()


def test_each_row_has_a_test_or_a_reason():
    table = PAGE.partition("## What is asked of such a system")[2]
    rows = [line.split(" | ", 1) for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    for request, answer in rows:
        named = re.findall(r"`(test_\w+)`", answer)
        assert named or answer.startswith("no: "), request
        assert set(named) <= known, (request, set(named) - known)


def test_the_slots_are_all_there():
    listing = PAGE.partition("--list-slots\n")[2].partition("```")[0]
    shown = [line.split()[0] for line in listing.splitlines() if line and line != "…"]
    assert shown[:-3] == [slot.name for slot in slots.every()][: len(shown) - 3]
    assert shown[-3:] == [slot.name for slot in slots.SLOTS][-3:]
