"""gfx1151: scalar floating point, which gfx11's other processors lack."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch

TARGET = "gfx1151"
# Zeros, ones, the least and a middling denormal, infinities, quiet and signaling NaNs.
EDGES = np.array(
    [
        *(0, 1 << 31, 0x3F800000, 0xBF800000, 1, 0x400000, 0x7F7FFFFF),
        *(0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC12345, 0x7F800001, 0xFFA00000),
    ],
    "u4",
)
# A scalar instruction and the vector one that it is on one lane.
PAIRS = {
    "s_min_f32": "v_min_f32",
    "s_max_f32": "v_max_f32",
    "s_min_f16": "v_min_f16",
    "s_max_f16": "v_max_f16",
    "s_add_f32": "v_add_f32",
    "s_sub_f32": "v_sub_f32",
    "s_mul_f32": "v_mul_f32",
    "s_add_f16": "v_add_f16",
    "s_mul_f16": "v_mul_f16",
}


@pytest.mark.parametrize("ieee", [True, False])
@pytest.mark.parametrize("scalar", PAIRS)
def test_scalar_arithmetic_is_the_vectors(scalar: str, ieee: bool) -> None:
    """The vector instructions are compared with the oracle. MODE.IEEE is bit 9."""
    source = f"""
kernel void k(global uint *A, global uint *B, global uint *C, int n) {{
    __builtin_amdgcn_s_setreg(1 | 9 << 6 | 0 << 11, {int(ieee)});
    for (int i = 0; i < n; i++) {{
        uint a = __builtin_amdgcn_readfirstlane(A[i]), b = __builtin_amdgcn_readfirstlane(B[i]);
        uint x, y = 0;
        __asm__ volatile("{scalar} %0, %1, %2" : "=s"(x) : "s"(a), "s"(b));
        __asm__ volatile("{PAIRS[scalar]} %0, %1, %2" : "=v"(y) : "v"(a), "v"(b));
        C[2 * i] = x; C[2 * i + 1] = {"y & 0xFFFF" if scalar.endswith("16") else "y"}; }} }}"""
    edges = EDGES
    if scalar.endswith("16"):
        halves = [0, 0x8000, 0x3C00, 0xBC00, 1, 0x200, 0x7BFF, 0x7C00, 0xFC00, 0x7E01, 0x7D00]
        edges = np.array(halves, "u4")
    a, b = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(edges, edges))
    c = np.zeros((len(a), 2), "u4")
    launch(compile_opencl(source, TARGET, "-O2"), [a, b, c, np.int32(len(a))], 1, 32)
    wrong = [
        f"{x:#x}, {y:#x}: {s:#x}, not {v:#x}"
        for x, y, (s, v) in zip(a, b, c, strict=True)
        if s != v
    ]
    assert not wrong, "\n".join(wrong)
    assert len(np.unique(c[:, 0])) > 5


def test_ieee_makes_a_signaling_nan_the_minimum() -> None:
    """As the manual has it; without MODE.IEEE the number is taken."""
    source = """
kernel void k(global uint *C) {
    uint x, y;
    __builtin_amdgcn_s_setreg(1 | 9 << 6 | 0 << 11, 1);
    __asm__ volatile("s_min_f32 %0, %1, %2" : "=s"(x) : "s"(0x7F800001), "s"(0x3F800000));
    __builtin_amdgcn_s_setreg(1 | 9 << 6 | 0 << 11, 0);
    __asm__ volatile("s_min_f32 %0, %1, %2" : "=s"(y) : "s"(0x7F800001), "s"(0x3F800000));
    C[0] = x; C[1] = y; }"""
    c = np.zeros(2, "u4")
    launch(compile_opencl(source, TARGET, "-O2"), [c], 1, 1)
    assert [hex(one) for one in c] == ["0x7fc00001", "0x3f800000"]
