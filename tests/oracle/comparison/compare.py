"""Runs a batch of probes on the oracle and on the emulator, and returns the differences."""

from __future__ import annotations

import re

from oracle.launching import launch
from oracle.launching.device import on_emulator
from oracle.probes import probe


def differing(batch: probe.Batch, data: bytes, frame: probe.Frame = probe.GFX9) -> list[str]:
    """Returns a line for each probe whose records differ, with the first differing lane."""
    arguments = [batch.inputs, batch.outputs(), batch.masks]
    where = ((frame.waves, 1, 1), (frame.lanes, 1, 1))
    mine = launch.on_oracle(data, "probe", *where, arguments).arguments[1]
    other = on_emulator(data, "probe", *where, arguments).arguments[1]
    groups = sorted({p.columns for p in batch.probes})
    lines = []
    for position, p in enumerate(batch.probes):
        lanes = probe.differences(p, mine[position], other[position]).nonzero()[0]
        if len(lanes):
            first = lanes[0]
            operands, a, b = (
                [f"{int(word):x}" for word in row]
                for row in (
                    batch.inputs[groups.index(p.columns)][first],
                    mine[position][first],
                    other[position][first],
                )
            )
            text = re.sub(r"\s*\n\s*", "; ", p.text)
            lines.append(
                f"{text}: {len(lanes)} lanes, first {first}: a b c old = {operands},"
                f" oracle {a}, emulator {b}"
            )
    return lines
