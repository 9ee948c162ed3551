"""docs/atoms.md has the tables of all instructions that the registry knows, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby
from pathlib import Path

from fly_dialect.atoms.interface import AtomOp, CopyOp
from fly_dialect.atoms.matrix import WaveMma
from fly_dialect.atoms.registry import families
from fly_dialect.atoms.universal import UniversalFma
from fly_dialect.type_text import parse_type

PAGE = Path(__file__).parents[2] / "docs/atoms.md"
# An instance of each family that no table of forms gives.
EXAMPLES = {
    "fly.universal_copy": "<64>",
    "fly.universal_atomic": "<add, f32>",
    "fly.universal_fma": "<1x1x1, (f32, f32) -> f32>",
    "fly_nvvm.sm75.ldmatrix": "<x4>",
    "fly_nvvm.sm80.cp_async": "<128>",
    "fly_nvvm.sm90.stmatrix": "<x2, trans>",
    "fly_rocdl.cdna3.buffer_copy": "<128>",
    "fly_rocdl.cdna3.buffer_copy_lds": "<32>",
    "fly_rocdl.cdna3.buffer_atomic": "<add, f32>",
    "fly_rocdl.cdna4.buffer_load_async_lds": "<128>",
    "fly_rocdl.cdna4.global_load_async_lds": "<128>",
    "fly_rocdl.cdna4.lds_read_trans": "<trans = 16b, 64>",
    "fly_rocdl.gfx1250.tdm": "<rank = 2, warps = 4, pad = 0, 0, cache = 0, barrier = false, "
    "timeout = false>",
}


def instance(family: type[AtomOp]) -> AtomOp:
    if issubclass(family, WaveMma):
        form = family.FORMS[0]
        return family(form.m, form.n, form.k, form.a, form.b, form.acc)
    found = parse_type(f"!{family.NAME}{EXAMPLES[family.NAME]}")
    assert isinstance(found, family)
    return found


def threads(op: AtomOp) -> str:
    return str(op.thr_layout.shape)


def state(op: AtomOp) -> str:
    """The fields of the state; numbered ones from the first to the last."""
    cells = []
    for (_, type_), group in groupby(
        op.state, lambda field: (field.name.rstrip("0123456789"), field.type)
    ):
        names = [field.name for field in group]
        cells.append(
            " … ".join(f"`{name}`" for name in names[:: len(names) - 1 or 1]) + f" {type_}"
        )
    return ", ".join(cells) or "–"


def targets(families: tuple[str, ...]) -> str:
    return ", ".join(families) or "all"


def copies() -> list[str]:
    """The rows of copy instructions."""
    rows = []
    for family in families():
        if issubclass(family, CopyOp):
            op = instance(family)
            sizes = ", ".join(map(str, family.SIZES)) or "any"
            cells = f"`{family.NAME}`", threads(op), sizes, state(op), targets(family.FAMILIES)
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def elements(pairs: tuple[tuple[str, str], ...]) -> str:
    """The element types of A and B that a shape takes."""
    kinds = list(dict.fromkeys(a for a, _ in pairs))
    if len(kinds) > 1 and len(pairs) == len(kinds) ** 2:
        return f"any pair of {', '.join(kinds)}"
    assert all(a == b for a, b in pairs)
    return ", ".join(kinds)


def listed(shapes: list[str]) -> str:
    """The shapes; of many, the first and the last one."""
    return ", ".join(shapes) if len(shapes) < 8 else f"{shapes[0]} … {shapes[-1]}"


def matrices() -> list[str]:
    """The rows of matrix instructions: of a family, shapes that take the same elements together."""
    rows = []
    for family in families():
        op = instance(family)
        if isinstance(op, UniversalFma):
            rows.append(f"| `{family.NAME}` | {threads(op)} | one type | 1x1x1 | all | – |")
        if not issubclass(family, WaveMma):
            continue
        taken: dict[tuple[str, str, bool, str], list[tuple[str, str]]] = {}
        for form in family.FORMS:
            # Floats of 8 bits and fewer go with each other.
            small = form.a.startswith(("f8", "f6", "f4"))
            key = form.acc, targets(form.families), small, form.shape
            taken.setdefault(key, []).append((form.a, form.b))
        shapes: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[str]] = {}
        for (acc, where, _, shape), pairs in taken.items():
            shapes.setdefault((acc, where, tuple(pairs)), []).append(shape)
        for (acc, where, pairs), found in shapes.items():
            cells = (
                f"`{family.NAME}`",
                threads(op),
                f"{elements(pairs)} → {acc}",
                listed(found),
                where,
                state(op),
            )
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def test_the_page_has_the_tables():
    page = PAGE.read_text()
    wanted = copies() + matrices()
    missing = [row for row in wanted if row not in page]
    assert not missing, "rows that the page needs:\n" + "\n".join(missing)
    told = [line for line in page.splitlines() if line.startswith("| `fly")]
    assert told == wanted, "rows of nothing, or out of order"


def test_a_family_is_imported_when_its_type_is_met():
    """And each is in the module that the registry says."""
    script = (
        "import sys; from fly_dialect.atoms import registry\n"
        "homes = registry.homes()\n"
        "loaded = [m for m in homes.values() if m in sys.modules]\n"
        "assert homes and not loaded, loaded\n"
        "found = {n: registry.family(n).__module__ for n in homes}\n"
        "assert found == homes, found\n"
        "assert {f.NAME for f in registry.families()} == set(homes)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_family_reads_what_it_prints():
    for family in families():
        op = instance(family)
        assert parse_type(str(op)) == op
        assert str(op).startswith(f"!{family.NAME}<")
