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
FlyDSL's wheel has a newer LLVM. The row `same` is the LLVM IR that FlyDSL makes, compiled by the
LLVM of this project: what its front end makes, without what its LLVM does.

The exit status is 1 if a count of ours is more than 5 % above FlyDSL's (a difference of one
register or instruction is always allowed). Counts marked `~` are not, but FlyDSL's own LLVM IR has
as many with the same LLVM. Waits, marked `*`, are exempt: they come from each system's LLVM.
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
from fly_common.programs import toolchain
from fly_llc.backends.amd import comparison
from fly_opt.emission.llvm_text import bridge

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


def flydsl_objects(
    python: str, kernel: str, scratch: Path, source: Path | None
) -> tuple[bytes, bytes]:
    """Returns FlyDSL's code object, a string in the last module that it dumps, and what this
    project's LLVM makes of FlyDSL's LLVM IR."""
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
    (text,) = dumps.rglob("*_llvm_ir.ll")
    return unescaped(found[1]), same_llvm(text.read_text(encoding="utf-8"), scratch)


def same_llvm(text: str, scratch: Path) -> bytes:
    """Compiles LLVM IR of FlyDSL's for gfx942, with the options of this project's tools."""
    files = [scratch / f"same.{suffix}" for suffix in ("ll", "opt.ll", "o", "hsaco")]
    source, optimized, code, linked = map(str, files)
    files[0].write_text(bridge(text).replace("nocreateundeforpoison ", ""), encoding="utf-8")
    machine = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={TARGET}", "-O3"]
    for command in (
        ["opt", *machine, "-S", source, "-o", optimized],
        ["llc", *machine, "-filetype=obj", optimized, "-o", code],
        ["ld.lld", "-shared", code, "-o", linked],
    ):
        subprocess.run([toolchain.find_program(command[0]), *command[1:]], check=True)
    return files[-1].read_bytes()


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
                theirs, same = flydsl_objects(options.peers_python, kernel, scratch, source)
                table[kernel] |= {"FlyDSL": counts(theirs), "same": counts(same)}
    worse = report(table)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    return 1 if worse else 0


def report(table: dict[str, dict[str, dict[str, int]]]) -> int:
    """Prints the table; returns the number of counts above the limit, but for those marked `~`."""
    worse = same = 0
    print(f"{'kernel':32}{'':8}" + "".join(f"{row:>15}" for row in ROWS))
    for kernel, systems in table.items():
        theirs, alike = systems.get("FlyDSL"), systems.get("same")
        for system, found in systems.items():
            cells = ""
            for row in ROWS:
                mark = " "
                if system == "fly" and theirs is not None and above(found[row], theirs[row]):
                    by_llvm = alike is not None and not above(found[row], alike[row])
                    mark = "*" if row in NOT_JUDGED else "~" if by_llvm else "!"
                worse += mark == "!"
                same += mark == "~"
                cells += f"{found[row]:>14}{mark}"
            print(f"{kernel:32}{system:8}{cells}")
    if same:
        print(f"{same} counts are more than 5 % above FlyDSL's, but not with the same LLVM")
    none = "no other is" if same else "none is"
    print(f"{worse} counts are" if worse else none, "more than 5 % above FlyDSL's")
    return worse


def above(count: int, theirs: int) -> bool:
    return count > max(theirs * ALLOWED, theirs + 1)


if __name__ == "__main__":
    sys.exit(main())
