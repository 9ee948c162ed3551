"""What a call of `fly.kernels` costs on the emulator, how accurate it is, and the table of
docs/kernels.md: see kernels.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from fly_llc.backends.amd import comparison
from fly_run.devices.options import Options
from fly_run.emulator.watch.stats import Statistics
from kernel_calls import CALLS, Row
from kernel_inputs import SMALL

from fly.call.compiled import Compiled

PAGE = Path(__file__).parents[1] / "docs" / "kernels.md"
FIRST, LAST = "<!-- benchmarks/kernels.py -->\n", "<!-- end -->\n"
COUNTED = ("instructions", "VGPRs", "LDS", "scratch")
HEAD = f"| call | arguments | {' | '.join(COUNTED)} | error | of torch |\n" + "|---" * 8 + "|\n"
SHORT = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32"}


@dataclass(frozen=True)
class Costs:
    """What all launches of a call execute: instructions of waves, FLOPs of vector and of matrix
    instructions, bytes of accesses to memory outside of the chip. `vgprs`, `lds` and `scratch` are
    the greatest of a kernel."""

    instructions: int
    vector: int
    matrix: int
    moved: int
    vgprs: int
    lds: int
    scratch: int

    @property
    def flops(self) -> int:
        return self.vector + self.matrix


# What takes the place of `Compiled.run_viewed`: the compiled function, the arguments as they are
# given and as NumPy sees them.
Runner = Callable[[Compiled, Any, Any], Any]


@contextmanager
def run_by(runner: Runner) -> Iterator[None]:
    """Calls of `fly.kernels` go to `runner`, each of them: native code would not be seen."""

    def run(self: Compiled, given: Any, viewed: Any, *_: Any) -> Any:
        return runner(self, given, viewed)

    # So that a kernel that was called before does not go on with its native code.
    with patch.dict(os.environ, FLY_HOST="py"), patch.object(Compiled, "run_viewed", run):
        yield


def counted(call: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Costs]:
    """What a call returns on the emulator, and its costs."""
    statistics, images = Statistics(), []
    plain, options = Compiled.run_viewed, Options(observers=(statistics,))

    def run(compiled: Compiled, given: Any, viewed: Any) -> Any:
        images.append(compiled.data)
        return plain(compiled, given, viewed, "emulator", options)

    with run_by(run):
        made = call(*arguments)
    return made, costs_of(statistics.documents, images)


def costs_of(documents: Sequence[Any], images: Sequence[bytes]) -> Costs:
    """The costs of launches, by the documents of fly-run --stats, and of their images."""
    kernels = [row for image in images for row in comparison.measure(image).values()]
    most = (
        max(row.get(name, 0) for row in kernels) for name in ("VGPRs", "LDS bytes", "private bytes")
    )
    moved = 0
    for one in documents:
        spaces = (one["memory"][name] for name in ("global", "scalar"))
        moved += sum(way["bytes"] for space in spaces for way in space.values())
    return Costs(
        sum(one["instructions"] for one in documents),
        sum(one["flops"]["vector"] for one in documents),
        sum(one["flops"]["matrix"] for one in documents),
        moved,
        *most,
    )


def error(found: Any, exact: Any) -> str:
    """The greatest difference, of several results that of any."""
    several = zip(found, exact, strict=True) if isinstance(exact, tuple) else [(found, exact)]
    return f"{max(float((a.double() - b).abs().max()) for a, b in several):.2g}"


def exact(row: Row, arguments: Sequence[Any]) -> Any:
    """Torch's results in f64."""
    assert row.reference is not None
    return row.reference(*(one.double() if one.is_floating_point() else one for one in arguments))


def shapes(arguments: Sequence[Any]) -> str:
    return ", ".join(f"{SHORT[one.dtype]} {'×'.join(map(str, one.shape))}" for one in arguments)


def measured(row: Row) -> list[str]:
    """The cells of a row of the page."""
    arguments = row.arguments(SMALL)
    made, costs = counted(row.call, arguments)
    errors = ["", ""]
    if row.reference is not None:
        right = exact(row, arguments)
        errors = [error(made, right), error(row.reference(*arguments), right)]
    each = f"{costs.instructions / arguments[0].numel():.2f}"
    most = (costs.vgprs, costs.lds, costs.scratch)
    return [f"`{row.name}`", shapes(arguments), each, *map(str, most), *errors]


def table() -> str:
    """The table of the page, with its head."""
    return HEAD + "".join(f"| {' | '.join(measured(row))} |\n" for row in CALLS)


def write() -> None:
    """Puts the table into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(FIRST)
    text = f"{before}{FIRST}{table()}{LAST}{rest.split(LAST)[1]}"
    PAGE.write_text(text, encoding="utf-8")
