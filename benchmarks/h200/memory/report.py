"""The tables, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from h200.launches.launching import CALLED, PREPARED

Row = dict[str, Any]
RAW = "cuLaunchKernel in a native loop"


def text(about: Mapping[str, str], rows: Sequence[Row], launches: Mapping[str, float]) -> str:
    parts = ["# On an NVIDIA GPU\n"]
    parts += [", ".join(f"{name} {value}" for name, value in about.items()) + ".\n"]
    parts += ["## Kernels that are bound by memory\n", *_rates(rows), ""]
    parts += ["## Variants\n", *_variants(rows), ""]
    if launches:
        parts += ["## Launches\n", *_launches(launches), ""]
    return "\n".join(parts)


def _rates(rows: Sequence[Row]) -> list[str]:
    lines = [
        "GB/s, counting bytes read and written: the median of repeats in turn (docs/nvidia.md). Of",
        "Triton the best configuration is shown.\n",
        "| | ours | Triton | torch | copy | mark | |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        own = [row for row in rows if row["workload"] == workload]
        ours = next(row for row in own if row["system"] == "ours" and row["shown"])
        triton = best(own, "Triton")
        torch, copy = best(own, "torch"), best(own, "copy")
        lines.append(
            f"| {workload} | {_rate(ours)} ({ours['name']}) | {_rate(triton)}"
            f"{_named(triton)} | {_rate(torch)} | {_rate(copy)} | {_mark(own)} |"
        )
    return lines


def best(rows: Sequence[Row], system: str) -> Row | None:
    """The fastest row of a system."""
    found = [row for row in rows if row["system"] == system]
    return max(found, key=lambda row: row["rate"], default=None)


def share(rows: Sequence[Row]) -> float | None:
    """Our rate, as a share of the one it is held against."""
    ours = next(row for row in rows if row["system"] == "ours" and row["shown"])
    other = best(rows, ours["beside"])
    return None if other is None else ours["rate"] / other["rate"]


def _mark(rows: Sequence[Row]) -> str:
    mark, beside, found = rows[0]["mark"], rows[0]["beside"], share(rows)
    if found is None:
        return f"{mark:.2f} of {beside} | not measured"
    return f"{mark:.2f} of {beside} | {found:.3f}{'' if found >= mark else ', short of it'}"


def _rate(row: Row | None) -> str:
    return "–" if row is None else f"{row['rate']:.0f}"


def _named(row: Row | None) -> str:
    return f" ({row['name']})" if row else ""


def _variants(rows: Sequence[Row]) -> list[str]:
    lines = [
        "GB/s, with the quartiles.\n",
        "| | | | median | quartiles |",
        "|---|---|---|---:|---|",
    ]
    return lines + [
        f"| {row['workload']} | {row['system']} | {row['name']} | {row['rate']:.0f} |"
        f" {row['low']:.0f}–{row['high']:.0f} |"
        for row in rows
    ]


def _launches(launches: Mapping[str, float]) -> list[str]:
    lines = [
        "µs on the host, of a call with three tensors and an integer: the least mean of bursts.\n",
        "| | µs | beyond the driver | mark |",
        "|---|---:|---:|---|",
    ]
    raw = launches.get(RAW)
    marks = {"prepared call": PREPARED, "f(*args)": CALLED}
    for name, value in launches.items():
        more = None if raw is None else value - raw
        mark = marks.get(name)
        told = "" if mark is None else f"{mark} µs"
        if mark is not None and more is not None and more > mark:
            told += ", not reached"
        beyond = "–" if more is None or name == RAW else f"{more:.2f}"
        lines.append(f"| {name} | {value:.2f} | {beyond} | {told} |")
    return lines
