"""What the examples' kernels compute, in f64, from a launch's own arguments.

A reference takes the arguments by parameter, as they were before and after the launch, and yields
what is wrong. It reads matrices through the strides that the kernel was given, and knows formats
by their definition (the OCP's MX specification), so it shares no code with the examples.
"""

import math

import numpy as np
import torch

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def narrow(bits: np.ndarray, exponent: int, fraction: int) -> np.ndarray:
    """Numbers of eight bits with a bias of 2^(exponent-1) - 1; no NaN or infinity occurs."""
    high, low = bits >> fraction & (2**exponent - 1), bits & (2**fraction - 1)
    bias = 2 ** (exponent - 1) - 1
    size = np.where(high > 0, low + 2.0**fraction, low * 1.0)
    size = size * 2.0 ** (np.maximum(high, 1).astype("f8") - bias - fraction)
    return np.where(bits >> (exponent + fraction), -size, size)


def plain(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's memory as f64, or as bytes if its type has eight bits."""
    if tensor.element_size() == 1:
        return tensor.view(torch.uint8).numpy()
    return tensor.to(torch.float64).numpy()


def strided(tensor: torch.Tensor, shape, strides) -> np.ndarray:
    """A view of a tensor's memory, with strides in elements."""
    return plain(torch.as_strided(tensor, tuple(shape), tuple(strides)))


def differs(what: str, found: np.ndarray, wanted: np.ndarray, bound: np.ndarray):
    """What is wrong, if an element is further from the wanted one than `bound`."""
    off = np.abs(found - wanted)
    wrong = ~(off <= bound)
    if wrong.any():
        at = tuple(int(one) for one in np.argwhere(wrong)[0])
        yield (
            f"{wrong.sum()} of {wrong.size} elements of {what} are wrong, the first at {at}:"
            f" {found[at]:.6g} instead of {wanted[at]:.6g}"
        )


def rounding(kind: torch.dtype) -> float:
    return {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[kind]


def swiglu(pairs: np.ndarray) -> np.ndarray:
    """silu(gate) · up of neighbouring columns."""
    gate, up = pairs[:, 0::2], pairs[:, 1::2]
    return gate / (1 + np.exp(-gate)) * up


def product(a: np.ndarray, b: np.ndarray, c: torch.Tensor, found: np.ndarray, activation: str):
    """Compares a product: f32 sums may be off by some units of the sum of the magnitudes."""
    wanted, size = a @ b, np.abs(a) @ np.abs(b)
    bound = size * 2.0**-19
    if activation == "swiglu":
        gate, up = wanted[:, 0::2], wanted[:, 1::2]
        # The derivative of silu is below 1.1; exp and the division have an error of some units.
        bound = 1.1 * bound[:, 0::2] * np.abs(up) + np.abs(gate) * bound[:, 1::2]
        wanted = swiglu(wanted)
        bound = bound + 2.0**-20 * np.abs(wanted)
    yield from differs("c", found, wanted, bound + rounding(c.dtype) * np.abs(wanted))


def gemm(before, after):
    """f16: C = A B, or with its columns in pairs silu(gate) · up."""
    m, n, k = (before[name] for name in "MNK")
    activation = before.get("ACTIVATION", "")
    columns = n * (2 if activation else 1)
    a = strided(before["a_ptr"], (m, k), (before["stride_am"], before["stride_ak"]))
    b = strided(before["b_ptr"], (k, columns), (before["stride_bk"], before["stride_bn"]))
    c = strided(after["c_ptr"], (m, n), (before["stride_cm"], before["stride_cn"]))
    yield from product(a, b, before["c_ptr"], c, activation)


def mx_values(bits: np.ndarray, kind: str) -> np.ndarray:
    """Values along the last axis, of which those of four bits are two to a byte."""
    if kind == "e2m1":
        halves = np.stack([bits & 15, bits >> 4], -1)
        return E2M1[halves.reshape(*bits.shape[:-1], -1)]
    return narrow(bits, *((4, 3) if kind == "e4m3" else (5, 2)))


def mx_scales(packed: torch.Tensor, rows: int, blocks: int, stride: int, shuffled: bool):
    """E8M0 scales by row and block. Shuffled ones are in tiles of 128 rows and up to four blocks,
    of which the rows 32 apart are together."""
    if not shuffled:
        bits = strided(packed, (rows, blocks), (stride, 1))
    else:
        width = min(blocks, 4)
        memory = plain(packed).reshape(-1)
        row, block = np.ogrid[:rows, :blocks]
        place = (block // width) * 128 * width + (row % 32) * 4 * width
        place = place + (row % 128 // 32) * width + block % width
        bits = memory[(row // 128) * stride + place]
    return 2.0 ** (bits.astype("f8") - 127)


def mx_gemm(before, after):
    """C = A B of MX formats, blocks of SCALE_BLOCK values along K."""
    m, n, k = (before[name] for name in "MNK")
    kinds = before["DTYPE_A"], before["DTYPE_B"]
    activation, block = before["ACTIVATION"], before["SCALE_BLOCK"]
    columns = n * (2 if activation else 1)
    ka, kb = (k // (2 if kind == "e2m1" else 1) for kind in kinds)
    a = strided(before["a_ptr"], (m, ka), (before["stride_am"], before["stride_ak"]))
    b = strided(before["b_ptr"], (columns, kb), (before["stride_bn"], before["stride_bk"]))
    blocks, scaled = k // block, []
    for bits, kind, scale in ((a, kinds[0], before["a_scale"]), (b, kinds[1], before["b_scale"])):
        values = mx_values(bits, kind)
        if scale is not None:
            told = before["stride_scale"], before["SCALE_PRESHUFFLE"]
            values = values * np.repeat(mx_scales(scale, len(values), blocks, *told), block, 1)
        scaled.append(values)
    c = strided(after["c_ptr"], (m, n), (before["stride_cm"], before["stride_cn"]))
    yield from product(scaled[0], scaled[1].T, before["c_ptr"], c, activation)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def whole(tensor: torch.Tensor) -> np.ndarray:
    return tensor.to(torch.float64).numpy()


def attention_of(q, k, v, scale: float):
    """softmax(scale · q kᵀ) v, softmax(scale · q kᵀ) |v|, and each row's greatest weight, by head
    of the last two axes."""
    weights = softmax(scale * (q @ np.swapaxes(k, -1, -2)))
    return weights @ v, weights @ np.abs(v), weights.max(-1, keepdims=True)


def attention(before, after):
    """bf16 (batch, head, row, element); the weights are rounded to bf16 before the product."""
    q, k, v = (whole(before[name]) for name in ("q_ptr", "k_ptr", "v_ptr"))
    wanted, size, _ = attention_of(q, k, v, before["SM_SCALE"])
    found = whole(after["out_ptr"])
    yield from differs("out", found, wanted, 2.0**-7 * size + 2.0**-20)


def decode(before, after):
    """Parts of the keys: for each, the maximum, and sums relative to it."""
    q, k, v = (whole(before[name]) for name in ("q_ptr", "k_ptr", "v_ptr"))
    scale, rows = before["SM_SCALE"], before["SEQLEN_Q"]
    sums, totals, most = (whole(after[f"mid_{one}_ptr"]) for one in "olm")
    for part in range(before["SPLIT_FACTOR"]):
        chosen = slice(part * before["CHUNK_SIZE"], (part + 1) * before["CHUNK_SIZE"])
        scores = q @ np.swapaxes(k[:, :, chosen], -1, -2)
        highest = scores.max(-1)
        powers = np.exp(scale * (scores - highest[..., None]))
        name = f"of part {part}"
        found = most[:, :, part, :rows]
        yield from differs(f"mid_m {name}", found, highest, 2.0**-12 * np.abs(highest) + 1e-4)
        found, wanted = totals[:, :, part, :rows], powers.sum(-1)
        yield from differs(f"mid_l {name}", found, wanted, 2.0**-10 * wanted)
        values = v[:, :, chosen]
        found, size = sums[:, :, part, :rows], powers @ np.abs(values)
        yield from differs(f"mid_o {name}", found, powers @ values, 2.0**-7 * size)


def reduce(before, after):
    """The parts' sums, each relative to its maximum, put together."""
    sums, totals, most = (whole(before[f"mid_{one}_ptr"]) for one in "olm")
    rows = before["SEQLEN_Q"]
    sums, totals, most = sums[:, :, :, :rows], totals[:, :, :, :rows], most[:, :, :, :rows]
    weights = np.exp(before["SM_SCALE"] * (most - most.max(2, keepdims=True)))
    top, bottom = (weights[..., None] * sums).sum(2), (weights * totals).sum(2)
    wanted = top / bottom[..., None]
    yield from differs("out", whole(after["out_ptr"]), wanted, 2.0**-16 * np.abs(wanted) + 2.0**-20)


def mx_attention(arguments, named, result):
    """attn_fwd(q, k, v, scales, …): (batch, row, head, element); k and v of four bits have two
    values to a byte along the element and the row. The weights are rounded to eight bits."""
    q, k, v, q_scale, k_scale, v_scale, q_kind, kind, block_scaling = arguments[:9]
    q = mx_values(plain(q), q_kind)
    k, v = (
        mx_values(plain(k), kind),
        np.moveaxis(mx_values(np.moveaxis(plain(v), 1, 3), kind), 3, 1),
    )
    if block_scaling:
        q, k = (
            one * np.repeat(2.0 ** (plain(scale).astype("f8") - 127), 32, 3)
            for one, scale in ((q, q_scale), (k, k_scale))
        )
        v = v * np.repeat(2.0 ** (plain(v_scale).astype("f8") - 127), 32, 1)
    else:
        q, k, v = (
            one * 2.0 ** (scale - 127) for one, scale in ((q, q_scale), (k, k_scale), (v, v_scale))
        )
    q, k, v = (np.moveaxis(one, 2, 1) for one in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(one, group, 1) for one in (k, v))
    wanted, size, most = attention_of(q, k, v, 1 / math.sqrt(q.shape[-1]))
    found = np.moveaxis(whole(result[0]), 2, 1)
    # A weight of eight bits, relative to the greatest, is within 1/16 of itself; if it is denormal
    # (below 2^-6), within 2^-10.
    denormal = 2.0**-10 * np.abs(v).sum(-2, keepdims=True) * most
    yield from differs("o", found, wanted, 2.0**-4 * size + denormal + 2.0**-10)


KERNELS = {
    "gemm_tdm_pipelined_kernel": gemm,
    "persistent_gemm_tdm_pipelined_kernel": gemm,
    "persistent_gemm_tdm_pipelined_lds_prefetch_kernel": gemm,
    "gemm_tdm_pipelined_single_warp_per_simd_schedule_kernel": gemm,
    "gemm_tdm_warp_specialized_kernel": gemm,
    "persistent_gemm_tdm_warp_specialized_kernel": gemm,
    "persistent_gemm_tdm_warp_specialized_subtiled_kernel": gemm,
    "streamk_gemm_tdm_pipelined_kernel_4warps": gemm,
    "streamk_gemm_tdm_pipelined_kernel_8warps": gemm,
    "streamk_gemm_tdm_prefetch_kernel": gemm,
    "gemm_tdm_pipelined_warp_pipelined_kernel": gemm,
    "gemm_tdm_pipelined_warp_pipelined_kernelB": gemm,
    "gemm_tdm_predicated_pipelined_warp_pipelined_kernel": gemm,
    "mxgemm_tdm_pipelined_kernel": mx_gemm,
    "attn_fwd_kernel": attention,
    "attn_fwd_pipelined_kernel": attention,
    "attn_fwd_pingpong_pipelined_kernel": attention,
    "attn_decode_fwd_kernel": decode,
    "attn_decode_reduce_kernel": reduce,
}
HOST = {"attn_fwd": mx_attention}
