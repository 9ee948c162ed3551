"""Compiles one kernel with Triton for a target and prints the time in milliseconds, from the start
of the process (argument 2, on the monotonic clock) to the code object in memory. If argument 3 is
"call", another kernel is compiled first, and the clock starts after it.

    python triton_kernels.py vector_add 1234.5 cold gfx942

The target is gfx942 or sm_90a. No GPU and no torch are needed. Pointers are declared 16-byte
aligned, for AMD with a range below 2 GB, as Triton's own JIT finds for usual tensors.
"""

import importlib.util
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


@triton.jit
def flash_attention(q, k, v, out, length, heads, shared, BLOCK: tl.constexpr, D: tl.constexpr = 64):
    """Causal, by FlashAttention-2, with `shared` heads of q for one of k and v, of f16."""
    tile, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    own = (batch * heads + head) * length * D
    other = (batch * (heads // shared) + head // shared) * length * D
    i, j, d = tile * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, D)
    queries = tl.load(q + own + i[:, None] * D + d, mask=i[:, None] < length, other=0.0)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    sums = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, (tile + 1) * BLOCK, BLOCK):
        key = start + j
        inside = key[:, None] < length
        keys = tl.load(k + other + key[:, None] * D + d, mask=inside, other=0.0)
        scores = tl.dot(queries, tl.trans(keys)) * (1.4426950408889634 / 8)
        scores = tl.where(key[None, :] <= i[:, None], scores, -float("inf"))
        highest = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - highest[:, None])
        factor = tl.exp2(largest - highest)
        values = tl.load(v + other + key[:, None] * D + d, mask=inside, other=0.0)
        sums = tl.dot(weights.to(tl.float16), values, sums * factor[:, None])
        total = total * factor + tl.sum(weights, 1)
        largest = highest
    result = (sums / total[:, None]).to(tl.float16)
    tl.store(out + own + i[:, None] * D + d, result, mask=i[:, None] < length)


# straight_line of long_kernels.py, which writes it into a file.
LONG = """import triton
import triton.language as tl


@triton.jit
def straight_line(a, b, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x0 = tl.load(a + i)
    x1 = tl.load(a + i + 1)
{body}
    tl.store(b + i, {result})
"""


def straight_line():
    from pathlib import Path

    from long_kernels import KERNELS

    make, count = KERNELS["straight_line"]
    body, result = make(count)
    path = Path("straight_line.py").absolute()
    path.write_text(LONG.format(body="\n".join(f"    {line}" for line in body), result=result))
    spec = importlib.util.spec_from_file_location("straight_line_of_triton", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.straight_line


SIGNATURES = {
    "vector_add": "*fp32 *fp32 *fp32 i32 constexpr",
    "softmax": "*fp32 *fp32 i32 constexpr",
    "layernorm": "*fp32 *fp32 *fp32 *fp32 i32 fp32 constexpr",
    "flash_attention": "*fp16 *fp16 *fp16 *fp16 i32 i32 i32 constexpr constexpr",
    "straight_line": "*fp32 *fp32 constexpr",
}

CONSTANTS = {"flash_attention": {(7,): 64, (8,): 64}, "straight_line": {(2,): 256}}


# The target, the form of its code object, and what Triton's JIT finds for pointers.
TARGETS = {
    "gfx942": (GPUTarget("hip", "gfx942", 64), "hsaco", [["tt.pointer_range", 32]]),
    "sm_90a": (GPUTarget("cuda", 90, 32), "cubin", []),
}


def compile(name: str, chip: str) -> bytes:
    target, form, more = TARGETS[chip]
    function = straight_line() if name == "straight_line" else globals()[name]
    types = SIGNATURES[name].split()
    pointers = [index for index, kind in enumerate(types) if kind.startswith("*")]
    source = ASTSource(
        function,
        dict(zip(function.arg_names, types, strict=True)),
        CONSTANTS.get(name, {(len(types) - 1,): 1024}),
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
