"""Compares the code of this project and FlyDSL, kernel by kernel, on gfx942.

    python benchmarks/code_quality.py [--peers-python PATH] [--flydsl-source DIR]
                                      [--kernels NAME,…] [--json FILE]

The counts are taken from the linked code objects of both, by the same program: instructions
(static, loops once), VGPRs, AGPRs, bytes of LDS, spilled registers, waits and matrix instructions.
The kernels are those of compile_time.py: the tiled ones share one source for both systems; softmax
and layernorm count columns in 32 bits in both (FlyDSL's loops support no wider counters; ours are
checked to fit at launch), and vector_add counts elements in 64 bits here and 32 in FlyDSL. FlyDSL
0.4.2 is used if the interpreter PATH (default: this one) has it; otherwise only our counts are
listed. No GPU is needed.

With --flydsl-source DIR, a checkout of FlyDSL, its own kernels (compile_time.OWN) are compared too.

The exit status is 1 if a count of ours is more than 5 % above FlyDSL's (a difference of one
register or instruction is always allowed). Waits, marked `*`, are exempt: they come from each
system's LLVM.
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

import compile_time
from fly_llc.backends.amd import comparison

ROWS = (
    "instructions",
    "VGPRs",
    "AGPRs",
    "LDS bytes",
    "spilled VGPRs",
    "private bytes",
    "MFMA, WMMA",
    "waits",
)
ALLOWED = 1.05
NOT_JUDGED = ("waits",)
TARGET = "gfx942"
_BINARY = re.compile(r'bin = "((?:[^"\\]|\\.)*)"')


def unescaped(text: str) -> bytes:
    r"""Decodes an MLIR string: `\7F` is one byte, `\\` a backslash."""
    piece = re.compile(r'\\([0-9A-Fa-f]{2}|["\\nt])')
    names = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
    plain = piece.sub(lambda m: names.get(m[1]) or chr(int(m[1], 16)), text)
    return plain.encode("latin-1")


def flydsl_object(python: str, kernel: str, scratch: Path, source: Path | None) -> bytes:
    """Returns FlyDSL's code object, a string in the last module that it dumps."""
    system = compile_time.flydsl(python, compile_time.rocm_folder(scratch / kernel), source)
    dumps = scratch / kernel / "dumps"
    environment = {
        **os.environ,
        **system.environment(scratch / kernel / "cache"),
        "FLYDSL_DUMP_IR": "1",
        "FLYDSL_DUMP_DIR": str(dumps),
    }
    command = [word or "0" for word in system.command(kernel, "cold")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"code_quality: error: FlyDSL {kernel}:\n{done.stderr}")
    (file,) = dumps.rglob("*_gpu_module_to_binary.mlir")
    found = _BINARY.search(file.read_text(encoding="utf-8"))
    assert found, f"{file} holds no code object"
    return unescaped(found[1])


def our_object(kernel: str, scratch: Path, source: Path | None) -> bytes:
    file = scratch / f"{kernel}.hsaco"
    ours = compile_time.ours(compile_time.ROOT, "fly", TARGET, source)
    command = [word or "0" for word in ours.command(kernel, "cold")]
    environment = {**os.environ, **ours.environment(scratch / "cache")}
    done = subprocess.run([*command, str(file)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"code_quality: error: {kernel}:\n{done.stderr}")
    return file.read_bytes()


def counts(hsaco: bytes) -> dict[str, int]:
    """Returns the counts of a code object's only kernel."""
    (measured,) = comparison.measure(hsaco).values()
    return {row: measured.get(row, 0) for row in ROWS}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable, help="where FlyDSL is")
    parser.add_argument("--flydsl-source", type=Path, metavar="DIR", help="a checkout of FlyDSL")
    parser.add_argument("--kernels", help="compare these only, separated by commas")
    parser.add_argument("--json", type=Path, help="write the counts to this file too")
    options = parser.parse_args()
    table: dict[str, dict[str, dict[str, int]]] = {}
    with tempfile.TemporaryDirectory(prefix="fly-quality-") as folder:
        scratch = Path(folder)
        peer = any(
            system.name == "FlyDSL"
            for system in compile_time.find_peers(options.peers_python, TARGET, scratch, None)
        )
        source = compile_time.check_source(options.flydsl_source)
        kernels = (
            *compile_time.KERNELS,
            *compile_time.TILED,
            *(compile_time.OWN if source else ()),
        )
        wanted = options.kernels.split(",") if options.kernels else kernels
        for kernel in filter(wanted.__contains__, kernels):
            table[kernel] = {"fly": counts(our_object(kernel, scratch, source))}
            if peer:
                theirs = flydsl_object(options.peers_python, kernel, scratch, source)
                table[kernel]["FlyDSL"] = counts(theirs)
    worse = report(table)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 1 if worse else 0


def report(table: dict[str, dict[str, dict[str, int]]]) -> int:
    """Prints the table; returns the number of counts above the limit."""
    worse = 0
    print(f"{'kernel':32}{'':8}" + "".join(f"{row:>15}" for row in ROWS))
    for kernel, systems in table.items():
        theirs = systems.get("FlyDSL")
        for system, found in systems.items():
            cells = ""
            for row in ROWS:
                beyond = (
                    system == "fly"
                    and theirs is not None
                    and found[row] > max(theirs[row] * ALLOWED, theirs[row] + 1)
                )
                judged = row not in NOT_JUDGED
                worse += beyond and judged
                cells += f"{found[row]:>14}{' ' if not beyond else '!' if judged else '*'}"
            print(f"{kernel:32}{system:8}{cells}")
    print(f"{worse} counts are more than 5 % above FlyDSL's" if worse else "none is 5 % above")
    return worse


if __name__ == "__main__":
    sys.exit(main())
