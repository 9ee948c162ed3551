"""docs/kernels.md links a page for each kernel, and what they cost is measured."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from console import sessions

from fly import kernels

ROOT = Path(__file__).parents[2]


OVERVIEW = ROOT / "docs" / "kernels.md"
LINKS = re.compile(r"\]\((kernels/\w+\.md)")
# What each page says of its kernels, by the headings of its sections.
SECTIONS = ("## How it works", "## Costs", "## How to change it")


def linked() -> dict[str, str]:
    """The texts of the pages that the overview links, by file name."""
    found = dict.fromkeys(LINKS.findall(OVERVIEW.read_text(encoding="utf-8")))
    return {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in found}


def shown(function: Callable[..., Any]) -> str:
    """A function's name and parameters as pages show them, without types."""
    signature = inspect.signature(function)
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return function.__name__ + text.replace("'", '"').replace("e-0", "e-")


@pytest.mark.parametrize("name", kernels.__all__)
def test_all_kernels_have_a_page_that_is_linked(name: str):
    function = getattr(kernels, name)
    assert any(f"`{shown(function)}`" in text for text in linked().values()), shown(function)
    assert function.__doc__


def test_all_pages_are_linked():
    assert {Path(name).name for name in linked()} == {
        path.name for path in (ROOT / "docs" / "kernels").iterdir()
    }


@pytest.mark.parametrize("page", sorted({*linked()} - {"kernels/peers.md"}))
def test_pages_say_how_a_kernel_works_what_it_costs_and_how_to_change_it(page: str):
    text = linked()[page]
    places = [text.find(f"\n{heading}\n") for heading in SECTIONS]
    assert places == sorted(places)
    assert places[0] > 0
    works, change = text[places[0] : places[1]], text[places[2] :]
    assert "\n    " in works, "no picture: an indented block"
    assert [command for command, _ in sessions(change)], "no change is tried"


def test_lines_of_some_calls_are_replaced(monkeypatch):
    """As kernel_quality.py --only does with --write."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import kernel_quality

    present = "| call | executed |\n|---|---|\n| `a(x)` | 1 / 2 |\n| `a(x, 8)` | 3 / 4 |\n"
    found = kernel_quality.merged(present, "| call | executed |\n|---|---|\n| `a(x)` | 9 / 2 |\n")
    assert found == present.replace("1 / 2", "9 / 2")


def test_no_function_has_the_name_of_a_module():
    modules = {path.stem for path in Path(kernels.__file__).parent.rglob("*.py")}
    assert not modules & set(kernels.__all__)


def test_nothing_is_imported_before_it_is_used():
    from subprocess import run

    code = "import sys, fly.kernels; print({'torch', 'numpy', 'fly.expr'} & {*sys.modules})"
    assert run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.heavy
def test_costs_are_measured():
    pytest.importorskip("torch")
    sys.path.append(str(ROOT / "benchmarks"))
    import kernel_costs as costs

    def counts(table: str) -> list[list[str]]:
        """The cells of a table but the errors, which depend on torch's processor."""
        return [line.split(" | ")[:6] for line in table.splitlines()]

    written = costs.PAGE.read_text(encoding="utf-8").split(costs.FIRST)[1].split(costs.LAST)[0]
    assert counts(written) == counts(costs.table())


@pytest.mark.heavy
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_costs_beside_peers_are_measured(target, tmp_path):
    """Ours are counted again, the first of each cell."""
    pytest.importorskip("torch")
    sys.path.append(str(ROOT / "benchmarks"))
    import kernel_quality

    program = ROOT / "benchmarks" / "peers" / "fly_calls.py"
    command = [sys.executable, program, target, tmp_path / "code"]
    found = {"fly": kernel_quality.solve("fly", command, {}, target, tmp_path / "code")}

    def own(table: str) -> list[list[str]]:
        rows = [line.split(" | ") for line in table.splitlines()]
        return [[cell.split(" / ")[0].replace("*", "") for cell in row] for row in rows]

    first, last = (mark.format(target) for mark in (kernel_quality.FIRST, kernel_quality.LAST))
    written = kernel_quality.PAGE.read_text(encoding="utf-8").split(first)[1].split(last)[0]
    assert own(written) == own(kernel_quality.table(found))
    assert kernel_quality.report(found, target) == []
