"""A kernel that tests WMMA instructions: registers in, matrix D out, one instruction per row.

C and D are v[8:15], A is v[16:23], B is v[24:31]; shorter operands are their first registers. The
inputs are uint32[instructions, 32 lanes, 24], the outputs uint32[instructions, 32 lanes, 8].
"""

from __future__ import annotations

import numpy as np

from oracle.probes.rdna_probe import WAITS, spelled

LANES = 32
MEASURED = ("gfx1100", "gfx1201")  # the targets whose sums are known
# Registers of C and D, of A, of B, and the names; forms follow.
GFX11 = (
    (8, 8, "f32_16x16x16_f16"),
    (8, 8, "f32_16x16x16_bf16"),
    (8, 8, "f16_16x16x16_f16"),
    (8, 8, "bf16_16x16x16_bf16"),
    (8, 4, "i32_16x16x16_iu8"),
    (8, 2, "i32_16x16x16_iu4"),
)
GFX12 = (
    (8, 4, "f32_16x16x16_f16"),
    (8, 4, "f32_16x16x16_bf16"),
    (4, 4, "f16_16x16x16_f16"),
    (4, 4, "bf16_16x16x16_bf16"),
    (8, 2, "i32_16x16x16_iu8"),
    (8, 1, "i32_16x16x16_iu4"),
    (8, 2, "i32_16x16x32_iu4"),
    *((8, 2, f"f32_16x16x16_{a}_{b}") for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
)
INTEGER_FORMS = (
    "",
    " neg_lo:[1,0,0]",
    " neg_lo:[0,1,0]",
    " neg_lo:[1,1,0]",
    " neg_lo:[1,1,0] clamp",
)
FLOAT_FORMS = ("", " neg_lo:[1,0,0]", " neg_hi:[0,1,0]", " neg_lo:[0,0,1]", " neg_hi:[0,0,1]")


def instructions(target: str) -> list[tuple[str, str]]:
    """Returns (element types, text) pairs."""
    found = []
    gfx11 = target == "gfx1100"
    for size, short, name in GFX11 if gfx11 else GFX12:
        kind = name.split("x")[2].split("_")[1]
        forms = INTEGER_FORMS if kind.startswith("iu") else FLOAT_FORMS
        if kind in ("bf16", "fp8", "bf8"):
            forms = ("", *FLOAT_FORMS[3:])
        if gfx11 and name.startswith(("f16", "bf16")):
            forms = ("", " op_sel:[0,0,1]")
        d, a, b = _span(8, size), _span(16, short), _span(24, short)
        found += [(name, f"v_wmma_{name} {d}, {a}, {b}, {d}{form}") for form in forms]
    return found


def _span(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def inputs(target: str, seed: int, whole: bool) -> np.ndarray:
    """`whole`: floats are small integers, so that every sum is exact in every result's type;
    otherwise they are normal numbers. Integers are random bits."""
    rng = np.random.default_rng(seed)
    rows = [_registers(name, target, rng, whole) for name, _ in instructions(target)]
    return np.stack(rows)


def _registers(name: str, target: str, rng: np.random.Generator, whole: bool) -> np.ndarray:
    words = rng.integers(0, 1 << 32, (LANES, 24), np.uint32)
    result, kinds = name.split("_")[0], name.split("_")[2:]
    for first, kind in ((8, kinds[0]), (16, kinds[-1])):
        if not kind.startswith("iu"):
            words[:, first : first + 8] = _floats(kind, (LANES, 8), rng, whole)
    if result != "i32":
        words[:, :8] = _floats(result, (LANES, 8), rng, whole)
    if target == "gfx1100":  # the upper lanes must repeat the lower ones there
        words[16:, 8:] = words[:16, 8:]
    return words


def strange(target: str, seed: int) -> np.ndarray:
    """Returns inputs with 16- and 32-bit floats of every exponent, similar ones in some lanes; one
    in 200 is infinite or NaN."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, _ in instructions(target):
        words = _registers(name, target, rng, whole=False)
        result, kind = name.split("_")[0], name.split("_")[2]
        if result != "i32" and kind in ("f16", "bf16"):
            words[:, :8] = _any_bits(result, words[:, :8], rng)
            words[:, 8:] = _any_bits(kind, words[:, 8:], rng)
            if target == "gfx1100":
                words[16:, 8:] = words[:16, 8:]
        rows.append(words)
    return np.stack(rows)


def _any_bits(kind: str, near: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[lane, register]: replaces the values of two in three lanes by random bits."""
    dtype, fraction = (np.uint32, 23) if kind == "f32" else (np.uint16, 10 if kind == "f16" else 7)
    numbers = np.ascontiguousarray(near).view(dtype)
    top = (1 << 8 * numbers.itemsize - 1) - (1 << fraction)
    bits = rng.integers(0, 1 << 8 * numbers.itemsize, numbers.shape).astype(dtype)
    wild = (np.arange(len(numbers)) % 3 > 0)[:, None] & (bits & dtype(top) != top)
    numbers = np.where(wild, bits, numbers)
    odd = np.array([top, top | 1 << fraction - 1, top | 1], dtype)
    odd = rng.choice(odd, numbers.shape) | (bits & ~dtype(top | (1 << fraction) - 1))
    return np.where(rng.random(numbers.shape) < 0.005, odd, numbers).view(np.uint32)


def _floats(kind: str, shape: tuple[int, int], rng: np.random.Generator, whole: bool):
    if kind in ("fp8", "bf8"):
        # 0 and 1, 2, 3 with either sign; or any pattern of moderate magnitude.
        exact = [0, 0x38, 0x40, 0x44] if kind == "fp8" else [0, 0x3C, 0x40, 0x42]
        low = rng.choice(exact, (*shape, 4)) if whole else rng.integers(0, 0x50, (*shape, 4))
        signs = rng.integers(0, 2, (*shape, 4)) << 7
        return (low | signs).astype(np.uint8).view(np.uint32)[..., 0]
    count = 1 if kind == "f32" else 2
    values = rng.integers(-3, 4, (*shape, count)) if whole else rng.standard_normal((*shape, count))
    if kind == "f16":
        return values.astype(np.float16).view(np.uint32)[..., 0]
    raw = values.astype(np.float32).view(np.uint32)
    if kind == "f32":
        return raw[..., 0]
    return raw[..., 0] >> np.uint32(16) | (raw[..., 1] & np.uint32(0xFFFF0000))


def program(target: str) -> str:
    wait = "\n".join(f"  {line}" for line in WAITS[target])
    body = []
    for _, text in instructions(target):
        loads = [
            f"  global_load_b128 v[{8 + 4 * k}:{11 + 4 * k}], v40, s[4:5] offset:{16 * k}"
            for k in range(6)
        ]
        body += [*loads, wait, f"  {text}", "  s_nop 7"]
        body += [
            "  global_store_b128 v41, v[8:11], s[6:7]",
            "  global_store_b128 v41, v[12:15], s[6:7] offset:16",
            f"  v_add_nc_u32_e32 v40, {LANES * 96}, v40",
            f"  v_add_nc_u32_e32 v41, {LANES * 32}, v41",
            wait,
        ]
    return _HEAD.replace("WAIT", spelled("s_waitcnt", target)) + "\n".join(body) + _TAIL


_HEAD = """
.text
.globl probe
.p2align 8
.type probe,@function
probe:
  s_load_b128 s[4:7], s[0:1], 0x0
  v_mul_u32_u24_e32 v40, 0x60, v0
  v_lshlrev_b32_e32 v41, 5, v0
WAIT
"""
_TAIL = """
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel probe
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 48
  .amdhsa_next_free_sgpr 16
  .amdhsa_kernarg_size 16
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: probe
    .symbol: probe.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 16
    .vgpr_count: 48
    .max_flat_workgroup_size: 32
    .args:
      - {.name: inputs, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: outputs, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
...
.end_amdgpu_metadata
"""
