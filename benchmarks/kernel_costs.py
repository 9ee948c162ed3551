"""Prints what the kernels of `fly.kernels` cost on gfx942, and how accurate they are, as the table
of docs/kernels.md.

    python benchmarks/kernel_costs.py [--write]

Each function is called with torch tensors on the emulator. Counted are the instructions that the
waves of its kernels execute, per element of the first argument; the greatest numbers of VGPRs,
bytes of LDS and of scratch memory of a kernel. The error is the greatest difference from torch in
f64, beside that of torch in the arguments' own type on this machine's processor. --write puts the
table into the page; a test compares the counts. No GPU is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from executed import Counter
from fly_llc.backends.amd import comparison
from fly_run.devices.options import Options
from kernel_calls import CALLS, Row

from fly.call.compiled import Compiled

PAGE = Path(__file__).parents[1] / "docs" / "kernels.md"
FIRST, LAST = "<!-- benchmarks/kernel_costs.py -->\n", "<!-- end -->\n"
COUNTED = ("instructions", "VGPRs", "LDS", "scratch")
HEAD = f"| call | arguments | {' | '.join(COUNTED)} | error | of torch |\n" + "|---" * 8 + "|\n"
SHORT = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32"}


@contextmanager
def observed(counter: Counter, images: list[bytes]) -> Iterator[None]:
    """Counts what calls launch, and collects the images."""
    run = Compiled.run_viewed

    def run_observed(self: Compiled, given: Any, viewed: Any, device: str, *_: Any) -> Any:
        images.append(self.data)
        return run(self, given, viewed, device, Options(observers=(counter,)))

    with patch.object(Compiled, "run_viewed", run_observed):
        yield


def counts(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What a call returns, and its counts."""
    counter, images = Counter(), []
    with observed(counter, images):
        made = call(*arguments)
    rows = [row for image in images for row in comparison.measure(image).values()]
    most = [
        max(row.get(name, 0) for row in rows) for name in ("VGPRs", "LDS bytes", "private bytes")
    ]
    each = sum(counter.found.values()) / arguments[0].numel()
    return made, (f"{each:.2f}", *most)


def error(found: Any, exact: Any) -> str:
    several = zip(found, exact, strict=True) if isinstance(exact, tuple) else [(found, exact)]
    return f"{max(float((a.double() - b).abs().max()) for a, b in several):.2g}"


def measured(row: Row) -> list[str]:
    """The cells of a row."""
    name, arguments, call, reference = row
    made, found = counts(call, arguments)
    shapes = ", ".join(f"{SHORT[one.dtype]} {'×'.join(map(str, one.shape))}" for one in arguments)
    errors = ["", ""]
    if reference is not None:
        wide = [one.double() if one.is_floating_point() else one for one in arguments]
        exact = reference(*wide)
        errors = [error(made, exact), error(reference(*arguments), exact)]
    return [f"`{name}`", shapes, *map(str, found), *errors]


def table() -> str:
    """The table, with its head."""
    return HEAD + "".join(f"| {' | '.join(measured(row))} |\n" for row in CALLS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    found = table()
    if not parser.parse_args().write:
        print(found, end="")
        return
    before, rest = PAGE.read_text(encoding="utf-8").split(FIRST)
    PAGE.write_text(f"{before}{FIRST}{found}{LAST}{rest.split(LAST)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
