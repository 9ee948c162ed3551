"""Probes of matrix instructions: every dense and sparse one, and their modifiers.

A, B and C differ from register to register: each is the operand's lanes rotated within rows of
sixteen. Nothing is rounded: floats are halves of small integers, 8-bit floats have a single
exponent. C is never a multiple of a product's last bit, so that no sum is a signed zero.
"""

from __future__ import annotations

import re
from dataclasses import replace

from oracle.launching import device
from oracle.probes.probe import Probe

# The edges of operand registers, and for 8-bit floats the bits to keep and to set.
KINDS = {"f16": "exact16", "bf16": "brain16", "f32": "exact32", "xf32": "exact32", "f64": "exact32"}
BYTES = {"fp8": ("0x87878787", "0x38383838"), "bf8": ("0x83838383", "0x3c3c3c3c")}


def matrix() -> list[Probe]:
    """Probes of the instructions that the enumeration finds on any gfx9 target; llvm-mc selects
    them."""
    names = set()
    for target in ("gfx90a", "gfx942", "gfx950"):
        names |= {n for n in device.known(target) if re.match(r"v_s?mfmac?_[if]", n)}
    return [probe for name in sorted(names) if "f8f6f4" not in name for probe in _of(name)]


# One instruction for each summation model, on each target.
ROUNDED = (
    *("v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x8bf16", "v_mfma_f32_16x16x16bf16_1k"),
    *("v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x8_xf32"),
    *("v_mfma_f32_16x16x32_fp8_bf8", "v_mfma_f32_32x32x16_bf8_bf8", "v_smfmac_f32_16x16x32_f16"),
    *("v_mfma_f64_16x16x4_f64", "v_mfma_f32_32x32x2_f32", "v_mfma_f32_4x4x4_16b_f16"),
    *("v_mfma_f32_16x16x32_f16", "v_mfma_f32_32x32x16_bf16"),
    *("v_mfma_f32_4x4x4f16", "v_mfma_f32_4x4x2bf16", "v_mfma_f32_4x4x4_16b_bf16"),
)
# The operands of `matrix`, and their counterparts that need rounding. For 8-bit floats all but the
# largest number and NaN.
RAGGED = {"exact16": "finite16", "brain16": "ragged16", "exact32": "finite32"}


# The same mixed with infinities, NaNs, subnormals and products that overflow.
ODD = {"exact16": "odd16", "brain16": "oddbrain16", "exact32": "f32"}


def rounded_matrices() -> list[Probe]:
    """Probes of sums that need rounding, and of special values and overflow."""
    probes = []
    for name in ROUNDED:
        probe = _of(name)[0]
        keeping, putting = r"v_and_b32 (v\d+), 0x8[37]8\w+, \1", r"v_or_b32 (v\d+), 0x3[8c]3\w+, \1"
        whole = re.sub(keeping, "s_nop 0", probe.text)
        text = re.sub(putting, r"v_and_b32 \1, 0xbfbfbfbf, \1", whole)
        sources = tuple(RAGGED.get(source, source) for source in probe.sources)
        probes.append(replace(probe, text=text, sources=sources))
        if "f64" in name:
            continue
        text = _with_one_nan(name, re.sub(putting, "s_nop 0", whole))
        sources = tuple(ODD.get(source, source) for source in probe.sources)
        probes.append(replace(probe, text=text, sources=sources))
    return probes


def _with_one_nan(name: str, text: str) -> str:
    """A NaN result's sign and payload are unspecified: replaces all by one before results are
    folded."""
    match = re.search(rf"{name} v\[(\d+):(\d+)\]", text)
    assert match, text
    lines = ["v_mov_b32 v16, 0x7fc00000"]
    for r in range(int(match[1]), int(match[2]) + 1):
        lines += [f"v_cmp_u_f32 vcc, v{r}, v{r}", f"v_cndmask_b32 v{r}, v{r}, v16, vcc"]
    before, fold, after = text.partition("v_mov_b32 v8, 0\n")
    return before + "\n  ".join([*lines, fold]) + after


def moved(first: int, count: int, source: str, *more: str) -> list[str]:
    lines = []
    for k in range(count):
        register = f"v{first + k}"
        lines.append(f"v_mov_b32_dpp {register}, {source} row_ror:{k % 15 + 1}")
        lines += [line.format(r=register) for line in more]
    return lines


def _filled(kind: str, first: int, count: int, source: str) -> list[str]:
    if kind == "f64":
        lines = moved(first, 1, source)
        return [*lines, f"v_cvt_f64_f32 v[{first}:{first + 1}], v{first}"]
    if kind in BYTES:
        keep, put = BYTES[kind]
        return moved(
            first, count, source, f"v_and_b32 {{r}}, {keep}, {{r}}", f"v_or_b32 {{r}}, {put}, {{r}}"
        )
    return moved(first, count, source)


def span(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def _of(name: str) -> list[Probe]:
    match = re.match(
        r"v_(s?)mfmac?_(f32|i32|f64)_(\d+)x(\d+)x(\d+)_?(\d+b_)?"
        r"(xf32|f64|f32|f16|bf16|i8|fp8|bf8)(_1k)?(?:_(fp8|bf8))?$",
        name,
    )
    assert match, name
    sparse, out, a = match[1], match[2], match[7]
    b = match[9] or a
    m, n, k = (int(match[g]) for g in (3, 4, 5))
    bits = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16}.get(a, 8)
    blocks = _blocks(name, m, k, bits)
    a_count = max(1, m * k * blocks * bits // 2048) // (2 if sparse else 1)
    b_count = a_count * (2 if sparse else 1)
    d_count = m * n * blocks // 64 * (2 if out == "f64" else 1)
    a_first, b_first, c_first = 20, 24, 32
    fill = [*_filled(a, a_first, a_count, "v2"), *_filled(b, b_first, b_count, "v4")]
    if out == "i32":
        addend = moved(c_first, d_count, "v6")
    elif out == "f64":
        addend = []
        for r in range(0, d_count, 2):
            place = c_first + r
            addend += moved(place, 1, "v6", "v_add_f32 {r}, 0.125, {r}")
            addend.append(f"v_cvt_f64_f32 v[{place}:{place + 1}], v{place}")
    else:
        addend = moved(c_first, d_count, "v6", "v_add_f32 {r}, 0x3e000000, {r}")
    fold = ["v_mov_b32 v8, 0", "v_mov_b32 v9, 0"]
    for r in range(d_count):
        fold += ["v_alignbit_b32 v8, v8, v8, 5", f"v_xor_b32 v8, v8, v{c_first + r}"]
    fold += [f"v_add_u32 v9, v9, v{c_first + r}" for r in range(0, d_count, 3)]
    kind = KINDS.get(a, "32")
    kinds = (kind, kind if b == a else "32", "32" if out == "i32" else "exact32")
    d, a_text, b_text = span(c_first, d_count), span(a_first, a_count), span(b_first, b_count)
    probes = []

    def add(modifiers: str = "", c: str = d) -> None:
        last = "v7" if sparse else c
        one = f"{name} {d}, {a_text}, {b_text}, {last}{modifiers}"
        # The instruction itself ignores EXEC; everything else runs in all lanes.
        lines = [
            *("s_mov_b64 exec, -1", *fill, *addend),
            *("v_and_b32 v7, 0x55555555, v18", "v_or_b32 v7, 0x88888888, v7"),
            *("s_mov_b64 exec, s[20:21]", "s_nop 7", one, "s_nop 7", "s_nop 7", "s_nop 7"),
            *("s_mov_b64 exec, -1", *fold),
        ]
        probes.append(Probe("\n  ".join(lines), kinds, about=name))

    add()
    if sparse:
        add(" abid:1")
        return probes
    add(c="1.0" if out != "i32" else "5")
    if blocks > 1 and out != "f64":
        add(" cbsz:1 abid:1")
        if blocks > 2:
            add(" cbsz:2 abid:2")
    if out == "f64":
        add(" neg:[1,0,1]")
    elif b == a and a not in BYTES:
        for group in (1, 2, 3, 4, 7):
            add(f" blgp:{group}")
    return probes


def _blocks(name: str, m: int, k: int, bits: int) -> int:
    """gfx90a's names don't tell: returns the number that fills the lanes' registers."""
    if match := re.search(r"_(\d+)b_", name):
        return int(match[1])
    held = {64: 1, 32: 1, 16: 2 if re.search(r"x\d+bf16$", name) else 4, 8: 4}[bits]
    return max(1, 64 * held // (m * k))
