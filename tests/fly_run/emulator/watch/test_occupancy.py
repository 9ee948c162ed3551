"""Occupancy against what clang's own code generator says of the same kernels."""

from __future__ import annotations

import re
import subprocess

import pytest
from chosen_targets import AMD, first, one_of_each
from fly_common.programs import toolchain
from fly_image.amd.code_object import CodeObject, Kernel
from fly_run.emulator.watch.occupancy import Occupancy, occupancy
from fly_target.amd.facts import facts_of

# REGISTERS values live at once, LDS floats of LDS, SIZE work items; `s[N]` for the last SGPR.
SOURCE = """
kernel __attribute__((reqd_work_group_size(SIZE, 1, 1))) void k(global float *a, global float *b) {
    int l = __builtin_amdgcn_workitem_id_x();
    local float s[LDS];
    s[l % LDS] = a[l];
    __builtin_amdgcn_s_barrier();
    float r[REGISTERS];
    for (int i = 0; i < REGISTERS; i++) r[i] = a[i * SIZE + l];
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < REGISTERS; i++) r[i] = r[i] * r[(i + 1) % REGISTERS] + b[i * j];
    for (int i = 0; i < REGISTERS; i++) b[i * SIZE + l] = r[i] + s[(l ^ 1) % LDS];
    __asm__ volatile("" ::: "SGPR");
}
"""
# All that differ in what it depends on.
TARGETS = one_of_each(AMD, lambda row: (row.lds, facts_of(row).registers, facts_of(row).unit))
# SIZE, LDS, REGISTERS, SGPR
SHAPES = (
    (64, 1, 4, "s8"),
    (32, 4000, 4, "s8"),
    (96, 2000, 40, "s8"),
    (256, 1, 100, "s8"),
    (256, 8000, 4, "s8"),
    (1024, 1, 40, "s8"),
    (256, 1, 4, "s95"),
    (256, 1, 4, "s101"),
)


def compiled(target: str, shape: tuple[int, int, int, str], *options: str) -> bytes:
    source = SOURCE
    for name, value in zip(("SIZE", "LDS", "REGISTERS", "SGPR"), shape, strict=True):
        source = source.replace(name, str(value))
    clang = str(toolchain.find_program("clang"))
    common = ["-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-O2"]
    command = [clang, *common, f"-mcpu={target}", *options, "-o", "-", "-"]
    done = subprocess.run(command, input=source.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def ours(target: str, shape: tuple[int, int, int, str], *options: str) -> tuple[Kernel, Occupancy]:
    kernel = CodeObject.parse(compiled(target, shape, *options)).kernel("k")
    found = occupancy(target, kernel, shape[0], kernel.group_segment_fixed_size)
    assert found is not None
    return kernel, found


def llvms(target: str, shape: tuple[int, int, int, str], *options: str) -> int:
    match = re.search(r"; Occupancy: (\d+)", compiled(target, shape, "-S", *options).decode())
    assert match is not None
    return int(match[1])


@pytest.mark.parametrize("target", first(TARGETS, 2))
def test_waves_are_those_of_llvms_remark(target: str) -> None:
    limits: set[str] = set()
    for shape in SHAPES:
        _, found = ours(target, shape)
        assert found.waves == llvms(target, shape), shape
        limits |= set(found.limits)
    # The kernels reach every limit that the target has.
    scalar = set() if target.startswith("gfx1") else {"SGPR"}
    assert limits >= {"VGPR", "LDS"} | scalar


@pytest.mark.parametrize("option", ["-mcumode", "-mwavefrontsize64"])
def test_modes_of_rdna(option: str) -> None:
    for shape in ((256, 8000, 4, "s8"), (256, 1, 100, "s8")):
        _, found = ours("gfx1100", shape, option)
        assert found.waves == llvms("gfx1100", shape, option), shape


def test_workgroups_that_are_held_at_once() -> None:
    # 4 waves each, 32,000 bytes of 64 KiB: two of them.
    _, found = ours("gfx942", (256, 8000, 4, "s8"))
    assert (found.workgroups, found.unit_waves, found.waves) == (2, 8, 2)
    assert "LDS" in found.limits
    # On gfx950 five of 160 KiB.
    assert ours("gfx950", (256, 8000, 4, "s8"))[1].workgroups == 5
    # 16 waves: two of them fill 32 slots.
    _, found = ours("gfx942", (1024, 1, 4, "s8"))
    assert (found.workgroups, found.unit_waves, found.limits) == (2, 32, ())


def test_a_processor_that_is_no_target_has_no_figure() -> None:
    kernel, _ = ours("gfx942", SHAPES[0])
    assert occupancy("gfx906", kernel, 64, 0) is None
