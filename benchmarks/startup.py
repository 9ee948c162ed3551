"""Startup time of the tools: `--help`, the median of N runs, compared with lower bounds.

    python benchmarks/startup.py [N]

A pipe of five tools pays for five starts, so there is a budget: 120 ms each.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
TOOLS = ("fly-trace", "fly-opt-py", "fly-llc", "fly-link", "fly-run")
BUDGET = 120.0  # ms


def median(command: list[str], runs: int) -> float:
    """Returns milliseconds of wall time, after one run that fills the page cache."""
    times = []
    # Keep bytecode, as an installed tool does.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(runs + 1):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print(f"start-up, median of {runs} runs")
    floors = {
        "python": [sys.executable, "-c", ""],
        "python + typer": [sys.executable, "-c", "import typer"],
    }
    for name, command in floors.items():
        print(f"  {name:<22}{median(command, runs):7.1f} ms")
    slow = []
    for tool in TOOLS:
        taken = median([str(BIN / tool), "--help"], runs)
        slow += [tool] if taken > BUDGET else []
        print(f"  {tool + ' --help':<22}{taken:7.1f} ms")
    print(f"  over the budget of {BUDGET:.0f} ms: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
