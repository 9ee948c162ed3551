"""Formats statistics of launches for users: a few tables for each launch."""

from __future__ import annotations

from typing import TextIO

from fly_run.emulator.watch.stats import Document
from fly_run.launch import limits
from fly_run.shell.report import aligned, print_rich

Row = tuple[str, ...]


# Plain lines, or tables whose first row is the heading.
Block = str | list[Row]


def show(documents: list[Document], stream: TextIO) -> None:
    """Prints the statistics of all launches; on a terminal, with rich."""
    for one in documents:
        for block in _blocks(one):
            if isinstance(block, str):
                print(block, file=stream)
            elif stream.isatty():
                print_rich(block)
            else:
                print("\n".join(aligned(block)), file=stream)


def _blocks(one: Document) -> list[Block]:
    total = f"{one['waves']:,} waves, {one['instructions']:,} wave instructions"
    sizes = f"grid {_sizes(one['grid'])}, block {_sizes(one['block'])}"
    blocks: list[Block] = [f"{one['kernel']} on {one['target']}: {sizes}: {total}"]
    blocks += [f"  {label:<10} {told}" for label, told in _summary(one)]
    blocks += ["", _kinds(one)]
    memory = _memory(one["memory"])
    if len(memory) > 1:
        blocks += ["", memory]
    if one["memory"]["not_modelled"]:
        blocks.append(f"{one['memory']['not_modelled']:,} accesses are not in these figures")
    return [*blocks, "", _hottest(one)]


def _sizes(sizes: list[int]) -> str:
    x, y, z = sizes
    return limits.show((x, y, z))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _summary(one: Document) -> list[Row]:
    registers, branches = one["registers"], one["branches"]
    rows = []
    if one["clusters"] < one["workgroups"]:
        told = f"{one['clusters']:,} of {_sizes(one['cluster'])} workgroups each"
        rows.append(("clusters", told))
    if (held := one["occupancy"]) is not None:
        limits = f", limited by {' and '.join(held['limits'])}" if held["limits"] else ""
        rows.append(
            (
                "occupancy",
                f"{held['waves']} of {held['most']} waves per SIMD{limits}; per compute unit:"
                f" {held['workgroups']} workgroups, {held['unit_waves']} waves",
            )
        )
    spilled = registers["vgpr_spills"] + registers["sgpr_spills"]
    rows.append(
        (
            "registers",
            f"{registers['vgpr']} VGPR ({registers['agpr']} of them AGPR),"
            f" {registers['sgpr']} SGPR, {spilled} spilled",
        )
    )
    rows.append(
        (
            "memory",
            f"{one['lds_bytes']:,} bytes LDS per workgroup, {one['scratch_bytes']:,} scratch per"
            " lane",
        )
    )
    if one["lanes_active"] is not None:
        rows.append(("lanes", f"{_percent(one['lanes_active'])} active in vector instructions"))
    rows.append(
        (
            "branches",
            f"{branches['conditional']:,} conditional, {branches['divergent']:,} of them with only"
            " a part of the work items active",
        )
    )
    flops = one["flops"]
    if any(flops.values()):
        shown = [f"{count:,} {kind}" for kind, count in flops.items() if count]
        rows.append(("FLOPs", ", ".join(shown)))
    return rows


def _kinds(one: Document) -> list[Row]:
    total = max(1, sum(found["instructions"] for found in one["kinds"].values()))
    return [
        ("kind", "instructions", "share", "lanes active"),
        *(
            (
                name,
                f"{found['instructions']:,}",
                _percent(found["instructions"] / total),
                _percent(found["lanes_active"]),
            )
            for name, found in one["kinds"].items()
        ),
    ]


def _memory(memory: Document) -> list[Row]:
    rows: list[Row] = [("memory", "bytes", "took", "at best", "efficiency")]
    units = {"global": ("lines", f"lines of {memory['line_bytes']}"), "LDS": ("cycles", "cycles")}
    names = {"flat_to_LDS": "LDS by flat"}
    for space in ("global", "LDS", "private", "scalar", "flat_to_LDS"):
        for direction, found in memory[space].items():
            row = (f"{names.get(space, space)} {direction}", f"{found['bytes']:,}")
            if space in units:
                unit, told = units[space]
                took, best = found[unit], found[f"ideal_{unit}"]
                row += (f"{took:,} {told}", f"{best:,}", _percent(best / took if took else None))
            else:
                row += ("", "", "")
            rows.append(row)
    return rows


def _hottest(one: Document) -> list[Row]:
    return [
        ("times", "share", "lanes", "pc", "instruction", "source"),
        *(
            (
                f"{found['times']:,}",
                _percent(found["share"]),
                _percent(found["lanes_active"]),
                f"0x{found['pc']:x}",
                found["text"],
                found["source"] or "",
            )
            for found in one["hottest"]
        ),
    ]
