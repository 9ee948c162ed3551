"""Times of calls of `fly.kernels` on a GPU, and the time that its peaks allow: see kernels.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fly_common.errors import UsageError
from kernel_costs import Costs, run_by

from fly.call.compiled import Compiled
from fly.call.host_options import DEFAULT
from fly.tune.measurement import Arguments, measure

sys.path.append(str(Path(__file__).parents[1] / "examples" / "plugins" / "roofline"))
from fly_roofline import peaks
from fly_roofline.options import Options


@dataclass(frozen=True)
class Peak:
    """The most that a chip does in a second, 0 where that is not known: bytes of its memory, FLOPs
    by vector and by matrix instructions. `source` says who tells."""

    bandwidth: float
    vector: float
    matrix: float
    source: str

    def bound(self, moved: float, vector: float, matrix: float) -> tuple[float, str] | None:
        """The least seconds, and what bounds them: "memory" or "arithmetic". None if a peak that is
        needed is not known."""
        pairs = ((moved, self.bandwidth), (vector, self.vector), (matrix, self.matrix))
        if any(amount and not rate for amount, rate in pairs):
            return None
        moving, *computing = (amount / rate if amount else 0.0 for amount, rate in pairs)
        by = "memory" if moving >= max(computing) else "arithmetic"
        return max(moving, *computing), by


def of_table(target: str) -> Peak:
    """The peaks by the vendor's data sheet, as the plugin roofline has them."""
    found = peaks.of(target, Options())
    source = f"the data sheet of the {found.product}" if found.product else "none is known"
    return Peak(found.bandwidth, found.vector, found.matrix, source)


def of_device(limits: dict[str, float], target: str) -> Peak:
    """The peaks by what the driver tells, clocks and widths, and by the table where it does not."""
    known = of_table(target)
    told = [name for name in ("bytes", "flops") if limits.get(name)]
    if not told:
        return known
    names = {"bytes": "memory", "flops": "vector instructions"}
    source = f"the driver's clocks and widths for {' and '.join(names[one] for one in told)}"
    if known.bandwidth:
        source += f", {known.source} for the rest"
    bandwidth = limits.get("bytes") or known.bandwidth
    return Peak(bandwidth, limits.get("flops") or known.vector, known.matrix, source)


class Clock:
    """Measures what a call launches. `seconds` are the medians of its compiled functions, added,
    `limits` and `device` what the driver tells of the device, after the first."""

    def __init__(self, device: str):
        self._device = device
        self._plain = Compiled.run_viewed
        self.seconds = 0.0
        self.limits: dict[str, float] = {}
        self.device = device

    def run(self, call: Callable[..., Any], arguments: Sequence[Any], timed: bool) -> Any:
        """What a call returns on the device. `timed`: whether its launches are also repeated."""
        self.seconds = 0.0
        with run_by(self._measured if timed else self._once):
            return call(*arguments)

    def _once(self, compiled: Compiled, given: Any, viewed: Any) -> Any:
        return self._plain(compiled, given, viewed, self._device)

    def _measured(self, compiled: Compiled, given: Any, viewed: Any) -> Any:
        compiled.on_device(self._look, viewed.values(), self._device)
        found = measure(compiled, Arguments(given, viewed), self._device, DEFAULT)
        if found.cost is None:
            raise UsageError(f"{compiled.program_name} can't be timed: {found.refused}")
        self.seconds += found.cost
        return self._once(compiled, given, viewed)

    def _look(self, opened: Any, _: Any) -> None:
        self.device, self.limits = opened.device.name, opened.device.limits()


def nbytes(values: Any) -> int:
    """What tensors hold, of which some may be None."""
    several = values if isinstance(values, tuple) else (values,)
    return sum(one.numel() * one.element_size() for one in several if isinstance(one, torch.Tensor))


def work(
    row: Any, costs: Costs, arguments: Sequence[Any], made: Any, scale: float
) -> tuple[float, float, float]:
    """What the problem asks for, in bytes and in FLOPs by vector and matrix instructions: inputs
    and results once, or what is accessed where that is less, such as a part of a cache; the
    operations of a product, else those that were counted for arguments 1/scale as large."""
    moved = min(nbytes((*arguments,)) + nbytes(made), costs.moved * scale)
    if row.flops is None:
        return moved, costs.vector * scale, costs.matrix * scale
    asked = row.flops(arguments)
    return (moved, 0.0, asked) if costs.matrix else (moved, asked, 0.0)
