"""`--bench`: how long launches take, by the device's events.

The program runs once, as without `--bench`; that gives the results. Then its launches are repeated
with the same arguments on the same memory: some to warm up, then `repetitions`, with an event
between each two launches, and without a wait. Caches hold what the repetition before left in them.

The emulator has no time to measure: its instructions are counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fly_common.errors import UsageError
from fly_host.program import Call, Program, Tensor, every_step
from fly_host.refusals import show

from fly_run.launch.completed import Ran
from fly_run.launch.repeating import Recorder, Times, repeat, times_of
from fly_run.shell.argument_values import Given
from fly_run.shell.flops import evaluate

WARM_UP, REPETITIONS = 10, 100
NO_TIME = "the emulator's time says nothing about a GPU's: its instructions are counted"


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `flops` is an expression (`shell.flops`)."""

    repetitions: int = REPETITIONS
    warm_up: int = WARM_UP
    flops: str | None = None

    def __post_init__(self) -> None:
        if self.repetitions < 1:
            raise UsageError("--repeat must be at least 1")
        if self.warm_up < 0:
            raise UsageError("--warm-up must be at least 0")


@dataclass(frozen=True)
class Report:
    """What was measured. `launches` and `times` belong together, `whole` is all of them; without
    times, `ran` has the instructions. `bytes` is what the tensors hold that are read and written,
    `limits` the most that the device can do in a second."""

    device: str
    target: str
    options: Options
    ran: Sequence[Ran]
    times: Sequence[Times]
    whole: Times | None
    bytes: int
    flops: float | None
    limits: dict[str, float]

    def document(self) -> dict[str, Any]:
        """For JSON. Times are in seconds."""
        launches = []
        for number, ran in enumerate(self.ran):
            made: dict[str, Any] = {"kernel": ran.kernel, "grid": ran.grid, "block": ran.block}
            made["shared"] = ran.shared
            if self.whole is None:
                made["instructions"] = ran.instructions
            else:
                made["seconds"] = self.times[number]._asdict()
            launches.append(made)
        found: dict[str, Any] = {"device": self.device, "target": self.target}
        found |= {"launches": launches, "bytes": self.bytes, "flops": self.flops}
        if self.whole is not None:
            found |= {
                "warm_up": self.options.warm_up,
                "repetitions": self.options.repetitions,
                "seconds": self.whole._asdict(),
                "bytes_per_second": self.rate("bytes"),
                "flops_per_second": self.rate("flops"),
                "limits": self.limits,
                "share": {name: self.rate(name) / most for name, most in self._shares()},
            }
        return found

    def rate(self, what: str) -> Any:
        """Bytes or FLOPs per second, by the median; None where they are not known."""
        amount = self.bytes if what == "bytes" else self.flops
        if amount is None or not self.whole or not self.whole.median:
            return None
        return amount / self.whole.median

    def _shares(self) -> list[tuple[str, float]]:
        return [(name, most) for name, most in self.limits.items() if self.rate(name) is not None]

    def json(self) -> str:
        return json.dumps(self.document(), indent=2) + "\n"

    def rows(self) -> list[tuple[str, ...]]:
        """A table: a launch a line, and all of them where there are several."""
        rows: list[tuple[str, ...]]
        if self.whole is None:
            rows = [("kernel", "grid", "block", "wave instructions")]
            for one in self.ran:
                count = f"{one.instructions:,}"
                rows.append((one.kernel, show(one.grid), show(one.block), count))
            return rows
        rows = [("kernel", "grid", "block", "median", "least", "10 %", "90 %", "most")]
        for one, times in zip(self.ran, self.times, strict=True):
            rows.append((one.kernel, show(one.grid), show(one.block), *map(duration, times)))
        if len(self.ran) > 1:
            rows.append(("all", "", "", *map(duration, self.whole)))
        return rows

    def lines(self) -> list[str]:
        """What stands below the table."""
        if self.whole is None:
            return [NO_TIME]
        made = []
        units = {"bytes": ("B", f"{self.bytes:,} bytes"), "flops": ("FLOP", "")}
        for name, (unit, amount) in units.items():
            rate = self.rate(name)
            if rate is None:
                continue
            amount = amount or f"{self.flops:,.0f} FLOPs"
            line = f"{amount}: {scaled(rate)}{unit}/s"
            most = self.limits.get(name)
            if most:
                what = "" if name == "bytes" else " in f32, without matrix instructions"
                line += f", {100 * rate / most:.1f} % of {scaled(most)}{unit}/s{what}"
            made.append(line)
        options = self.options
        return [
            *made,
            f"{options.repetitions} repetitions after {options.warm_up} on {self.device}",
        ]


def measure(
    recorder: Recorder, ran: Sequence[Ran], program: Program | None, given: Given, options: Options
) -> Report:
    """Repeats what a recorder has launched. `ran` are the launches of the run that it saw."""
    device = recorder.device
    flops = None if options.flops is None else evaluate(options.flops, program, given.values)
    known = [one for one in ran if not one.empty]
    limits = getattr(device, "limits", dict)()
    common = (device.name, device.target, options, known)
    amount = nbytes(program, given)
    if device.instructions is not None:
        return Report(*common, (), None, amount, flops, limits)
    if not known:
        return Report(*common, [], times_of([0.0]), amount, flops, limits)
    found = repeat(recorder, options.warm_up, options.repetitions)
    each = [times_of(one) for one in found.launches]
    return Report(*common, each, times_of(found.whole), amount, flops, limits)


def check(program: Program | None) -> None:
    """UsageError for a program with steps that can't be repeated as launches."""
    for step in every_step(program.steps) if program is not None else ():
        if isinstance(step, Call):
            raise UsageError(
                f"--bench can't time a program that calls a library: {step.function}",
                hint="time its kernels one by one: --kernel NAME",
            )


def nbytes(program: Program | None, given: Given) -> int:
    """The bytes that have to move: each tensor that is read, and each that is written, once.
    Without a program every array counts once."""
    arrays = {name: value for name, value in given.values.items() if name in given.dtypes}
    if program is None:
        return sum(array.nbytes for array in arrays.values())
    access = {p.name: p.access for p in program.parameters if isinstance(p, Tensor)}
    return sum(
        array.nbytes * (2 if access.get(name) == "rw" else 1) for name, array in arrays.items()
    )


def duration(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e6:.4g} µs"


def scaled(value: float) -> str:
    """1.5e12 → "1.5 T"."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {prefix}"
    return f"{value:.4g} "
