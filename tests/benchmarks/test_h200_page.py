"""Sections of the page of results."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from h200 import page

TEXT = "# Page\n\nabout\n\n## One\n\n1\n\n## Two\n\n2\n"


def test_a_section_takes_the_place_of_an_earlier_one(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(TEXT)
    page.put("## One\n\n3\n", file)
    page.put("## Three\n\n4\n", file)
    assert file.read_text() == TEXT.replace("1", "3") + "\n## Three\n\n4\n"


def test_the_beginning_keeps_other_sections(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(TEXT)
    page.begin("# Page\n\nnew\n\n## One\n\n5\n", file)
    assert file.read_text() == "# Page\n\nnew\n\n## One\n\n5\n\n## Two\n\n2\n"
