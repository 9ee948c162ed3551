"""gfx908: two files of vector registers, places in v0 to v2, and its matrix instructions."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import frame
from emulator_support.engine import LEVELS, assemble, compile_opencl, launch
from emulator_support.matrix import CODE

TARGET = "gfx908"


@pytest.mark.parametrize("block", [(64, 1, 1), (5, 3, 1), (5, 3, 2), (7, 1, 4)])
def test_work_items_know_their_place(block: tuple[int, int, int]) -> None:
    source = """kernel void k(global int *C) {
        int i = __builtin_amdgcn_workitem_id_x(), j = __builtin_amdgcn_workitem_id_y();
        int k = __builtin_amdgcn_workitem_id_z();
        int item = i + __builtin_amdgcn_workgroup_size_x()
            * (j + __builtin_amdgcn_workgroup_size_y() * k);
        C[item] = i + 100 * j + 10000 * k; }"""
    shape = block[::-1]
    for level in LEVELS:
        c = np.full(shape, -1, "i4")
        launch(compile_opencl(source, TARGET, level), [c], 1, block, strict=level == "-O3")
        k, j, i = np.indices(shape)
        np.testing.assert_array_equal(c, i + 100 * j + 10000 * k)


def test_accumulation_registers_are_a_file_of_their_own() -> None:
    """The highest registers of both kinds that the kernel has, and v0 beside a0."""
    body = """
  v_mov_b32_e32 v1, 11
  v_mov_b32_e32 v254, 12
  v_accvgpr_write_b32 a1, 21
  v_accvgpr_write_b32 a254, 22
  v_accvgpr_write_b32 a255, v255
  s_nop 4
  v_accvgpr_read_b32 v2, a1
  v_accvgpr_read_b32 v3, a254
  v_accvgpr_read_b32 v4, a255"""
    stored = ("v1", "v254", "v2", "v3", "v4")
    stores = [
        f"  global_store_dword v255, {name}, s[6:7]\n"
        "  s_add_u32 s6, s6, 256\n  s_addc_u32 s7, s7, 0"
        for name in stored
    ]
    text = CODE.format(loads="", body=body, stores="\n".join(stores), input_bytes=0, output_bytes=0)
    # One number of registers for both files.
    text = frame.kernel(
        TARGET,
        text,
        arrays="input output",
        vgprs=256,
        lanes=64,
        items=64,
        metadata=(".agpr_count: 256",),
    )
    result = np.zeros((len(stored), 64), "i4")
    launch(assemble(text, TARGET), [np.zeros(1, "i4"), result])
    lanes = 4 * np.arange(64)
    for row, wanted in zip(result, (11, 12, 21, 22, lanes), strict=True):
        np.testing.assert_array_equal(row, wanted)


# Builtin, how A's and B's elements lie in a lane, what a product makes.
PRODUCTS = {
    "f32": ("mfma_f32_16x16x4f32", "float", 1, 4),
    "f16": ("mfma_f32_16x16x16f16", "half4", 4, 16),
    "bf16": ("mfma_f32_16x16x8bf16", "short2", 2, 8),
    "i8": ("mfma_i32_16x16x16i8", "int", 4, 16),
}


@pytest.mark.parametrize("kind", PRODUCTS)
@pytest.mark.parametrize("level", LEVELS)
def test_products(kind: str, level: str) -> None:
    """Whole numbers: D = A·B + C, lane l holding A's row l % 16 and runs of k."""
    builtin, operand, count, k = PRODUCTS[kind]
    result = "int4" if kind == "i8" else "float4"
    # Types by attribute: OpenCL's own have no half4 without its library.
    source = f"""
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef {result} D;
kernel void k(global {operand} *A, global {operand} *B, global D *C) {{
    int l = __builtin_amdgcn_workitem_id_x();
    C[l] = __builtin_amdgcn_{builtin}(A[l], B[l], C[l], 0, 0, 0); }}"""
    random = np.random.default_rng(11)
    a, b = (random.integers(-8, 9, (16, k)) for _ in "AB")
    c = random.integers(-50, 51, (16, 16))
    lane = np.arange(64)

    def of_lanes(matrix: np.ndarray) -> np.ndarray:
        """[lane, value]: runs of `count` along k."""
        found = matrix[lane[:, None] % 16, count * (lane[:, None] // 16) + np.arange(count)]
        if kind == "bf16":
            return (found.astype("f4").view("u4") >> 16).astype("u2")
        return found.astype({"f32": "f4", "f16": "f2", "i8": "i1"}[kind])

    rows = 4 * (lane[:, None] // 16) + np.arange(4)
    columns = np.broadcast_to(lane[:, None] % 16, rows.shape)
    held = np.ascontiguousarray(c[rows, columns]).astype("i4" if kind == "i8" else "f4")
    code = compile_opencl(source, TARGET, level)
    launch(code, [of_lanes(a), of_lanes(b), held], strict=level == "-O3")
    np.testing.assert_array_equal(held, (a @ b.T + c)[rows, columns])


def test_subnormals_of_f16_are_kept() -> None:
    """They are flushed on gfx90a, whose model of the sum is another."""
    source = """
kernel void k(global half4 *A, global half4 *B, global float4 *C) {
    int l = __builtin_amdgcn_workitem_id_x();
    C[l] = __builtin_amdgcn_mfma_f32_16x16x16f16(A[l], B[l], C[l], 0, 0, 0); }"""
    sums = {}
    for target in (TARGET, "gfx90a"):
        a, b = np.full((64, 4), 2.0**-24, "f2"), np.ones((64, 4), "f2")
        c = np.zeros((64, 4), "f4")
        launch(compile_opencl(source, target, "-O3"), [a, b, c])
        sums[target] = set(c.ravel())
    assert sums == {TARGET: {np.float32(2.0**-20)}, "gfx90a": {np.float32(0)}}
