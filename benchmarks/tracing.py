"""Tracing time of long kernels: from a Python file to the module's text, and FlyDSL beside it.

    python benchmarks/tracing.py [--runs 5] [--peers-python PATH] [--before DIR]

The kernels are those of peers/long_kernels.py. Each figure is the least of RUNS fresh processes,
which run in turn so that other load affects all alike; each process has traced another kernel
before. FlyDSL 0.4.2 is measured if the interpreter PATH (default: this one) has it, with torch.
--before DIR measures another checkout of this project too.

Then what the processes of fly-trace and fly-opt-py take for each kernel, and for a kernel of half
the length: the difference of the two is the cost of the second half.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compile_time import rocm_folder
from peers.long_kernels import KERNELS, source

HERE = Path(__file__).parent
PROGRAM = HERE / "peers/long_kernels.py"


def environment(checkout: Path) -> dict[str, str]:
    packages = [checkout, checkout / "common", *sorted(checkout.glob("tools/*"))]
    return {"PYTHONPATH": os.pathsep.join(map(str, packages))}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="processes per figure")
    parser.add_argument("--peers-python", default=sys.executable, help="where FlyDSL is")
    parser.add_argument("--before", type=Path, help="another checkout of this project")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fly-bench-") as folder:
        scratch = Path(folder)
        systems = {"fly": ([sys.executable], environment(HERE.parent))}
        if options.before:
            systems["before"] = ([sys.executable], environment(options.before.resolve()))
        peers = [options.peers_python]
        if subprocess.run([*peers, "-c", "import flydsl, torch"], capture_output=True).returncode:
            print(f"FlyDSL is not installed for {peers[0]}: left out", file=sys.stderr)
        else:
            found = {"COMPILE_ONLY": "1", "ARCH": "gfx942", "ROCM_PATH": str(rocm_folder(scratch))}
            systems["flydsl"] = (peers, found)
        report(measure(systems, options.runs, scratch), list(systems), options.runs)
        lower(options.runs, scratch)


def measure(
    systems: dict[str, tuple[list[str], dict[str, str]]], runs: int, scratch: Path
) -> dict[tuple[str, str], float]:
    """(kernel, system) → the least milliseconds."""
    least: dict[tuple[str, str], float] = {}
    for kernel in KERNELS:
        for number in range(runs):
            for system, (python, added) in systems.items():
                language = "flydsl" if system == "flydsl" else "fly"
                file = scratch / f"{kernel}_{system}_{number}.py"
                file.write_text(source(kernel, language))
                values = {**os.environ, **added, "FLYDSL_RUNTIME_CACHE_DIR": str(scratch)}
                values.pop("PYTHONDONTWRITEBYTECODE", None)
                command = [*python, str(PROGRAM), language, str(file)]
                done = subprocess.run(command, env=values, cwd=scratch, capture_output=True)
                if done.returncode:
                    sys.exit(f"tracing: error: {system} {kernel}:\n{done.stderr.decode()}")
                elapsed = float(done.stdout.split()[-1])
                key = kernel, system
                least[key] = min(elapsed, least.get(key, elapsed))
    return least


def report(least: dict[tuple[str, str], float], systems: list[str], runs: int) -> None:
    print(f"Python → MLIR, ms: the least of {runs} processes")
    print(f"{'kernel':16}" + "".join(f"{one:>10}{'× ours':>8}" for one in systems))
    for kernel in KERNELS:
        own = least[kernel, "fly"]
        cells = (f"{least[kernel, one]:>10.0f}{least[kernel, one] / own:>8.1f}" for one in systems)
        print(f"{kernel:16}{''.join(cells)}")


def tool(package: str, *words: str) -> list[str]:
    return [sys.executable, "-c", f"from {package}.cli import main; exit(main())", *words]


def lower(runs: int, scratch: Path) -> None:
    """Prints what the processes of fly-trace and fly-opt-py take for a kernel and half of it."""
    print(f"\nwhole processes for gfx942, ms: the least of {runs}")
    print(f"{'kernel':16}{'fly-trace':>12}{'half':>8}{'fly-opt-py':>12}{'half':>8}")
    values = {**os.environ, **environment(HERE.parent)}
    values.pop("PYTHONDONTWRITEBYTECODE", None)
    for kernel in KERNELS:
        cells = ""
        traces: dict[float, float] = {}
        lowers: dict[float, float] = {}
        for scale in (1.0, 0.5):
            file, module = scratch / f"{kernel}.py", scratch / f"{kernel}.mlir"
            file.write_text(source(kernel, "fly", scale))
            signature = ["--sig", "A: f32[?{i32}], B: f32[?{i32}]", "-o", str(module)]
            commands = (
                (tool("fly_trace", str(file), *signature), traces),
                (tool("fly_opt", "--target", "gfx942", str(module)), lowers),
            )
            for _ in range(runs):
                for command, times in commands:
                    started = time.perf_counter()
                    subprocess.run(command, env=values, stdout=subprocess.DEVNULL, check=True)
                    elapsed = (time.perf_counter() - started) * 1000
                    times[scale] = min(elapsed, times.get(scale, elapsed))
        for times in (traces, lowers):
            cells += f"{times[1.0]:>12.0f}{times[0.5]:>8.0f}"
        print(f"{kernel:16}{cells}")


if __name__ == "__main__":
    main()
