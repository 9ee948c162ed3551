"""docs/kernels.md lists all kernels, and what they cost is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fly import kernels

ROOT = Path(__file__).parents[2]


def pages() -> str:
    found = [ROOT / "docs" / "kernels.md", *(ROOT / "docs" / "kernels").glob("*.md")]
    return "\n".join(page.read_text(encoding="utf-8") for page in found)


@pytest.mark.parametrize("name", kernels.__all__)
def test_all_kernels_are_listed_and_documented(name):
    assert f"`{name}" in pages()
    assert getattr(kernels, name).__doc__


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
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import kernels as costs

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
    sys.path.insert(0, str(ROOT / "benchmarks"))
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
