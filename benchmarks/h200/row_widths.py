"""Kernels of rows on an H200, at widths of 1k to 64k columns, beside Triton, torch and a copy.

    python -m h200.row_widths prepare FOLDER [KERNEL [WIDTH]] [try|clusters]   compiles, without GPU
    python -m h200.row_widths run FOLDER RESULTS.json [KERNEL] [alone]     measures
    python -m h200.row_widths check FOLDER RESULTS.json   our fastest, of few rows, beside f64
    python -m h200.row_widths choose RESULTS.json         writes fly/kernels/rowwise/row_plans.json
    python -m h200.row_widths table RESULTS.json          writes the section of results/h200.md

With `try`, all plans that `row_choices` names are compiled, of which `choose` takes the fastest for
each kernel and width; with `clusters` those whose blocks share rows, beside what calls of
`fly.kernels` have; without a word the latter, which `table` shows. `alone` leaves peers out.
Asserts, which read what the device says after each call, are left out of all.

Matrices of bf16 have 2^28 elements. Results are compared with those of f64 before; all ways to
compute one thing take turns. `run` first has processes compile what torch and Triton measure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch

from h200.library import results
from h200.page import PAGE, put
from h200.row_kernels.row_cases import ELEMENTS, Case
from h200.row_kernels.row_images import TARGET, documents, each, ours, prepare, prepared

HEAD = "## Rows of 1k to 64k columns\n"
WARM_UP, REPEATS, EACH = 1, 15, 3
PROCESSES = 14
COPIED = "copy"  # what a document says of its copies
# What calls of fly.kernels have at all widths, and the transposition that is shown.
SHOWN = {"transpose": "128x128, 16 lanes, 512 threads down"}
TRIED = PAGE.parent / "h200-plans.json"  # all plans that were measured
CHUNK = 1 << 24  # elements that are computed in f64 at a time


def peers(case: Case, inputs: list[torch.Tensor]) -> dict[str, Callable[[], Any]]:
    """Calls of Triton's kernels and torch's, those that can be called."""
    from h200.row_kernels.row_peers import calls

    found = {f"Triton|{name}": call for name, call in calls(case.name, inputs).items()}
    found["torch|"] = partial(case.torch, *inputs)
    torch._dynamo.config.recompile_limit = 64
    compiled = torch.compile(case.compiled or case.torch, dynamic=False)
    found["torch.compile|"] = partial(compiled, *inputs)
    return working(case, inputs, found)


def working(
    case: Case, inputs: list[torch.Tensor], found: dict[str, Callable[[], Any]]
) -> dict[str, Callable[[], Any]]:
    """The calls that can be made."""
    made = {}
    for name, call in found.items():
        try:
            call()
            torch.cuda.synchronize()
            made[name] = call
        except Exception as error:  # such as too much shared memory
            print(case.name, inputs[0].shape, name, repr(error)[:200], flush=True)
    return made


def exact(case: Case, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The results of f64, as f32: of parts of the rows, one after the other."""
    if not case.by_rows:
        made = case.exact(*[one.double() if case.rounded else one for one in inputs])
        return [made.float()]
    count, columns = next(one.shape for one in inputs if one.ndim == 2)
    rows = max(1, CHUNK // columns)
    first, sums = [], []
    for start in range(0, count, rows):
        part = [
            one[start : start + rows] if one.shape[0] == count and _is_per_row(case, i) else one
            for i, one in enumerate(inputs)
        ]
        wide = [one.double() if one.is_floating_point() else one for one in part]
        made = case.exact(*wide)
        made = made if isinstance(made, tuple) else (made,)
        first.append(made[0].float())
        sums = [a + b for a, b in zip(sums, made[1:], strict=True)] if sums else list(made[1:])
    return [torch.cat(first), *(one.float() for one in sums)]


def _is_per_row(case: Case, index: int) -> bool:
    """Whether an input has an element, or a row, for each row: weights and biases have not."""
    return index < case.matrices or case.name.startswith("cross_entropy")


def wrong(case: Case, made: Any, right: list[torch.Tensor]) -> float:
    """The share of elements that are further off than by the rounding of bf16."""
    share = 0.0
    for own, one in zip(results(made), right, strict=False):
        own = own.float().reshape(one.shape)
        most = one.abs() * (2.0**-8 * 1.02 if case.rounded else 0)
        most += (2e-4 * one.abs().amax()) if case.rounded else 0
        share += (~((own - one).abs() <= most)).float().mean().item()
    return share


def seconds(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Seconds of a call, for each way and repeat: of CUDA graphs, which take turns."""
    graphs = {
        name: Called(call) if name == "copy|" else _captured(call) for name, call in calls.items()
    }
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            found[name].append(start.elapsed_time(end) / 1e3 / EACH)
    return found


class Called:
    """Calls without a graph: in a graph, the copy of an array is done by an engine for copies,
    which is slower than the kernel that torch launches otherwise."""

    def __init__(self, call: Callable[[], Any]):
        self.call = call

    def replay(self) -> None:
        for _ in range(EACH):
            self.call()


def _captured(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(EACH):
            call()
    return graph


def moved(inputs: list[torch.Tensor], made: Any) -> int:
    """Bytes that are read and written."""
    return sum(one.numel() * one.element_size() for one in (*inputs, *results(made)))


def measure(folder: Path, only: str, alone: bool) -> Iterator[list[dict[str, Any]]]:
    """A row for each kernel, width and way: all that there are so far, after each width."""
    rows: list[dict[str, Any]] = []
    for case, columns, own in prepared(folder):
        if only not in ("", case.name):
            continue
        inputs = case.make(columns, "cuda")
        ways = working(case, inputs, ours(folder, own, inputs)) | (
            {} if alone else peers(case, inputs)
        )
        source = next(one for one in inputs if one.dtype == torch.bfloat16)
        target = torch.empty_like(source)
        ways["copy|"] = partial(target.copy_, source)
        right = exact(case, inputs)
        bad = {name: wrong(case, call(), right) for name, call in ways.items() if name != "copy|"}
        times = seconds(ways)
        # What a transposition has as an input is its result.
        given = inputs[:1] if case.name == "transpose" else inputs
        count = moved(given, case.torch(*inputs))
        for name, measured in times.items():
            size = 2 * source.numel() * source.element_size() if name == "copy|" else count
            low, _, high = quantiles(measured, n=4)
            rates = [size / t / 1e9 for t in (median(measured), high, low)]
            system, _, variant = name.partition("|")
            row = {"case": case.name, "columns": columns, "system": system, "name": variant}
            row |= {"rates": [round(one, 1) for one in rates], "wrong": bad.get(name, 0.0)}
            row["us"] = round(median(measured) * 1e6, 1)
            row["ship"] = next((r["ship"] for r in own if name == f"ours|{r['name']}"), None)
            rows.append(row)
        told = {
            system: (row["rates"][0], row["name"])
            for system, row in _best(rows, case.name, columns).items()
        }
        print(case.name, columns, told, flush=True)
        del inputs, ways, source, target, right
        torch.cuda.empty_cache()
        yield rows


def _best(rows: list[dict[str, Any]], case: str, columns: int) -> dict[str, dict[str, Any]]:
    """The fastest way of each system; of ours, those whose results are right."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        is_ours = row["system"] == "ours"
        if is_ours and (row["wrong"] or row["name"] != SHOWN.get(case, row["name"])):
            continue
        if (row["case"], row["columns"]) == (case, columns):
            other = found.get(row["system"])
            if other is None or row["rates"][0] > other["rates"][0]:
                found[row["system"]] = row
    return found


def warm(folder: Path, number: int) -> None:
    """Has torch and Triton compile a share of what will be measured, to their caches."""
    for index, (case, columns, _) in enumerate(prepared(folder)):
        if index % PROCESSES == number:
            with suppress(torch.OutOfMemoryError):
                peers(case, case.make(columns, "cuda"))
                torch.cuda.empty_cache()


def run(folder: Path, path: Path, only: str, alone: bool) -> None:
    """Measures all kernels, or one, and writes the rows. alone: ours and copies, without peers."""
    words = [sys.executable, "-m", "h200.row_widths", "warm", str(folder)]
    others = [
        subprocess.Popen([*words, str(number)], stdout=subprocess.DEVNULL)
        for number in range(0 if alone else PROCESSES)
    ]
    for one in others:
        one.wait()
    about = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        COPIED: "by a kernel",
    }
    with suppress(ImportError):
        import triton

        about["Triton"] = triton.__version__
    path.parent.mkdir(parents=True, exist_ok=True)
    for rows in measure(folder, only, alone):  # so that no later error loses them
        path.write_text(json.dumps({"about": about, "rows": rows}) + "\n")


def check(folder: Path, rows: list[dict[str, Any]]) -> int:
    """Compares the fastest of ours with f64, with few rows, such as under compute-sanitizer: 1 if
    one is wrong."""
    documented, count, bad = documents(folder), 0, 0
    for case, columns in each():
        best = _best(rows, case.name, columns).get("ours")
        if best is None:
            continue
        (own,) = (
            one
            for one in documented
            if (one["case"], one["columns"], one["name"]) == (case.name, columns, best["name"])
        )
        blocks = _blocks(case, columns, best["ship"])
        some = 128 if case.name == "transpose" or blocks > 1 << 20 else max(64, 2 * blocks + 3)
        inputs = case.make(columns, "cuda", some * columns)
        found = {**own, "arguments": _resized(own["arguments"], case, columns, inputs)}
        (call,) = ours(folder, [found], inputs).values()
        share = wrong(case, call(), exact(case, inputs))
        count, bad = count + 1, bad + (share > 0)
        if share:
            print("wrong:", case.name, columns, best["name"], share, flush=True)
    print(f"{count} kernels of rows, {bad} wrong")
    return int(bad > 0)


def _blocks(case: Case, columns: int, ship: list[int]) -> int:
    """The blocks that take rows in turn; 0 if each row has one."""
    from fly.kernels.rowwise.row_plans import Choice, measured

    choice = Choice(*ship) if len(ship) >= 5 else measured(case.name, TARGET, 2 * columns)
    return choice.blocks if choice is not None and choice.ahead else 0


def _resized(
    arguments: list[dict[str, Any]], case: Case, columns: int, inputs: list[torch.Tensor]
) -> list[dict[str, Any]]:
    """Arguments that were recorded with all rows, as those of some."""
    full = case.inputs(ELEMENTS // columns, columns)
    made = []
    for one in arguments:
        if "input" in one:
            own = inputs[one["input"]]
            same = list(full[one["input"]][0]) == one["shape"]
            assert same, "an argument is no input as it is"
            one = {**one, "shape": list(own.shape), "strides": list(own.stride())}
        made.append(one)
    return made


def choose(document: dict[str, Any]) -> None:
    """Puts our ways of a document into the record of all that were measured, in place of those of
    the same kernel and width, and writes the fastest plan of each."""
    from fly.kernels.rowwise.row_plans import FILE

    new = [
        {**row, "device": document["about"]["device"]}
        for row in document["rows"]
        if row["system"] == "ours" and row["case"] not in ("rotary_embedding", "transpose")
    ]
    replaced = {(row["case"], row["columns"]) for row in new}
    old = json.loads(TRIED.read_text(encoding="utf-8")) if TRIED.exists() else []
    rows = [row for row in old if (row["case"], row["columns"]) not in replaced] + new
    TRIED.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    plans: dict[str, dict[str, Any]] = {}
    for case, columns in each():
        found = _best(rows, case.name, columns).get("ours")
        if found is not None:
            plans.setdefault(case.name, {})[str(2 * columns)] = found["ship"]
    lines = [
        f'  "{name}": {{\n'
        + ",\n".join(f'   "{width}": {json.dumps(ship)}' for width, ship in own.items())
        + "\n  }"
        for name, own in plans.items()
    ]
    text = "{\n " + f'"{TARGET}": {{\n' + ",\n".join(lines) + "\n }\n}\n"
    FILE.write_text(text, encoding="utf-8")


def copied() -> float:
    """The rate of copies of bf16 in the page's first section, in GB/s: the median."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return median(float(row[4]) for row in rows if "bf16" in row[0] and len(row) == 7)


def table(document: dict[str, Any]) -> str:
    """The rows, as Markdown."""
    about = dict(document["about"])
    in_turn = about.pop(COPIED, None) is not None
    whose = (
        "a copy in turn"
        if in_turn
        else f"{copied():,.0f}, that of the first section, of another run"
    )
    lines = [
        f"{HEAD}\n{', '.join(about.values())}. Matrices of bf16, 2^28 elements. GB/s, counting",
        f" bytes read and written:\nmedians, and quartiles, of {REPEATS} repeats of graphs of",
        f" {EACH} calls, in turn. Of ours the plan that is shipped\nis shown, of Triton the best",
        " configuration. `cross_entropy` reads and does not write, and is compiled\nwithout its",
        f" assert. Shares of the copy are of {whose}.\nThe last column is the share of the fastest",
        " of Triton, torch.compile and torch.\n\n",
        "| kernel | columns | ours | quartiles | of copy | Triton | torch.compile | torch |"
        " of the best |\n|---|---:|---:|---|---:|---:|---:|---:|---:|\n",
    ]
    for case, columns in each():
        found = _best(document["rows"], case.name, columns)
        if "ours" not in found:
            continue
        own, low, high = found["ours"]["rates"]
        copy = found["copy"]["rates"][0] if in_turn else copied()
        others = [
            found[name]["rates"][0] if name in found else 0.0
            for name in ("Triton", "torch.compile", "torch")
        ]
        shown = " | ".join(f"{one:,.0f}" if one else "–" for one in others)
        lines.append(
            f"| {case.name} | {columns} | {own:,.0f} | {low:,.0f}–{high:,.0f} | {own / copy:.3f} "
            f"| {shown} | {own / max(others):.3f} |\n"
        )
    return "".join(lines)


def main(words: list[str]) -> int:
    tries = words[-1] if words[-1:] in (["try"], ["clusters"]) else ""
    alone = words[-1:] == ["alone"]
    command, *rest = words[: len(words) - (bool(tries) or alone)] or [""]
    if command == "prepare" and len(rest) in (1, 2, 3):
        prepare(Path(rest[0]), tries, *rest[1:])
    elif command == "warm" and len(rest) == 2:
        warm(Path(rest[0]), int(rest[1]))
    elif command == "run" and len(rest) in (2, 3):
        run(Path(rest[0]), Path(rest[1]), "".join(rest[2:]), alone)
    elif command == "check" and len(rest) == 2:
        return check(Path(rest[0]), json.loads(Path(rest[1]).read_text())["rows"])
    elif command == "choose" and len(rest) == 1:
        choose(json.loads(Path(rest[0]).read_text()))
    elif command == "table" and len(rest) == 1:
        put(table(json.loads(Path(rest[0]).read_text())))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
