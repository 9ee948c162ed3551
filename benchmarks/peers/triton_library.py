"""Plain kernels in Triton for the problems of kernel_quality.py, as Triton's tutorials write them.

A program takes a row, a tile, or a vector. Rows are whole, in registers. Sums are f32.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax(x, y, N, BLOCK: tl.constexpr, LOG: tl.constexpr):
    j = tl.arange(0, BLOCK)
    at = tl.program_id(0) * N + j
    values = tl.load(x + at, mask=j < N, other=-float("inf")).to(tl.float32)
    values -= tl.max(values, 0)
    weights = tl.exp(values)
    total = tl.sum(weights, 0)
    made = values - tl.log(total) if LOG else weights / total
    tl.store(y + at, made.to(y.dtype.element_ty), mask=j < N)


@triton.jit
def softmax_backward(dy, y, dx, N, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    at = tl.program_id(0) * N + j
    gradient = tl.load(dy + at, mask=j < N, other=0.0).to(tl.float32)
    weights = tl.load(y + at, mask=j < N, other=0.0).to(tl.float32)
    made = weights * (gradient - tl.sum(gradient * weights, 0))
    tl.store(dx + at, made.to(dx.dtype.element_ty), mask=j < N)


@triton.jit
def quantized(values, inside, y, scale, at):
    most = tl.max(tl.where(inside, tl.abs(values), 0.0), 0)
    tl.store(scale, most / 127)
    tl.store(y + at, tl.extra.hip.libdevice.rint(values * (127 / most)).to(tl.int8), mask=inside)


@triton.jit
def quantize(x, y, scales, N, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    at = tl.program_id(0) * N + j
    values = tl.load(x + at, mask=j < N, other=0.0).to(tl.float32)
    quantized(values, j < N, y, scales + tl.program_id(0), at)


@triton.jit
def norm(
    x, r, w, b, y, total, scales, N, eps,
    BLOCK: tl.constexpr, CENTRED: tl.constexpr, ADDS: tl.constexpr, QUANTIZES: tl.constexpr,
):  # fmt: skip
    j = tl.arange(0, BLOCK)
    at, inside = tl.program_id(0) * N + j, j < N
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if ADDS:
        values += tl.load(r + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + at, values.to(total.dtype.element_ty), mask=inside)
    if CENTRED:
        values = tl.where(inside, values - tl.sum(values, 0) / N, 0.0)
    factor = tl.rsqrt(tl.sum(values * values, 0) / N + eps)
    made = values * factor * tl.load(w + j, mask=inside).to(tl.float32)
    if CENTRED:
        made += tl.load(b + j, mask=inside).to(tl.float32)
    if QUANTIZES:
        quantized(made, inside, y, scales + tl.program_id(0), at)
    else:
        tl.store(y + at, made.to(y.dtype.element_ty), mask=inside)


@triton.jit
def norm_backward(
    dy, x, w, dx, of_w, of_b, N, eps, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
    CENTRED: tl.constexpr,
):  # fmt: skip
    """Adds the row's part of the parameters' gradients to those of its group, atomically."""
    j = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    at, inside = row * N + j, j < N
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + j, mask=inside).to(tl.float32)
    if CENTRED:
        values = tl.where(inside, values - tl.sum(values, 0) / N, 0.0)
    factor = tl.rsqrt(tl.sum(values * values, 0) / N + eps)
    values *= factor
    weighted = gradient * weight
    made = weighted - values * (tl.sum(weighted * values, 0) / N)
    if CENTRED:
        made -= tl.sum(weighted, 0) / N
    tl.store(dx + at, (made * factor).to(dx.dtype.element_ty), mask=inside)
    group = row % GROUPS * N + j
    tl.atomic_add(of_w + group, gradient * values, mask=inside)
    if CENTRED:
        tl.atomic_add(of_b + group, gradient, mask=inside)


@triton.jit
def column_sums(parts, y, ROWS: tl.constexpr, N, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(ROWS):
        total += tl.load(parts + row * N + j, mask=j < N, other=0.0)
    tl.store(y + j, total.to(y.dtype.element_ty), mask=j < N)


@triton.jit
def cross_entropy(x, classes, y, N, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * N + j, mask=j < N, other=-float("inf")).to(tl.float32)
    bound = tl.max(values, 0)
    log_sum = tl.log(tl.sum(tl.exp(values - bound), 0)) + bound
    own = tl.load(x + row * N + tl.load(classes + row)).to(tl.float32)
    tl.store(y + row, log_sum - own)


@triton.jit
def top_k(x, y, K: tl.constexpr, BLOCK: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(y + tl.program_id(0) * K + tl.arange(0, K), tl.topk(values, K))


@triton.jit
def dropout(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    values = tl.load(x + i, mask=i < n).to(tl.float32)
    made = tl.where(keep, values / (1 - p), 0.0)
    tl.store(y + i, made.to(y.dtype.element_ty), mask=i < n)


@triton.jit
def block_sums(x, sums, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + tl.program_id(0), tl.sum(tl.load(x + i), 0))


@triton.jit
def prefix_sums(x, sums, y, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    """Each block adds up the sums of those before it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, COUNT)
    before = tl.sum(tl.load(sums + k, mask=k < tl.program_id(0), other=0.0), 0)
    tl.store(y + i, tl.cumsum(tl.load(x + i), 0) + before)


@triton.jit
def histogram(x, y, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + i, i < n, 0), BINS, mask=i < n)
    tl.atomic_add(y + tl.arange(0, BINS), counts)


@triton.jit
def matmul(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A · Bᵀ, in groups of GROUP rows of tiles."""
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * tiles_n
    first = program // width * GROUP
    height = min(tiles_m - first, GROUP)
    tile_m, tile_n = first + program % width % height, program % width // height
    i, j = (tile_m * BM + tl.arange(0, BM)) % M, (tile_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    kind: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    total = tl.zeros((BM, BN), kind)
    for start in range(0, K, BK):
        left = tl.load(a + i[:, None] * K + (start + k)[None, :], (start + k)[None, :] < K, 0.0)
        right = tl.load(b + j[None, :] * K + (start + k)[:, None], (start + k)[:, None] < K, 0.0)
        total = tl.dot(left, right, total, out_dtype=kind)
    i, j = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty), inside)


@triton.jit
def grouped_matmul(
    a, b, ends, c, N, K, GROUPS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Program 0 of the grid counts tiles of rows: those of the first group, of the second, …"""
    tile, group, first, last = tl.program_id(0), 0, 0, 0
    start = 0
    for one in range(GROUPS):
        end = tl.load(ends + one)
        count = tl.cdiv(end - start, BM)
        if (tile >= 0) & (tile < count):
            group, first, last = one, start + tile * BM, end
        tile -= count
        start = end
    if last > first:
        i, j = first + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        total = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            left = tl.load(a + i[:, None] * K + (at + k)[None, :], i[:, None] < last, 0.0)
            right = tl.load(b + group * K * N + (at + k)[:, None] * N + j[None, :])
            total = tl.dot(left, right, total)
        made = total.to(c.dtype.element_ty)
        tl.store(c + i[:, None] * N + j[None, :], made, i[:, None] < last)


@triton.jit
def convolution(
    x, w, y, H, W, N: tl.constexpr,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Of one image whose channels are adjacent, filled up with zeros by half a window."""
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    row, column = at // W, at % W
    o, c = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, C)
    total = tl.zeros((BM, BN), tl.float32)
    for tap in range(KH * KW):
        i, j = row + tap // KW - KH // 2, column + tap % KW - KW // 2
        inside = (i >= 0) & (i < H) & (j >= 0) & (j < W)
        left = tl.load(x + (i * W + j)[:, None] * C + c[None, :], inside[:, None], 0.0)
        right = tl.load(w + (o[None, :] * KH * KW + tap) * C + c[:, None])
        total = tl.dot(left, right, total)
    made = total.to(y.dtype.element_ty)
    tl.store(y + at[:, None] * N + o[None, :], made, at[:, None] < H * W)


@triton.jit
def route(x, weights, experts, T, E: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K greatest of each token's logits, one after the other."""
    t, e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, E)
    inside = t < T
    logits = tl.load(x + t[:, None] * E + e[None, :], inside[:, None], 0.0).to(tl.float32)
    left = tl.exp(logits - tl.max(logits, 1)[:, None])
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        best, most = tl.argmax(left, 1), tl.max(left, 1)
        tl.store(experts + t * K + k, best, inside)
        tl.store(weights + t * K + k, most, inside)
        total += most
        left = tl.where(e[None, :] == best[:, None], -1.0, left)
    for k in tl.static_range(K):
        tl.store(weights + t * K + k, tl.load(weights + t * K + k, inside) / total, inside)


@triton.jit
def combine(x, places, weights, y, D, K: tl.constexpr, BLOCK: tl.constexpr):
    token, j = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        row = tl.load(places + token * K + k)
        part = tl.load(x + row * D + j, mask=j < D).to(tl.float32)
        total += part * tl.load(weights + token * K + k)
    tl.store(y + token * D + j, total.to(y.dtype.element_ty), mask=j < D)


@triton.jit
def attention(
    q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    """By FlashAttention-2; a head of k and v for each of q."""
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    base = tl.program_id(1) * length * D
    queries = tl.load(q + base + i[:, None] * D + d, mask=i[:, None] < length, other=0.0)
    bound = tl.full((BM,), -float("inf"), tl.float32)
    total, sums = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM if CAUSAL else length, BN):
        j = start + tl.arange(0, BN)
        keys = tl.load(k + base + j[None, :] * D + d[:, None], j[None, :] < length, 0.0)
        scores = tl.dot(queries, keys) * (scale * LOG2_E)
        seen = j[None, :] < length
        if CAUSAL:
            seen = seen & (j[None, :] <= i[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        highest = tl.maximum(bound, tl.max(scores, 1))
        weights = tl.exp2(scores - highest[:, None])
        shrink = tl.exp2(bound - highest)
        values = tl.load(v + base + j[:, None] * D + d, j[:, None] < length, 0.0)
        sums = tl.dot(weights.to(values.dtype), values, sums * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        bound = highest
    made = (sums / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + base + i[:, None] * D + d, made, mask=i[:, None] < length)


@triton.jit
def paged(
    q, k, v, tables, lengths, out, scale, most, heads, shared,
    PAGE: tl.constexpr, D: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """A program takes the query heads that share a head of keys, and goes through its pages."""
    sequence, group = tl.program_id(0), tl.program_id(1)
    h, d, j = tl.arange(0, H), tl.arange(0, D), tl.arange(0, PAGE)
    own = (sequence * heads + group * shared + h) * D
    queries = tl.load(q + own[:, None] + d, h[:, None] < shared, 0.0)
    length, groups = tl.load(lengths + sequence), heads // shared
    bound = tl.full((H,), -float("inf"), tl.float32)
    total, sums = tl.zeros((H,), tl.float32), tl.zeros((H, D), tl.float32)
    for first in range(0, length, PAGE):
        page = tl.load(tables + sequence * most + first // PAGE)
        row = (page * PAGE + j) * groups * D + group * D
        inside = first + j < length
        keys = tl.load(k + row[None, :] + d[:, None], inside[None, :], 0.0)
        scores = tl.dot(queries, keys) * (scale * LOG2_E)
        scores = tl.where(inside[None, :], scores, -float("inf"))
        highest = tl.maximum(bound, tl.max(scores, 1))
        weights, shrink = tl.exp2(scores - highest[:, None]), tl.exp2(bound - highest)
        values = tl.load(v + row[:, None] + d, inside[:, None], 0.0)
        sums = tl.dot(weights.to(values.dtype), values, sums * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        bound = highest
    made = (sums / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + own[:, None] + d, made, h[:, None] < shared)


@triton.jit
def rotate(x, cos, sin, y, length, ROWS: tl.constexpr, D: tl.constexpr):
    """Rows in order of batch, head and position."""
    row, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D // 2)
    at, angle = row[:, None] * D + j, (row % length)[:, None] * (D // 2) + j
    a, b = tl.load(x + at).to(tl.float32), tl.load(x + at + D // 2).to(tl.float32)
    c, s = tl.load(cos + angle).to(tl.float32), tl.load(sin + angle).to(tl.float32)
    tl.store(y + at, (a * c - b * s).to(y.dtype.element_ty))
    tl.store(y + at + D // 2, (a * s + b * c).to(y.dtype.element_ty))
