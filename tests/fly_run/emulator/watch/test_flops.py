"""FLOPs in the statistics: of each instruction, and of launches whose arithmetic is known."""

from __future__ import annotations

import numpy as np
import pytest
from fly_run.devices.options import Options
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.watch import flops
from fly_run.emulator.watch.observe import Count
from fly_run.emulator.watch.stats import Statistics
from fly_trace.session.load import load_file
from plugins import EXAMPLES


def instruction(mnemonic: str, second: str = "") -> Instruction:
    other = Instruction(0, 0, second, ()) if second else None
    return Instruction(0, 8, mnemonic, (), second=other)


@pytest.mark.parametrize(
    ("mnemonic", "each"),
    [
        ("v_add_f32_e32", 1),
        ("v_subrev_f16_e64", 1),
        ("v_mul_f64_e64", 1),
        ("v_mul_legacy_f32_e64", 1),
        ("v_add_f32_dpp", 1),
        ("v_fmac_f32_e64_dpp", 2),
        ("v_fma_f64", 2),
        ("v_fmamk_f32", 2),
        ("v_div_fmas_f32", 2),
        ("v_fma_mixlo_f16", 2),
        ("v_rcp_f32_e32", 1),
        ("v_exp_f16_e32", 1),
        ("v_pk_fma_f32", 4),
        ("v_pk_mul_f16", 2),
        ("v_dot2_f32_f16", 4),
        ("v_add_u32_e32", 0),
        ("v_max_f32_e32", 0),
        ("v_cmp_lt_f32_e32", 0),
        ("v_cvt_f32_i32_e32", 0),
        ("v_div_scale_f32", 0),
        ("v_div_fixup_f32", 0),
        ("v_ldexp_f32", 0),
        ("v_mul_lo_u32", 0),
        ("v_mul_f32_i24", 0),
        ("global_atomic_add_f32", 0),
        ("ds_add_f32", 0),
    ],
)
def test_an_instruction(mnemonic, each):
    assert flops.of_count(Count(instruction(mnemonic), 10, 300, 0, 0)) == (300 * each, 0)


@pytest.mark.parametrize(
    ("mnemonic", "second", "expected"),
    [
        ("v_dual_fmac_f32", "v_dual_sub_f32", (900, 0)),
        ("v_dual_mov_b32", "v_dual_mul_f32", (300, 0)),
        ("s_fmac_f32", "", (20, 0)),
        ("s_add_i32", "", (0, 0)),
        ("v_s_rcp_f32", "", (10, 0)),
        # A product of matrices ignores which lanes are active.
        ("v_mfma_f32_32x32x8f16", "", (0, 10 * 2 * 32 * 32 * 8)),
        ("v_mfma_f32_4x4x4_16b_f16", "", (0, 10 * 2 * 4 * 4 * 4 * 16)),
        ("v_mfma_f32_32x32x1f32", "", (0, 10 * 2 * 32 * 32 * 2)),
        ("v_mfma_f64_16x16x4f64", "", (0, 10 * 2 * 16 * 16 * 4)),
        ("v_wmma_f32_16x16x16_f16", "", (0, 10 * 2 * 16**3)),
        ("v_mfma_i32_32x32x8i8", "", (0, 0)),
    ],
)
def test_pairs_scalars_and_matrices(mnemonic, second, expected):
    assert flops.of_count(Count(instruction(mnemonic, second), 10, 300, 0, 0)) == expected


def counted(file: str, entry: str, target: str, *arrays: np.ndarray) -> list[dict[str, int]]:
    function = getattr(load_file(str(EXAMPLES / file)), entry)
    seen = Statistics()
    made = function.compile(*arrays, target=target)
    values = dict(zip("AB", arrays, strict=False))
    made.run(values, device="emulator", options=Options(observers=(seen,)))
    return [document["flops"] for document in seen.documents]


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_an_addition_for_each_element(target):
    n = 1003  # the last wave is not full
    a = np.ones(n, np.float32)
    assert counted("vector_add.py", "vector_add", target, a, a) == [{"vector": n, "matrix": 0}]


@pytest.mark.parametrize(
    ("target", "entry"),
    [("gfx942", "gemm_f16"), ("gfx1100", "gemm_wmma"), ("gfx1201", "gemm_wmma")],
)
def test_products_of_matrices(target, entry):
    a, b = np.ones((128, 96), np.float16), np.ones((64, 96), np.float16)
    (found,) = counted("mfma_gemm.py", entry, target, a, b)
    assert found == {"vector": 0, "matrix": 2 * 128 * 64 * 96}


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_fused_multiply_adds(target):
    """A workgroup of 16×16 work items runs along K, in steps of 16."""
    a, b = np.ones((20, 40), np.float32), np.ones((40, 33), np.float32)
    (found,) = counted("matmul.py", "matmul", target, a, b)
    assert found == {"vector": 2 * (2 * 16) * (3 * 16) * 48, "matrix": 0}
