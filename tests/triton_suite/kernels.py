"""Kernels in Triton, and a program for a Python with Triton that compiles them.

    python kernels.py FOLDER < requests.json

A request is [key, kernel, target, {parameter: type}, {parameter: constant}, options]. Writes
FOLDER/KEY.hsaco and prints {key: {"name", "block", "lds"}} or {key: {"error"}}, as JSON. Neither a
GPU nor torch is needed. Pointers are declared 16-byte aligned with a range below 2 GB, as Triton's
own JIT finds for usual tensors.
"""

import json
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    values = tl.load(x + row * columns + j, mask=inside, other=-float("inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    made = weights / tl.sum(weights, 0)
    tl.store(y + row * columns + j, made.to(y.dtype.element_ty), mask=inside)


@triton.jit
def layernorm(x, gamma, beta, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    values = tl.load(x + row * columns + j, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    difference = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(difference * difference, 0) / columns + eps)
    weight = tl.load(gamma + j, mask=inside)
    shift = tl.load(beta + j, mask=inside)
    made = difference * scale * weight + shift
    tl.store(y + row * columns + j, made.to(y.dtype.element_ty), mask=inside)


@triton.jit
def layernorm_gradient(x, dy, dgamma, lock, columns, BLOCK: tl.constexpr):
    """Adds each row's dy · x̂ to dgamma, one workgroup at a time under a lock."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    values = tl.load(x + row * columns + j, mask=inside, other=0.0)
    mean = tl.sum(values, 0) / columns
    difference = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(difference * difference, 0) / columns + 1e-5)
    part = tl.load(dy + row * columns + j, mask=inside, other=0.0) * difference * scale
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    part += tl.load(dgamma + j, mask=inside, other=0.0)
    tl.store(dgamma + j, part, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def matmul(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    PRECISION: tl.constexpr, TB: tl.constexpr,
):  # fmt: skip
    """C = A · B in tiles, in groups of rows; TB: B is stored by columns."""
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * tiles_n
    first = program // width * GROUP
    height = min(tiles_m - first, GROUP)
    tile_m = first + program % width % height
    tile_n = program % width // height
    i = (tile_m * BM + tl.arange(0, BM)) % M
    j = (tile_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    if c.dtype.element_ty == tl.int32:
        total = tl.zeros((BM, BN), tl.int32)
    elif c.dtype.element_ty == tl.float64:
        total = tl.zeros((BM, BN), tl.float64)
    else:
        total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + i[:, None] * K + (start + k)[None, :], (start + k)[None, :] < K, 0.0)
        if TB:
            at = b + j[None, :] * K + (start + k)[:, None]
        else:
            at = b + (start + k)[:, None] * N + j[None, :]
        right = tl.load(at, (start + k)[:, None] < K, 0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
    i = tile_m * BM + tl.arange(0, BM)
    j = tile_n * BN + tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty), inside)


@triton.jit
def scaled_matmul(
    a, sa, b, sb, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    FA: tl.constexpr, FB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr,
):  # fmt: skip
    """C = (A · 2^sa) · (B · 2^sb)ᵀ in MX formats: a scale for 32 values; PA, PB: values a byte."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        ka = start // PA + tl.arange(0, BK // PA)
        kb = start // PB + tl.arange(0, BK // PB)
        ks = start // 32 + tl.arange(0, BK // 32)
        left = tl.load(a + i[:, None] * (K // PA) + ka[None, :])
        right = tl.load(b + j[None, :] * (K // PB) + kb[:, None])
        left_scale = tl.load(sa + i[:, None] * (K // 32) + ks[None, :])
        right_scale = tl.load(sb + j[:, None] * (K // 32) + ks[None, :])
        total = tl.dot_scaled(left, left_scale, FA, right, right_scale, FB, total)
    tl.store(c + i[:, None] * N + j[None, :], total)


@triton.jit
def attention(
    q, k, v, o, length, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Softmax(Q Kᵀ · scale) V of one head a program row, by the running maximum."""
    head = tl.program_id(1)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = head * length * D
    queries = tl.load(q + base + i[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else length
    for start in range(0, end, BN):
        j = start + tl.arange(0, BN)
        keys = tl.load(k + base + j[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * (scale * 1.4426950408889634)
        if CAUSAL:
            scores = tl.where(i[:, None] >= j[None, :], scores, -float("inf"))
        larger = tl.maximum(most, tl.max(scores, 1))
        part = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(most - larger)
        weight = weight * shrink + tl.sum(part, 1)
        values = tl.load(v + base + j[:, None] * D + d[None, :])
        total = tl.dot(part.to(values.dtype), values, total * shrink[:, None])
        most = larger
    made = total / weight[:, None]
    tl.store(o + base + i[:, None] * D + d[None, :], made.to(o.dtype.element_ty))


@triton.jit
def dropout(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    keep = tl.rand(seed, i) > p
    values = tl.load(x + i, mask=inside)
    tl.store(y + i, tl.where(keep, values / (1 - p), 0.0), mask=inside)


@triton.jit
def random_integers(y, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.randint(seed, i))


@triton.jit
def sort_rows(x, y, COLUMNS: tl.constexpr, DOWN: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, COLUMNS)
    values = tl.load(x + row * COLUMNS + j)
    tl.store(y + row * COLUMNS + j, tl.sort(values, descending=DOWN))


@triton.jit
def scans(x, sums, products, back, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    j = row * COLUMNS + tl.arange(0, COLUMNS)
    values = tl.load(x + j)
    tl.store(sums + j, tl.cumsum(values, 0))
    tl.store(products + j, tl.cumprod((values & 1) * 2 - 1, 0))
    tl.store(back + j, tl.cumsum(values, 0, reverse=True))


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence(a, b, y, COLUMNS: tl.constexpr):
    """y[j] = a[j] · y[j-1] + b[j], by an associative scan of pairs."""
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    _, made = tl.associative_scan((tl.load(a + j), tl.load(b + j)), 0, _affine)
    tl.store(y + j, made)


@triton.jit
def extremes(x, least, most, where_least, where_most, R: tl.constexpr, C: tl.constexpr):
    """Reduces over axis 0, between waves; over axis 1 of another layout, within one."""
    i, j = tl.arange(0, R), tl.arange(0, C)
    values = tl.load(x + i[:, None] * C + j[None, :])
    tl.store(least + j, tl.min(values, 0))
    tl.store(most + i, tl.max(values, 1))
    tl.store(where_least + j, tl.argmin(values, 0))
    tl.store(where_most + i, tl.argmax(values, 1))


@triton.jit
def _exclusive(a, b):
    return a ^ b


@triton.jit
def parity(x, y, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, C)
    values = tl.load(x + i[:, None] * C + j[None, :])
    tl.store(y + i, tl.reduce(values, 1, _exclusive))
    tl.store(y + R, tl.xor_sum(tl.xor_sum(values, 0), 0))


@triton.jit
def histogram(x, y, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + i, i < n, 0), BINS, mask=i < n)
    tl.atomic_add(y + tl.arange(0, BINS), counts)


@triton.jit
def atomics(x, index, added, least, most, either, exchanged, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    at = tl.load(index + i, inside, 0)
    values = tl.load(x + i, inside, 0)
    tl.atomic_add(added + at, values, inside)
    tl.atomic_min(least + at, values, inside)
    tl.atomic_max(most + at, values, inside)
    tl.atomic_xor(either + at, values, inside)
    before = tl.atomic_xchg(exchanged + i, values, inside)
    tl.store(exchanged + i, before + 1, inside)


@triton.jit
def add_atomically(x, index, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    at = tl.load(index + i, inside, 0)
    tl.atomic_add(y + at, tl.load(x + i, inside, 0.0), inside)


@triton.jit
def compare_and_swap(x, y, BLOCK: tl.constexpr):
    """Counts by compare and swap, a lane at a time."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.atomic_cas(x + i, i, i * 3)
    tl.store(y + i, old)


@triton.jit
def gather_rows(x, index, y, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, C)
    at = i[:, None] * C + j[None, :]
    tl.store(y + at, tl.gather(tl.load(x + at), tl.load(index + at), 1))


@triton.jit
def transpose(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    tile = tl.load(x + i[:, None] * N + j[None, :], (i[:, None] < M) & (j[None, :] < N))
    tl.store(y + j[:, None] * M + i[None, :], tl.trans(tile), (j[:, None] < N) & (i[None, :] < M))


@triton.jit
def shapes(x, joined, left, right, turned, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.store(joined + tl.arange(0, 2 * N), tl.interleave(values, values * 2))
    even, odd = tl.split(tl.reshape(values, (N // 2, 2)))
    tl.store(left + tl.arange(0, N // 2), even)
    tl.store(right + tl.arange(0, N // 2), odd)
    box = tl.permute(tl.reshape(values, (N // 32, 4, 8)), (2, 0, 1))
    tl.store(turned + i, tl.reshape(box, (N,)))


@triton.jit
def convert(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, i < n)
    tl.store(y + i, values.to(y.dtype.element_ty), i < n)


@triton.jit
def integers(a, b, quotient, remainder, shifted, high, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x, y = tl.load(a + i, inside, 1), tl.load(b + i, inside, 1)
    tl.store(quotient + i, x // y, inside)
    tl.store(remainder + i, x % y, inside)
    tl.store(shifted + i, (x >> (y & 15)) ^ (x << (y & 7)), inside)
    tl.store(high + i, tl.umulhi(x, y), inside)


@triton.jit
def functions(x, y, n, BLOCK: tl.constexpr):
    """Row r of y is one function of x."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, inside, 1.0)
    tl.store(y + 0 * n + i, tl.exp(v), inside)
    tl.store(y + 1 * n + i, tl.exp2(v), inside)
    tl.store(y + 2 * n + i, tl.log(v), inside)
    tl.store(y + 3 * n + i, tl.log2(v), inside)
    tl.store(y + 4 * n + i, tl.sin(v), inside)
    tl.store(y + 5 * n + i, tl.cos(v), inside)
    tl.store(y + 6 * n + i, tl.sqrt_rn(v), inside)
    tl.store(y + 7 * n + i, tl.rsqrt(v), inside)
    tl.store(y + 8 * n + i, tl.erf(v), inside)
    tl.store(y + 9 * n + i, tl.div_rn(v, v + 3.0), inside)
    tl.store(y + 10 * n + i, tl.floor(v) + tl.ceil(v * 0.5), inside)
    tl.store(y + 11 * n + i, tl.sigmoid(v), inside)
    tl.store(y + 12 * n + i, libdevice.tanh(v), inside)
    tl.store(y + 13 * n + i, libdevice.atan2(v, 2.0 - v), inside)
    tl.store(y + 14 * n + i, libdevice.pow(v, 1.7), inside)
    tl.store(y + 15 * n + i, libdevice.log1p(v), inside)
    tl.store(y + 16 * n + i, libdevice.lgamma(v), inside)
    tl.store(y + 17 * n + i, libdevice.j0(v), inside)


@triton.jit
def convolution(
    x, w, y, H, W,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, OUT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Valid 2-D convolution as a product: positions × (C · KH · KW) by that × OUT."""
    HO, WO = H - KH + 1, W - KW + 1
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // WO, at % WO
    o = tl.arange(0, OUT)
    c = tl.arange(0, C)
    total = tl.zeros((BLOCK, OUT), tl.float32)
    for tap in range(KH * KW):
        ky, kx = tap // KW, tap % KW
        place = (row + ky)[:, None] * W + (column + kx)[:, None]
        left = tl.load(x + c[None, :] * (H * W) + place, at[:, None] < HO * WO, 0.0)
        right = tl.load(w + (o[None, :] * C + c[:, None]) * (KH * KW) + tap)
        total = tl.dot(left, right, total)
    tl.store(y + o[None, :] * (HO * WO) + at[:, None], total, at[:, None] < HO * WO)


@triton.jit
def persistent(a, b, c, M, N, K, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product by tensor descriptors, with a fixed number of programs that loop over tiles."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    made = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    wide = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        i, j = tile // wide * BM, tile % wide * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(left.load([i, k]), right.load([j, k]).T, total)
        made.store([i, j], total.to(tl.float16))


@triton.jit
def collatz(x, y, BLOCK: tl.constexpr):
    """The number of steps to 1: a loop with a data-dependent trip count."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.load(x + i)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.max((n != 1).to(tl.int32), 0) != 0:
        going = n != 1
        n = tl.where(going, tl.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps += going.to(tl.int32)
    tl.store(y + i, steps)


def compiled(kernel, target, types, constants, options):
    function = globals()[kernel]
    names = function.arg_names
    signature = {name: types.get(name, "constexpr") for name in names}
    pointers = [position for position, name in enumerate(names) if signature[name][0] == "*"]
    source = ASTSource(
        function,
        signature,
        {(names.index(name),): value for name, value in constants.items()},
        {(position,): [["tt.divisibility", 16], ["tt.pointer_range", 32]] for position in pointers},
    )
    lanes = 64 if target.startswith("gfx9") else 32
    return triton.compile(source, target=GPUTarget("hip", target, lanes), options=options), lanes


def main() -> None:
    folder = Path(sys.argv[1])
    told = {}
    for key, kernel, target, types, constants, options in json.load(sys.stdin):
        try:
            made, lanes = compiled(kernel, target, types, constants, options)
        except Exception as error:
            last = str(error.__cause__ or error).strip().splitlines()[-1]
            told[key] = {"error": f"{type(error).__name__}: {last}"}
            continue
        (folder / f"{key}.hsaco").write_bytes(made.asm["hsaco"])
        block = lanes * made.metadata.num_warps
        told[key] = {"name": made.metadata.name, "block": block, "lds": made.metadata.shared}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
