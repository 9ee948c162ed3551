"""Relative register numbers, blocks of registers and loops over the halves of a wave, where probes
of waves of 32 lanes with registers that exist can't look: waves of 64, faults, `--strict`."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from fly_common.errors import Fault

RDNA = ("gfx1100", "gfx1201")
T = np.arange(64)


def lanes(source: str, target: str, *flags: str, **options) -> np.ndarray:
    """The i32 that each of 64 work items of one workgroup leaves in C."""
    c = np.full(64, -1, "i4")
    launch(compile_opencl(source, target, "-O1", *flags), [c], 1, 64, **options)
    return c


def asm(body: str, *sources: str) -> str:
    """A kernel of inline assembly: %0 is the result, %1 on are sources."""
    listed = ", ".join(f'"v"({source})' for source in sources)
    registers = [*(f"v{k}" for k in range(10, 60)), *(f"s{k}" for k in range(20, 30))]
    clobbers = ", ".join(f'"{name}"' for name in (*registers, "vcc", "scc"))
    return f"""kernel void k(global int *C) {{
        int t = TID, r;
        __asm volatile("{body}" : "=&v"(r) : {listed} : {clobbers});
        C[t] = r; }}"""


def strict(code: str, target: str, *flags: str) -> np.ndarray:
    return lanes(code, target, *flags, strict=True)


@pytest.mark.parametrize(
    ("exec_mask", "wanted"),
    [
        # The number of passes before each active lane's own, and those that are not active: 7.
        (0xFFFF_FFFF_FFFF_FFFF, np.where(T < 32, 101, 102)),
        (0x0000_0000_0000_FFF0, np.where((T >= 4) & (T < 16), 101, 7)),
        (0x00F0_0000_0000_0000, np.where((T >= 52) & (T < 56), 101, 7)),
        (0x8000_0000_0000_0001, np.select([T == 0, T == 63], [101, 102], 7)),
        (0, T * 0 + 7),
    ],
)
def test_a_loop_runs_for_each_half_of_a_wave_with_active_lanes(exec_mask, wanted) -> None:
    low, high = exec_mask & 0xFFFF_FFFF, exec_mask >> 32
    # EXEC must be what it was before the loop.
    lines = f"""s_mov_b64 s[22:23], exec
        v_mov_b32 %0, 7
        s_mov_b32 s24, 100
        s_mov_b32 exec_lo, {low:#x}
        s_mov_b32 exec_hi, {high:#x}
        s_mov_b64 s[28:29], exec
        s_subvector_loop_begin s20, 3
        s_add_u32 s24, s24, 1
        v_mov_b32 %0, s24
        s_subvector_loop_end s20, -3
        s_mov_b64 s[26:27], exec
        s_mov_b64 exec, s[22:23]
        s_cmp_eq_u64 s[26:27], s[28:29]
        s_cbranch_scc1 1
        v_mov_b32 %0, -9"""
    source = asm(lines.replace("\n", "\\n"), "t")
    np.testing.assert_array_equal(lanes(source, "gfx1100", "-mwavefrontsize64"), wanted)
    np.testing.assert_array_equal(strict(source, "gfx1100", "-mwavefrontsize64"), wanted)


@pytest.mark.parametrize("name", ["ds_bpermute_b32", "ds_permute_b32"])
@pytest.mark.parametrize(("target", "group"), [("gfx1100", 32), ("gfx1201", 64)])
def test_permutations_of_a_wave_of_64_lanes(name, target, group) -> None:
    """Within the halves on gfx11, among all lanes on gfx12 (RDNA4 ISA manual, DS_PERMUTE_B32)."""
    wait = "s_waitcnt lgkmcnt(0)" if target == "gfx1100" else "s_wait_dscnt 0x0"
    source = asm(f"{name} %0, %1, %2\\n{wait}", "(t + 40) * 4", "t + 1000")
    start = T & -group
    other = start + (T + 40) % group
    wanted = np.empty(64, int)
    if name == "ds_bpermute_b32":
        wanted[:] = other + 1000
    else:
        wanted[other] = T + 1000
    np.testing.assert_array_equal(lanes(source, target, "-mwavefrontsize64"), wanted)


def test_a_permutation_that_reads_inactive_lanes() -> None:
    body = "v_cmp_lt_u32 vcc, 40, %1\\ns_mov_b64 s[20:21], exec\\ns_mov_b64 exec, vcc\\n"
    body = "v_mov_b32 %0, -5\\n" + body + "ds_bpermute_fi_b32 %0, %2, %3\\ns_wait_dscnt 0x0\\n"
    source = asm(body + "s_mov_b64 exec, s[20:21]", "t", "(63 - t) * 4", "t * 3")
    wanted = np.where(T > 40, (63 - T) * 3, -5)
    np.testing.assert_array_equal(lanes(source, "gfx1201", "-mwavefrontsize64"), wanted)


@pytest.mark.parametrize(
    ("move", "m0"),
    [
        ("v_movrels_b32 v10, v11", 256),
        ("v_movreld_b32 v11, v10", 0x8000_0000),
        ("v_movrelsd_2_b32 v11, v10", 300),
        ("v_movrelsd_2_b32 v11, v10", 300 << 16),
        ("v_swaprel_b32 v11, v10", 300 << 16),
        ("s_movrelsd_2_b32 s20, s21", 200),
        ("s_movrelsd_2_b32 s20, s21", 90 << 16),
    ],
)
@pytest.mark.parametrize("target", RDNA)
def test_a_register_that_does_not_exist(target, move, m0) -> None:
    """All 32 bits of M0 count where there is one index. Hardware would read v0 (RDNA3 ISA manual,
    3.3.2.2); nothing is touched without active lanes."""
    setting = f"v_mov_b32 %0, %1\\nv_mov_b32 v10, 1\\nv_mov_b32 v11, 1\\ns_mov_b32 m0, {m0:#x}\\n"
    with pytest.raises(Fault, match="a relative register number is beyond"):
        lanes(asm(f"{setting}{move}", "t"), target)
    if move.startswith("v_"):
        none = "s_mov_b32 s20, exec_lo\\ns_mov_b32 exec_lo, 0\\n"
        source = asm(f"{setting}{none}{move}\\ns_mov_b32 exec_lo, s20", "t")
        np.testing.assert_array_equal(lanes(source, target), T)


def test_a_block_has_registers_that_the_kernel_does_not_allocate() -> None:
    """They are a fault only if the mask selects them."""

    def source(mask: int) -> str:
        return f"""kernel void k(global int *C) {{
            int t = TID;
            __asm volatile("s_mov_b32 m0, {mask:#x}\\nv_mov_b32 v40, 17\\nv_mov_b32 v42, 19\\n"
                "global_store_block %0, v[40:71], off" :: "v"(C + 4 * t) : "v40", "v42", "memory");
            }}"""

    def run(mask: int) -> np.ndarray:
        c = np.full(256, -1, "i4")
        launch(compile_opencl(source(mask), "gfx1250", "-O1"), [c], 1, 64)
        return c.reshape(64, 4)

    np.testing.assert_array_equal(run(5), [[17, -1, 19, -1]] * 64)
    with pytest.raises(Fault, match="M0 selects a register of the block"):
        run(1 << 31)


def test_strict_follows_relative_numbers() -> None:
    """A load into another register of an array is not waited for, one of those that are read is."""

    def source(register: int) -> str:
        load = f"global_load_b32 v{register}, %1, off\\n"
        body = "v_mov_b32 v40, 1\\nv_mov_b32 v43, 3\\ns_mov_b32 m0, 3\\n" + load
        body += "v_movrels_b32 %0, v40\\ns_wait_loadcnt 0x0"
        return asm(body, "C + t")

    np.testing.assert_array_equal(strict(source(40), "gfx1250"), T * 0 + 3)
    with pytest.raises(Fault, match="before its load has completed"):
        strict(source(43), "gfx1250")


def test_strict_knows_which_registers_of_a_block_are_moved() -> None:
    def source(mask: str, register: int) -> str:
        defined = f"v_mov_b32 v41, 5\\ns_mov_b32 m0, {mask}\\n"
        body = defined + f"global_store_block %1, v[{register}:{register + 31}], off\\n"
        body += "s_wait_storecnt 0x0\\nglobal_load_b32 %0, %1, off offset:4\\ns_wait_loadcnt 0x0"
        return asm(body, "C + t / 2")

    c = strict(source("0x2", 40), "gfx1250")
    assert c[0] == 5
    with pytest.raises(Fault, match="v40"):
        strict(source("0x3", 40), "gfx1250")
    with pytest.raises(Fault, match="which registers are moved"):
        strict(source("s77", 40), "gfx1250")
