"""MODE.FP16_OVFL: an f16 result that is too large is the largest number; a true infinity stays.

What is too large is told by the exact result, in f64. Everything else is to be as without the mode.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from emulator_support.engine import TARGETS, assemble, compile_opencl, launch
from emulator_support.rows import KERNEL
from fly_common.errors import Fault
from fly_run.emulator.strict.strict import Strict

LARGEST = 65504.0
GFX9, RDNA = TARGETS[:3], TARGETS[3:]
EDGES = np.array(
    [
        *(0, -0.0, 2.0**-24, -(2.0**-24), 2.0**-15, 1, -1, 1.5, 11, 15, 16, -16, 181, 256, -300),
        *(32768, -32768, 32752, LARGEST, -LARGEST, np.inf, -np.inf, np.nan),
    ],
    np.float16,
)
PAIRS = np.array(list(itertools.product(EDGES, EDGES)), np.float16)
A, B = PAIRS.T.copy()
N = len(PAIRS)
C = np.resize(np.roll(EDGES, 7), N)
# Sources in f32: beyond what f16 holds, and beyond what f32 does once multiplied.
WIDE = np.array([1, -70000, 65519, 65520, 1e30, -3e38, np.inf, -np.inf, np.nan, 1e-30], np.float32)
WIDE_A, WIDE_B = (np.array(row) for row in zip(*itertools.product(WIDE, WIDE), strict=True))


@dataclass(frozen=True, eq=False)
class Row:
    """`text`: %0 the result, %1 to %3 the sources. `exact` of the sources as f64: an infinity or a
    NaN where the result is truly that."""

    text: str
    exact: Callable[..., np.ndarray]
    targets: tuple[str, ...] = TARGETS
    sources: tuple[np.ndarray, ...] = (A, B, C)


def only(values: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    return values


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return a * b + c


NEVER_TOO_LARGE = ("v_max_f16 %0, %1, %2", "v_log_f16 %0, %1")
ROWS = (
    Row("v_add_f16 %0, %1, %2", lambda a, b, c: a + b),
    Row("v_sub_f16 %0, %1, %2", lambda a, b, c: a - b),
    Row("v_mul_f16 %0, -%1, |%2|", lambda a, b, c: -a * abs(b)),
    Row("v_fma_f16 %0, %1, %2, %3", product),
    Row("v_fma_f16 %0, -%1, -%2, |%3|", lambda a, b, c: a * b + abs(c)),
    Row("v_mov_b32 %0, %3\\nv_fmac_f16 %0, %1, %2", product, RDNA),
    Row("v_mov_b32 %0, %3\\nv_pk_fmac_f16 %0, %1, %2", product, ("gfx942", *RDNA)),
    Row("v_pk_fma_f16 %0, %1, %2, %3", product),
    Row("v_pk_mul_f16 %0, %1, %2", lambda a, b, c: a * b),
    Row("v_ldexp_f16 %0, %1, 3", lambda a, b, c: a * 8),
    Row("v_exp_f16 %0, %1", lambda a, b, c: np.exp2(np.where(a < 1e9, np.fmin(a, 99), a))),
    Row("v_cvt_f16_f32 %0, %1", only, sources=(WIDE_A, WIDE_B)),
    Row("v_cvt_f16_u16 %0, %1", only, sources=(np.array([0, 7, 65503, 65535], "u4"),)),
    Row("v_cvt_pk_f16_f32 %0, %2, %1", lambda a, b: b, ("gfx950",), (WIDE_A, WIDE_B)),
    Row("v_fma_mixlo_f16 %0, %1, %2, %1", lambda a, b: a * b + a, sources=(WIDE_A, WIDE_B)),
    Row("v_dot2_f16_f16 %0, %1, %2, %3", lambda a, b, c: a * b + c, RDNA),
    Row(NEVER_TOO_LARGE[0], lambda a, b, c: np.fmax(a, b)),
    Row("v_add_f16_sdwa %0, %1, %2 dst_sel:WORD_0", lambda a, b, c: a + b, GFX9),
    # Of 0: gfx1201 has no true infinity there.
    Row("v_rcp_f16 %0, %1", lambda a, b, c: 1 / a, TARGETS[:4]),
    Row("v_rcp_f16 %0, %1", lambda a, b, c: np.where(a == 0, np.copysign(1e9, a), 1 / a), RDNA[1:]),
    Row(NEVER_TOO_LARGE[1], lambda a, b, c: np.log2(a), TARGETS[:4]),
    Row("v_rsq_f16 %0, %1", lambda a, b, c: np.where(a == 0, np.copysign(1e9, a), 1), RDNA[1:]),
)


def results(target: str, mode: int) -> dict[Row, np.ndarray]:
    """The low halves of what the target's rows give: one kernel for all of them."""
    rows = [row for row in ROWS if target in row.targets]
    register = "HW_REG_WAVE_MODE" if target == "gfx1201" else "HW_REG_MODE"
    setting = f"s_setreg_b32 hwreg({register}, 23, 1), %1"
    lines, sources = [], []
    for number, row in enumerate(rows):
        text = re.sub(r"%([123])", lambda found: f"%{int(found[1]) + 1}", row.text)
        first = len(sources)
        sources += [np.resize(_word(values), N) for values in row.sources]
        listed = ", ".join(f'"v"(S[{place * N} + t])' for place in range(first, len(sources)))
        lines.append(
            f'__asm volatile("{setting}\\n{text}" : "=&v"(r) : "s"(scalar), {listed});'
            f" D[{number * N} + t] = r;"
        )
    body = "\n".join(lines)
    source = f"""kernel void k(global int *S, global int *D, int mode) {{
      int r, t = INDEX, scalar = __builtin_amdgcn_readfirstlane(mode);
      if (t < {N}) {{ {body} }} }}"""
    out = np.zeros(len(rows) * N, np.uint32)
    arguments = [np.concatenate(sources), out, np.int32(mode)]
    launch(compile_opencl(source, target, "-O1"), arguments, -(-N // 64), 64)
    halves = out.astype(np.uint16).view(np.float16).reshape(len(rows), N)
    return dict(zip(rows, halves, strict=True))


def _word(values: np.ndarray) -> np.ndarray:
    return values.view(np.uint16).astype(np.uint32) if values.itemsize == 2 else values.view("u4")


@pytest.mark.parametrize("target", ["gfx942", "gfx950", *RDNA])
def test_too_large_is_the_largest(target: str) -> None:
    plain, held = results(target, 0), results(target, 1)
    assert len(held) >= 17
    for row, found in held.items():
        with np.errstate(all="ignore"):
            sources = (np.resize(values, N).astype(np.float64) for values in row.sources)
            exact = row.exact(*sources)
        too_large = np.isinf(plain[row]) & np.isfinite(exact)
        assert too_large.any() or row.text in NEVER_TOO_LARGE
        wanted = np.where(too_large, np.copysign(LARGEST, exact), plain[row])
        np.testing.assert_array_equal(found, wanted.astype(np.float16), row.text)


def test_packed_halves_are_held_apart() -> None:
    """One half is infinite by right, the other is not."""
    sums = np.array([0x7C00_7BFF, 0x7BFF_FC00, 0xFBFF_7C00], np.uint32)
    body = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\nv_pk_add_f16 v2, v2, v2"
    assert words("gfx90a", body, sums).tolist() == sums.tolist()


def test_the_descriptor_sets_the_mode() -> None:
    sums = np.array([0x7BFF, 0xFBFF, 0x7C00], np.uint32)
    body = "v_add_f16 v2, v2, v2"
    assert words("gfx942", body, sums).tolist() == [0x7C00, 0xFC00, 0x7C00]
    more = ".amdhsa_fp16_overflow 1"
    assert words("gfx942", body, sums, more).tolist() == [0x7BFF, 0xFBFF, 0x7C00]


def words(
    target: str, body: str, sources: np.ndarray, more: str = "", **options: Any
) -> np.ndarray:
    """v2 of the first lanes, which was a source each."""
    text = f"""
      s_load_dwordx2 s[2:3], s[0:1], 0x0
      v_lshlrev_b32 v1, 2, v0
      s_waitcnt lgkmcnt(0)
      global_load_dword v2, v1, s[2:3]
      s_waitcnt vmcnt(0)
      {body}
      global_store_dword v1, v2, s[2:3]
      s_endpgm
    """
    code = assemble(KERNEL.format(target=target, body=text, vgprs=8, more=more), target)
    data = np.zeros(64, np.uint32)
    data[: len(sources)] = sources
    launch(code, [data], **options)
    return data[: len(sources)]


def test_what_is_open_is_refused_under_strict() -> None:
    """v_mad_f16 rounds its product: nobody says whether that is held. v_fma_f16 rounds once."""
    sums = np.array([0x7BFF], np.uint32)
    more = ".amdhsa_fp16_overflow 1"
    body = "v_mad_f16 v2, v2, v2, v2"
    words("gfx942", body, sums, more)
    words("gfx942", body, sums, observers=(Strict(),))
    words("gfx942", "v_fma_f16 v2, v2, v2, v2", sums, more, observers=(Strict(),))
    with pytest.raises(Fault) as caught:
        words("gfx942", body, sums, more, observers=(Strict(),))
    assert caught.value.message.startswith(
        "no public source specifies whether MODE.FP16_OVFL limits the product too, before the sum; "
    )
