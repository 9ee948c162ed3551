"""Compiles one kernel with Triton for a target and prints the time in milliseconds, from the start
of the process (argument 2, on the monotonic clock) to the code object in memory. If argument 3 is
"call", another kernel is compiled first, and the clock starts after it.

    python triton_kernels.py vector_add 1234.5 cold gfx942

The target is gfx942 or sm_90a. No GPU and no torch are needed. Pointers are declared 16-byte
aligned, for AMD with a range below 2 GB, as Triton's own JIT finds for usual tensors.
"""

import sys
import time

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    values = tl.load(x + row * columns + j, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + j, weights / tl.sum(weights, 0), mask=inside)


@triton.jit
def layernorm(x, gamma, beta, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    values = tl.load(x + row * columns + j, mask=inside, other=0.0)
    mean = tl.sum(values, 0) / columns
    difference = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(difference * difference, 0) / columns + eps)
    weight = tl.load(gamma + j, mask=inside)
    shift = tl.load(beta + j, mask=inside)
    tl.store(y + row * columns + j, difference * scale * weight + shift, mask=inside)


SIGNATURES = {
    "vector_add": "*fp32 *fp32 *fp32 i32 constexpr",
    "softmax": "*fp32 *fp32 i32 constexpr",
    "layernorm": "*fp32 *fp32 *fp32 *fp32 i32 fp32 constexpr",
}


# The target, the form of its code object, and what Triton's JIT finds for pointers.
TARGETS = {
    "gfx942": (GPUTarget("hip", "gfx942", 64), "hsaco", [["tt.pointer_range", 32]]),
    "sm_90a": (GPUTarget("cuda", 90, 32), "cubin", []),
}


def compile(name: str, chip: str) -> bytes:
    target, form, more = TARGETS[chip]
    function = globals()[name]
    types = SIGNATURES[name].split()
    pointers = [index for index, kind in enumerate(types) if kind.startswith("*")]
    source = ASTSource(
        function,
        dict(zip(function.arg_names, types, strict=True)),
        {(len(types) - 1,): 1024},
        {(index,): [["tt.divisibility", 16], *more] for index in pointers},
    )
    return triton.compile(source, target=target, options={"num_warps": 4}).asm[form]


def main() -> None:
    name, started, state, chip = sys.argv[1], float(sys.argv[2]), *sys.argv[3:]
    if state == "call":
        compile(next(kernel for kernel in SIGNATURES if kernel != name), chip)
        started = time.monotonic()
    made = compile(name, chip)
    print((time.monotonic() - started) * 1000)
    assert made[:4] == b"\x7fELF"


main()
