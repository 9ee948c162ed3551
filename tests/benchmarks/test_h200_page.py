"""Sections of the page of results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fly.kernels.rowwise import row_plans

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from h200 import (
    attentions,
    decoding,
    dependent,
    dependents,
    few_rows,
    grouped,
    page,
    products,
    row_widths,
    scaled,
    warps,
)
from h200.row_kernels import row_cases

FILES = {
    attentions: "h200-attention",
    decoding: "h200-decoding",
    dependent: "h200-dependent",
    dependents: "h200-dependents",
    few_rows: "h200-few-rows",
    products: "h200-products",
    row_widths: "h200-rows",
    grouped: "h200-grouped",
    scaled: "h200-scaled",
    warps: "h200-warps",
}
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


def test_the_page_has_the_tables_of_the_results():
    text = page.PAGE.read_text(encoding="utf-8")
    for module, file in FILES.items():
        document = json.loads((page.PAGE.parent / f"{file}.json").read_text())
        assert module.table(document) in text


def test_shipped_plans_are_the_fastest_right_ones():
    ours = json.loads(row_widths.TRIED.read_text())
    shipped = json.loads(row_plans.FILE.read_text())["sm_90a"]
    for kernel, plans in shipped.items():
        for width, plan in plans.items():
            own = [
                row
                for row in ours
                if (row["case"], 2 * row["columns"]) == (kernel, int(width)) and not row["wrong"]
            ]
            (chosen,) = (row for row in own if row["ship"] == plan)
            assert chosen["rates"][0] == max(row["rates"][0] for row in own)


@pytest.mark.heavy
def test_rows_are_compared_with_f64():
    """A right result has no wrong share; one that is off by little more than a rounding has."""
    for case in row_cases.CASES:
        inputs = case.make(256, "cpu", 1 << 12)
        right = row_widths.exact(case, inputs)
        made = [one.bfloat16() if case.rounded else one for one in right]
        assert row_widths.wrong(case, tuple(made), right) == 0, case.name
        off = (made[0].float() * 1.02 + 0.01, *made[1:])
        assert row_widths.wrong(case, off, right) > 0, case.name
