"""Dot products with scalar registers in place of vector registers: bit for bit what the form of
vector registers gives, on operands that round, overflow and are no numbers. That form itself is
judged elsewhere (semantics/matrix/test_measured_sums.py, and the oracle's probes).
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import TARGETS, compile_opencl, launch
from oracle.probes.probe import known_to

WAVES, LANES = 24, 64
SIGNS = ("", "neg_lo:[1,0,0]", "neg_lo:[1,1,0]")
# Mnemonics with three sources, and their modifiers.
PRODUCTS: dict[str, tuple[str, ...]] = {
    "v_dot2_f32_f16": ("",),
    "v_dot2_f32_bf16": ("",),
    **dict.fromkeys(("v_dot2_i32_i16", "v_dot2_u32_u16", "v_dot4_u32_u8"), ("", "clamp")),
    **dict.fromkeys(("v_dot8_u32_u4", "v_dot4_i32_i8", "v_dot8_i32_i4"), ("", "clamp")),
    **dict.fromkeys(
        ("v_dot4_i32_iu8", "v_dot8_i32_iu4"),
        tuple(f"{s} {c}" for s in SIGNS for c in ("", "clamp")),
    ),
}
# Those whose third source is their result: in the encoding with room for scalar registers.
SUMS = (
    "v_dot2c_f32_f16",
    "v_dot2c_f32_bf16",
    "v_dot2c_i32_i16",
    "v_dot4c_i32_i8",
    "v_dot8c_i32_i4",
)
# The sources: v, w and x are the lane's, s and t the wave's, of which gfx9 has room for one; digits
# are constants.
FORMS = (
    "swx",
    "vsx",
    "vws",
    "ssx",
    "sws",
    "vss",
    "sss",
    "stx",
    "swt",
    "vst",
    "00x",
    "v0s",
    "0ws",
    "00s",
)
SCALARS = {"s": "s1", "t": "s2"}
WHOLE = ("35s", "37x", "v3s", "3ws")  # with whole numbers as factors


def text(mnemonic: str, sources: str, modifiers: str) -> tuple[str, str]:
    """Inline assembly: of the form itself, and with vector registers alone."""
    result = '"+v"(r)' if mnemonic in SUMS else '"=v"(r)'
    # A scalar register that comes twice is one.
    names = [one for one in dict.fromkeys(sources) if not one.isdigit()]
    own = ", ".join(one if one.isdigit() else f"%{names.index(one) + 1}" for one in sources)
    bound = ", ".join(f'"{"s" if one in SCALARS else "v"}"({one})' for one in names)
    plain = ", ".join(f"%{number + 1}" for number in range(len(sources)))
    vectors = ", ".join(f'"v"({one})' for one in sources)
    return (
        f'"{mnemonic} %0, {own} {modifiers}" : {result} : {bound}',
        f'"{mnemonic} %0, {plain} {modifiers}" : {result} : {vectors}',
    )


def instructions(target: str) -> list[tuple[str, str, str]]:
    """(mnemonic, sources, modifiers) of what the target has."""
    found = [
        (name, form, modifier)
        for name, modifiers in PRODUCTS.items()
        for modifier in modifiers
        for form in (*FORMS, *(() if "_f32_" in name else WHOLE))
    ]
    found += [(name, form, "") for name in SUMS for form in ("sw", "vs", "ss", "0w", "v0", "00")]
    samples = []
    for name, form, modifier in found:
        operands = ", ".join(one if one.isdigit() else SCALARS.get(one, "v1") for one in form)
        samples.append(f"{name} v0, {operands} {modifier}")
    known = known_to(target, samples)
    return [one for one, good in zip(found, known, strict=True) if good]


# Bits of f32 numbers beside the least normal one, of the ends of i32, and of both f16 and i8.
EDGES = [
    *(0, 0x80000000, 0x00800000, 0x80800000, 0x007FFFFF, 0x00880000, 0x807FFFFF, 0x80880000),
    *(0x7FFFFFFF, 0x7FFFFFF8, 0x80000007, 0xFFFFFFFF, 0x3C003C00, 0x80008000, 0x88888888),
]


def words(rng: np.random.Generator, floats: bool) -> np.ndarray:
    """Of each wave some that are near each other in size, some that are anything."""
    count = WAVES * LANES
    raw = rng.integers(0, 1 << 32, count, np.uint32)
    if floats:
        near = rng.standard_normal((count, 2)).astype(np.float16).view(np.uint32)[:, 0]
        raw = np.where(rng.random(count) < 0.6, near, raw)
    edges = rng.choice(np.array(EDGES, np.uint32), count)
    return np.where(rng.random(count) < 0.2, edges, raw).astype(np.uint32)


@pytest.mark.parametrize("target", TARGETS)
def test_forms_agree(target: str) -> None:
    chosen = instructions(target)
    assert len(chosen) > 50
    body = []
    for number, one in enumerate(chosen):
        for side, line in enumerate(text(*one)):
            body.append(f"r = x; __asm volatile({line}); D[{2 * number + side}][INDEX] = r;")
    source = f"""
      typedef uint results[{WAVES * LANES}];
      kernel void k(global uint *A, global uint *B, global uint *C, global uint *S,
                    global results *D) {{
        uint v = A[INDEX], w = B[INDEX], x = C[INDEX], r;
        uint s = __builtin_amdgcn_readfirstlane(S[GROUP]);
        uint t = __builtin_amdgcn_readfirstlane(S[GROUP * 5 % {WAVES}]);
        {" ".join(body)} }}"""
    rng = np.random.default_rng(7)
    a, b, c = (words(rng, floats) for floats in (True, True, False))
    scalars = np.concatenate([np.array(EDGES, np.uint32), a[: WAVES - len(EDGES)]])
    d = np.zeros((2 * len(chosen), WAVES * LANES), np.uint32)
    launch(compile_opencl(source, target, "-O1"), [a, b, c, scalars, d], WAVES, LANES)
    different = [
        one
        for one, mine, plain in zip(chosen, d[::2], d[1::2], strict=True)
        if (mine != plain).any()
    ]
    assert not different
