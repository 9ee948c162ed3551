"""Measures the workloads: ours in all variants, Triton, torch and a copy, all in turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fly.call.compiled import Compiled
from fly.call.loading import load
from h200.measuring import Call, rate, seconds, spread
from h200.memory.workloads import WORKLOADS, Workload


class Way(NamedTuple):
    """One way to compute a workload. `out` is what it writes; None where it returns the result."""

    system: str
    name: str
    call: Call
    out: torch.Tensor | None
    shown: bool = True


def caller(compiled: Compiled, arguments: list[Any], graphs: bool = False) -> Call:
    """A call with these arguments, prepared by native code where that can be made; with `graphs`, a
    CUDA graph of a call, which costs the host no more."""
    from fly_host.native.unavailable import Unavailable

    if graphs:
        return _replayed(lambda: compiled(*arguments))
    try:
        launch = compiled.native(arguments).prepare(*arguments)
    except Unavailable as why:
        print(f"{compiled.program_name}: launched by Python: {why}")
        return lambda: compiled(*arguments)
    assert launch is not NotImplemented, "the launcher does not take its own arguments"
    return launch


def _replayed(call: Call) -> Call:
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def _triton(workload: Workload, inputs: list[torch.Tensor], out: torch.Tensor) -> list[Way]:
    if not out.is_cuda:
        return []
    from h200.memory.triton_kernels import CALLS

    found = CALLS[workload.name](inputs, out)
    return [Way("Triton", name, call, out) for name, call in found.items()]


def ways(
    folder: Path,
    document: dict[str, Any],
    workload: Workload,
    peers: bool = True,
    graphs: bool = False,
) -> tuple[list[Way], int]:
    """All ways to compute a workload, whose results have been checked, and the bytes that it
    moves."""
    place = place_of(document)
    inputs = workload.make(document["sizes"], place)
    out = workload.result(inputs)
    made = []
    for row in document["variants"]:
        if row["workload"] == workload.name:
            arguments = [*inputs, out, *workload.scalars]
            call = caller(load(str(folder / row["file"])), arguments, graphs)
            made.append(Way("ours", row["name"], call, out, row["shown"]))
    if peers:
        made += _triton(workload, inputs, out)
    made.append(Way("torch", "", lambda: workload.torch(*inputs), None))
    _check(workload, inputs, made)
    source = inputs[0].view(-1)
    target = torch.empty_like(source)
    made.append(Way("copy", "", lambda: target.copy_(source), target))
    return made, workload.moved(inputs)


def _check(workload: Workload, inputs: list[torch.Tensor], made: list[Way]) -> None:
    """Raises AssertionError if one is not what torch computes in f32. Each finds an array of NaNs,
    and so must write all."""
    for way in made:
        if way.out is not None:
            way.out.fill_(float("nan"))
            way.call()
            workload.check(way.out, inputs, f"{way.system} {way.name}")


def place_of(document: dict[str, Any]) -> str:
    """Where the tensors of a prepared folder are."""
    return "cuda" if document["target"].startswith("sm_") else "cpu"


def check(folder: Path) -> int:
    """Compares all our variants with torch; the number of them. AssertionError if one is wrong."""
    document = json.loads((folder / "cases.json").read_text())
    made = [ways(folder, document, workload, peers=False)[0] for workload in WORKLOADS]
    if place_of(document) == "cuda":
        torch.cuda.synchronize()
    return sum(way.system == "ours" for some in made for way in some)


def measure(
    folder: Path, say: Callable[[str], None] = print, graphs: bool = False
) -> list[dict[str, Any]]:
    """A row for each workload and way: GB/s, and their quartiles."""
    document = json.loads((folder / "cases.json").read_text())
    rows = []
    for workload in WORKLOADS:
        made, moved = ways(folder, document, workload, graphs=graphs)
        place = place_of(document)
        calls = {f"{way.system}|{way.name}": way.call for way in made}
        times = seconds(calls, place)
        for way in made:
            own = times[f"{way.system}|{way.name}"]
            # A copy reads and writes the first input, whatever the workload moves beside that.
            count = 2 * _size(way.out) if way.system == "copy" else moved
            low, high = spread(count, own)
            rows.append(
                {
                    "workload": workload.name,
                    "system": way.system,
                    "name": way.name,
                    "shown": way.shown,
                    "rate": rate(count, own),
                    "low": low,
                    "high": high,
                    "bytes": count,
                    "mark": workload.mark,
                    "beside": workload.beside,
                }
            )
            say(f"{workload.name:15} {way.system:7} {way.name:18} {rows[-1]['rate']:8.0f} GB/s")
        del made, calls
        if place == "cuda":
            torch.cuda.empty_cache()
    return rows


def _size(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else tensor.numel() * tensor.element_size()
