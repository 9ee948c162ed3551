"""The table of a sweep: all configurations with their costs, and why some can't be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fly_run.shell.report import aligned

from fly.tune.config import Setting
from fly.tune.measurement import Measurement
from fly.tune.sweep import Swept

COLUMNS = ("configuration", "cost", "relative", "limit", "waves per SIMD", "VGPRs", "LDS")


def text(title: str, swept: Swept) -> str:
    """The table, its rows from the best to the worst, then what can't be used."""
    usable = sorted(
        (row for row in swept.rows if row[1].cost is not None), key=lambda row: row[1].cost or 0.0
    )
    least = usable[0][1].cost if usable else None
    lines = [f"{title}: {swept.case}"]
    if usable:
        lines += aligned([COLUMNS, *(_row(setting, one, least) for setting, one in usable)])
    for setting, measured in swept.rows:
        if measured.cost is None:
            lines.append(f"{setting.config}: can't be used: {measured.refused.splitlines()[0]}")
    if usable:
        lines.append(f"measured by {usable[0][1].method}")
    return "\n".join(lines)


def _row(setting: Setting, measured: Measurement, least: float | None) -> tuple[str, ...]:
    assert measured.cost is not None
    relative = f"{measured.cost / least:.2f}" if least else ""
    details = [_details(measured.launches, column) for column in COLUMNS[3:]]
    return (str(setting.config), _cost(measured), relative, *details)


def _cost(measured: Measurement) -> str:
    assert measured.cost is not None
    if measured.unit == "seconds":
        from fly_run.shell.bench import duration

        return duration(measured.cost)
    return f"{measured.cost:,.0f} {measured.unit}"


def _details(launches: Sequence[Mapping[str, Any]], column: str) -> str:
    """A column's entry: one value for each launch, or one for all where they are the same."""
    found = dict.fromkeys(str(launch.get(column, "")) for launch in launches)
    return " ".join(found)
