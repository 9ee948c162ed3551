"""Primitives of a block in Triton, and a program for a Python with Triton that compiles them.

    python triton_primitives.py FOLDER < requests.json

A request is [key, kernel, Triton's type of an element, threads, items of a thread], of a kernel
below with one block of these threads. Writes FOLDER/KEY.hsaco for gfx942 and prints
{key: {"name", "lds"}}, the kernel's symbol and its bytes of LDS, as JSON. No GPU is needed. The
pointers are declared as Triton's own JIT finds those of usual tensors: 16-byte aligned, with a
range below 2 GB.
"""

import json
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

LANES = 64


@triton.jit
def copy(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.load(x + i))


@triton.jit
def reduce_add(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.sum(tl.load(x + i), 0))


@triton.jit
def greater(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def reduce_max(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.reduce(tl.load(x + i), 0, greater))


@triton.jit
def scan_add(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def scan_max(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.associative_scan(tl.load(x + i), 0, greater))


@triton.jit
def sort(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.sort(tl.load(x + i)))


@triton.jit
def top_8(x, y, COUNT: tl.constexpr):
    tl.store(y + tl.arange(0, 8), tl.topk(tl.load(x + tl.arange(0, COUNT)), 8))


@triton.jit
def histogram_256(x, y, COUNT: tl.constexpr):
    tl.store(y + tl.arange(0, 256), tl.histogram(tl.load(x + tl.arange(0, COUNT)), 256))


def main() -> None:
    folder = Path(sys.argv[1])
    found = {}
    for key, kernel, kind, threads, items in json.load(sys.stdin):
        source = ASTSource(
            globals()[kernel],
            {"x": f"*{kind}", "y": f"*{kind}", "COUNT": "constexpr"},
            {(2,): threads * items},
            {(i,): [["tt.divisibility", 16], ["tt.pointer_range", 32]] for i in range(2)},
        )
        target = GPUTarget("hip", "gfx942", LANES)
        made = triton.compile(source, target=target, options={"num_warps": threads // LANES})
        (folder / f"{key}.hsaco").write_bytes(made.asm["hsaco"])
        found[key] = {"name": made.metadata.name, "lds": made.metadata.shared}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
