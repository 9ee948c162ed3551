"""Compile time from process start to the code object: this project, Triton and FlyDSL.

    python benchmarks/compile_time.py [--runs 7] [--target gfx942] [--kernels softmax,…]
                                      [--peers-python PATH] [--peers Triton] [--flydsl-source DIR]
                                      [--before DIR] [--json FILE]

Each figure is the median (minimum–maximum) of fresh processes in milliseconds, which run in turn so
that other load affects all alike. "cold": an empty compile cache; "warm": the cache of the previous
run; "call": a call with an empty cache in a process that has already compiled another kernel, the
same one for all systems; what a call imports for the first time is part of it. Files are in the
page cache and .pyc files exist for all. The clock starts before the process does (for "call",
before the call) and stops when the code object exists; exiting Python is not included.

Peers are measured if the interpreter PATH (default: this one) has them: Triton 3.9 (`pip install
triton==3.9.0`), FlyDSL 0.4.2 (`flydsl==0.4.2 torch==2.13.0`; needs an LLVM with ld.lld). Their
kernels are in benchmarks/peers: the same computation on f32 with dynamic extents, one row per block
of 256; Triton's hold a row in registers, of at most 1024 columns, as is idiomatic there. The tiled
kernels (peers/tiled_kernels.py) share one source for FlyDSL and us, and so does straight_line
(peers/long_kernels.py), a kernel of 2,000 source lines. No GPU is needed.

flash_attention is causal, of f16, with heads of 64 elements, any length, 64 queries a block, and
matrix instructions. Ours is that of examples/, Triton's that of benchmarks/peers, and FlyDSL's its
own, which the wheel does not contain: with --flydsl-source DIR it is imported from a checkout of
ROCm/FlyDSL, and without it FlyDSL is left out of that row. The commit that was tried with 0.4.2 is

    git clone https://github.com/ROCm/FlyDSL DIR
    git -C DIR checkout 11c4174d82b7491c2d08d5828a254183f2a8b959

Kernels of that checkout (OWN) are compiled from their own source by both systems: here by
`fly.flydsl`, unmodified. They need torch on both sides, whose import is part of their times.

FlyDSL's differs from the others in this: the numbers of heads are constants, the order of axes is
batch, length, head, element, and a block has two waves (ours and Triton's have four).

--target sm_90a measures us and Triton there, up to the cubin, each with the ptxas that it finds:
FLY_PTXAS names ours, and TRITON_PTXAS_PATH Triton's. The tiled kernels, which use AMD's
instructions, and FlyDSL are left out.

--before DIR measures another checkout of this project too, such as one of `git worktree add`, with
its own examples and this interpreter's packages.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
KERNELS = ("vector_add", "softmax", "layernorm")  # of peers/fly_kernels.py
TILED = ("tiled_copy", "tiled_mma", "preshuffle_gemm", "softmax_tiles")
LONG = ("straight_line",)  # of peers/long_kernels.py: 2,000 source lines
FLASH = ("flash_attention",)  # of examples/ for us, of a checkout of FlyDSL for FlyDSL
# Kernels of a checkout of FlyDSL, unmodified: cases of tests/flydsl_kernels, without spaces.
OWN = (
    "softmax bf16 5x333",
    "layernorm f32 3x600",
    "rmsnorm bf16 2x8192",
    "preshuffle_gemm bf16 48x64x512",
    "flash_attn bf16 causal 100",
    "topk_gating_softmax f32 37x64x6",
    "moe_gemm1 fp8 70x256x128",
)
FLYDSL_KERNEL = "kernels/attention/flash_attn_generic.py"  # in a checkout of FlyDSL
TILED_TEXT = str(HERE / "peers/tiled_kernels.py")
STATES = ("cold", "warm", "call")
TARGETS = ("gfx942", "sm_90a")
OURS = """
import sys, time
sys.path.insert(0, sys.argv[4])
started, state, *files = sys.argv[2:4] + sys.argv[5:]
from MODULE import KERNEL
if state == "call":
    from fly_kernels import OTHER
    OTHER.compile(target="TARGET")
    started = time.monotonic()
made = KERNEL.compile(target="TARGET")
elapsed = (time.monotonic() - float(started)) * 1000
assert made.hsaco[:4] == b"\\x7fELF"
if state == "warm":
    heavy = {"numpy", "torch", "torch_mlir", "mlir", "typer"} & set(sys.modules)
    assert not heavy, f"a warm compile imported {heavy}"
for file in files:
    open(file, "wb").write(made.hsaco)
print(elapsed)
"""


@dataclass(frozen=True)
class System:
    """`command(kernel, state)` is the process to time; its empty argument is replaced by the start
    time, and it prints milliseconds. `environment(folder)` sets up a separate cache in `folder`."""

    name: str
    command: Callable[[str, str], list[str]]
    environment: Callable[[Path], dict[str, str]]
    kernels: tuple[str, ...] = (*KERNELS, *LONG, *TILED)


def ours(checkout: Path, name: str, target: str, source: Path | None = None) -> System:
    """`source` is a checkout of FlyDSL, whose own kernels are then measured too."""

    def command(kernel: str, state: str) -> list[str]:
        if kernel in OWN:
            cases = str(checkout / "benchmarks/peers/flydsl_cases.py")
            return [sys.executable, cases, "ours", str(source), kernel, "", state]
        if kernel in TILED:
            tiled = checkout / "benchmarks/peers/tiled_kernels.py"
            return [sys.executable, str(tiled), "fly", kernel, "", state]
        if kernel in LONG:
            long = checkout / "benchmarks/peers/long_kernels.py"
            return [sys.executable, str(long), "fly", "compile", "", state]
        other = next(name for name in KERNELS if name != kernel)
        program = OURS.replace("OTHER", other)
        if kernel in FLASH:
            program = program.replace("MODULE", "flash_attention")
            program = program.replace("KERNEL", "flash_attention_mfma")
        program = program.replace("MODULE", "fly_kernels").replace("KERNEL", kernel)
        program = program.replace("TARGET", target)
        return [sys.executable, "-c", program, kernel, "", state, str(HERE / "peers")]

    packages = [
        checkout,
        checkout / "examples",
        checkout / "common",
        *sorted(checkout.glob("tools/*")),
    ]
    path = os.pathsep.join(map(str, packages))
    return System(
        name,
        command,
        lambda cache: {"FLY_CACHE_DIR": str(cache), "PYTHONPATH": path, "FLYDSL_GPU_ARCH": target},
        (*of_target(target), *(OWN if source and target == "gfx942" else ())),
    )


def of_target(target: str) -> tuple[str, ...]:
    """The kernels that can be compiled for a target."""
    flash = FLASH if (ROOT / "examples/flash_attention.py").exists() else ()
    return (*KERNELS, *flash, *LONG, *TILED) if target == "gfx942" else KERNELS


def triton(python: str, target: str) -> System:
    program = str(HERE / "peers/triton_kernels.py")
    return System(
        "Triton",
        lambda kernel, state: [python, program, kernel, "", state, target],
        # The variable suppresses a warning; the value is Triton 3.9's default.
        lambda folder: {"TRITON_CACHE_DIR": str(folder), "TRITON_DEFAULT_FP_FUSION": "1"},
        (*KERNELS, *FLASH, *LONG) if target == "gfx942" else KERNELS,
    )


def flydsl(python: str, rocm: Path, source: Path | None) -> System:
    """`source` is a checkout of FlyDSL, which has the kernel of flash_attention, and others."""

    def command(kernel: str, state: str) -> list[str]:
        if kernel in OWN:
            cases = str(HERE / "peers/flydsl_cases.py")
            return [python, cases, "theirs", str(source), kernel, "", state]
        if kernel in TILED:
            return [python, TILED_TEXT, "flydsl", kernel, "", state]
        if kernel in LONG:
            return [python, str(HERE / "peers/long_kernels.py"), "flydsl", "compile", "", state]
        kernels = str(HERE / "peers/flydsl_kernels.py")
        return [python, kernels, kernel, "", state, *([str(source)] if source else [])]

    return System(
        "FlyDSL",
        command,
        lambda folder: {
            "FLYDSL_RUNTIME_CACHE_DIR": str(folder),
            "COMPILE_ONLY": "1",
            "ARCH": "gfx942",
            "ROCM_PATH": str(rocm),
        },
        (*KERNELS, *(FLASH if source else ()), *LONG, *TILED, *(OWN if source else ())),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="processes per figure")
    parser.add_argument("--kernels", help="measure these only, separated by commas")
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0])
    parser.add_argument("--peers-python", default=sys.executable, help="where the peers are")
    parser.add_argument("--peers", default="Triton,FlyDSL", help="measure these, if they are there")
    parser.add_argument("--flydsl-source", type=Path, metavar="DIR", help="a checkout of FlyDSL")
    parser.add_argument("--before", type=Path, help="another checkout of this project")
    parser.add_argument("--json", type=Path, help="write the samples to this file too")
    options = parser.parse_args()
    wanted = set(options.kernels.split(",")) if options.kernels else None
    source = check_source(options.flydsl_source)
    with tempfile.TemporaryDirectory(prefix="fly-bench-") as scratch:
        systems = [ours(ROOT, "fly", options.target, source)]
        if options.before:
            before = ours(options.before.resolve(), "before", options.target)
            kernels = [one for one in before.kernels if has_kernel(options.before, one)]
            systems.append(replace(before, kernels=tuple(kernels)))
        peers = find_peers(options.peers_python, options.target, Path(scratch), source)
        systems += [one for one in peers if one.name in options.peers.split(",")]
        if wanted is not None:
            systems = [
                replace(one, kernels=tuple(name for name in one.kernels if name in wanted))
                for one in systems
            ]
        samples = measure(systems, options.runs, Path(scratch))
    report(systems, samples, options.runs, options.target)
    flydsl_runs = any(one.name == "FlyDSL" for one in systems)
    if flydsl_runs and source is None and (wanted is None or wanted & set(FLASH)):
        print("flash_attention: FlyDSL is left out, since --flydsl-source is not given")
    if options.json:
        named = {" ".join(key): values for key, values in samples.items()}
        options.json.write_text(json.dumps(named, indent=1))


def check_source(folder: Path | None) -> Path | None:
    """The checkout of FlyDSL as an absolute path. Exits if it does not have the kernel."""
    if folder is not None and not (folder / FLYDSL_KERNEL).is_file():
        sys.exit(f"compile_time: error: --flydsl-source {folder}: there is no {FLYDSL_KERNEL}")
    return folder and folder.resolve()


def find_peers(python: str, target: str, scratch: Path, source: Path | None) -> list[System]:
    """Returns the peers that `python` can import; prints which are missing."""
    found = []
    peers = [("triton", "Triton", lambda: triton(python, target))]
    if target == "gfx942":
        peers.append(("flydsl", "FlyDSL", lambda: flydsl(python, rocm_folder(scratch), source)))
    for module, title, make in peers:
        code = (
            f"from importlib.metadata import version; import {module}; print(version('{module}'))"
        )
        try:
            done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        except OSError as error:
            sys.exit(f"compile_time: error: --peers-python {python}: {error.strerror}")
        if done.returncode == 0:
            print(f"{title} {done.stdout.strip()} from {python}", file=sys.stderr)
            found.append(make())
        else:
            print(f"{title} is not installed for {python}: left out", file=sys.stderr)
    return found


def has_kernel(checkout: Path, kernel: str) -> bool:
    """Whether a checkout has the file of a kernel that was added later."""
    if kernel in LONG:
        return (checkout / "benchmarks/peers/long_kernels.py").exists()
    return kernel not in FLASH or (checkout / f"examples/{kernel}.py").exists()


def rocm_folder(scratch: Path) -> Path:
    """Creates the part of a ROCm folder that FlyDSL needs: llvm/bin/ld.lld."""
    from fly_common.programs import toolchain

    folder = scratch / "rocm"
    (folder / "llvm/bin").mkdir(parents=True)
    (folder / "llvm/bin/ld.lld").symlink_to(toolchain.find_program("ld.lld"))
    return folder


def measure(
    systems: list[System], runs: int, scratch: Path
) -> dict[tuple[str, str, str], list[float]]:
    """Returns (kernel, system, state) → milliseconds. The first round is discarded."""
    samples: dict[tuple[str, str, str], list[float]] = {}
    for kernel in systems[0].kernels:
        for number in range(runs + 1):
            print(f"\r{kernel} {number}/{runs} ", end="", file=sys.stderr)
            for system in systems:
                if kernel not in system.kernels:
                    continue
                cache = scratch / "cache"
                for state in STATES:
                    if state != "warm":
                        shutil.rmtree(cache, ignore_errors=True)
                        cache.mkdir()
                    elapsed = run(system, kernel, state, cache)
                    if number:
                        samples.setdefault((kernel, system.name, state), []).append(elapsed)
    print("\r" + " " * 40, end="\r", file=sys.stderr)
    return samples


def run(system: System, kernel: str, state: str, cache: Path) -> float:
    command = system.command(kernel, state)
    environment = {**os.environ, **system.environment(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    at = command.index("", 1)
    command[at] = repr(time.monotonic())
    # `python -c` imports from the current folder first, so that must not be a checkout.
    done = subprocess.run(command, env=environment, cwd=cache, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compile_time: error: {system.name} {kernel} {state}:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def report(
    systems: list[System],
    samples: dict[tuple[str, str, str], list[float]],
    runs: int,
    target: str,
) -> None:
    form = "HSACO" if target == "gfx942" else "cubin"
    print(f"process start → {form} for {target}, ms: median (min–max) of {runs} fresh processes")
    print(f"{'kernel':32}{'':8}" + "".join(f"{state:>22}{'× ours':>8}" for state in STATES))
    for kernel in systems[0].kernels:
        for system in systems:
            if kernel not in system.kernels:
                continue
            cells = ""
            for state in STATES:
                values = samples[kernel, system.name, state]
                own = statistics.median(samples[kernel, "fly", state])
                middle = statistics.median(values)
                spread = f"{middle:.0f} ({min(values):.0f}–{max(values):.0f})"
                cells += f"{spread:>22}{middle / own:>8.2f}"
            print(f"{kernel:32}{system.name:8}{cells}")


if __name__ == "__main__":
    main()
