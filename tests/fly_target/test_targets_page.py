"""docs/targets.md has a line for each row."""

from __future__ import annotations

from pathlib import Path

from fly_target.amd.facts import facts_of
from fly_target.nvidia.facts import nvidia_facts_of
from fly_target.registry import BUILT_IN
from fly_target.target import Target

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"


def line_of_nvidia(target: Target) -> str:
    facts = nvidia_facts_of(target)
    cells = (
        f"`{target.name}`",
        target.family,
        target.products,
        f"{target.lds >> 10} KiB",
        f"{facts.shared >> 10} KiB",
        str(facts.warps),
        str(facts.blocks),
        {"ocp": "OCP"}.get(target.float8, "–"),
    )
    return f"| {' | '.join(cells)} |"


def line(target: Target) -> str:
    files = facts_of(target).registers
    registers = f"{files.vgprs}" + (" + 256" if files.accumulation == "separate" else "")
    cells = (
        f"`{target.name}`",
        target.family,
        target.products or "–",
        " or ".join(map(str, target.wave_sizes)),
        f"{target.lds >> 10} KiB",
        registers,
        {"fnuz": "FNUZ", "ocp": "OCP"}.get(target.float8, "–"),
        "yes" if target.emulated else "no",
    )
    return f"| {' | '.join(cells)} |"


def test_the_page_lists_the_rows() -> None:
    found = [text for text in PAGE.read_text().splitlines() if text.startswith("| `gfx")]
    assert found == [line(target) for target in BUILT_IN.values() if target.amd is not None]
    found = [text for text in PAGE.read_text().splitlines() if text.startswith("| `sm_")]
    nvidia = [target for target in BUILT_IN.values() if target.nvidia is not None]
    assert found == [line_of_nvidia(target) for target in nvidia]
