"""Compile time of `fly.kernels` for an NVIDIA GPU beside Triton's kernels of the same purpose.

    python benchmarks/kernel_compile_time.py [--peers-python PATH] [--runs 5] [--target sm_90a]
                                             [--only REGEX] [--write]

A figure is the time of a first call up to the launch, with an empty cache, in a process that has
compiled another kernel before: median, and the least and the greatest of fresh processes, which
take turns. Arguments are those of peers/kernel_problems.py, Triton's kernels those of
peers/triton_library.py, up to the cubin on both sides, each with the ptxas that it finds (FLY_PTXAS
and TRITON_PTXAS_PATH name others). PATH is a Python with triton==3.9.0 and torch. No GPU is needed.
--write puts the table into docs/kernels/peers.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE / "peers"))
from kernel_problems import PROBLEMS  # noqa: E402 - it is in peers/

PAGE = HERE.parent / "docs" / "kernels" / "peers.md"
FIRST = "<!-- benchmarks/kernel_compile_time.py -->\n"
LAST = "<!-- end of compile times -->\n"
# Of several programs, without a kernel in Triton, and what is compiled before the others.
LEFT_OUT = ("matmul_preshuffled", "moe_sort", "rotary_and_cache", "quantize_rows")


def compiled(python: str, system: str, target: str, names: list[str]) -> dict[str, Any]:
    """Milliseconds by problem, or why there are none, of a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"FLY_TARGET": target, "FLY_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder}
        done = subprocess.run(
            [python, str(HERE / "peers" / "compiling.py"), system, target, *names],
            env={**os.environ, **own, "TRITON_DEFAULT_FP_FUSION": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(f"kernel_compile_time: {system}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(
        done.stdout[done.stdout.rindex("\n{") + 1 :] if "\n{" in done.stdout else done.stdout
    )


def cell(times: list[Any]) -> str:
    numbers = [one for one in times if isinstance(one, float)]
    if not numbers:
        return "–"
    return f"{median(numbers):,.0f} ({min(numbers):,.0f}–{max(numbers):,.0f})"


def table(found: dict[str, list[dict[str, Any]]], names: list[str]) -> str:
    """The times, as Markdown."""
    lines = ["| call | fly, ms | Triton, ms | of Triton |\n", "|---|---:|---:|---:|\n"]
    for name in names:
        ours, theirs = ([one.get(name) for one in found[way]] for way in ("fly", "triton"))
        numbers = [[one for one in times if isinstance(one, float)] for times in (ours, theirs)]
        share = f"{median(numbers[0]) / median(numbers[1]):.2f}" if all(numbers) else "–"
        lines.append(f"| `{name}` | {cell(ours)} | {cell(theirs)} | {share} |\n")
    return "".join(lines)


def write(text: str) -> None:
    """Puts the table into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(FIRST)
    PAGE.write_text(before + FIRST + text + LAST + rest.split(LAST)[1], encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    names = [
        one.name
        for one in PROBLEMS
        if re.search(options.only, one.name) and not one.name.startswith(LEFT_OUT)
    ]
    pythons = {"fly": sys.executable, "triton": options.peers_python}
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in pythons}
    for number in range(options.runs):
        for way, python in pythons.items():
            print(f"{way}, run {number + 1} of {options.runs}", file=sys.stderr, flush=True)
            found[way].append(compiled(python, way, options.target, names))
    text = table(found, names)
    print(text, end="")
    for name in names:
        for way in pythons:
            if isinstance(why := found[way][0].get(name), str):
                print(f"{way}: {name}: {why}", file=sys.stderr)
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
