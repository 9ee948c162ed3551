"""Addresses in LDS of inactive lanes have no effect, wherever they are: below 0 too, as the first
lane of a row of a tile has with its left neighbour's."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch

TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx1250")
# The address is computed by all lanes; `some` of them read. One `row` of the tile is not next to
# the one before, so that the wave's addresses are runs of 16.
SOURCE = """kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void k(global int *A, global int *B, int row, int left, int low, int high) {{
    local int s[16 * 21 + 64];
    int x = TID, y = __builtin_amdgcn_workitem_id_y();
    for (int i = y * 16 + x; i < 16 * 21 + 64; i += 256) s[i] = A[i];
    BARRIER;
    local int *p = s + (y * row + x - left);
    __asm volatile("" : "+v"(p));
    {type} v = -1;
    if (low <= x && x < high) v = {value};
    B[2 * (y * 16 + x)] = {first};
    B[2 * (y * 16 + x) + 1] = {second}; }}"""
FORMS = {
    "a dword": {"type": "int", "value": "p[0]", "first": "v", "second": "v"},
    "a pair": {"type": "int2", "value": "(int2)(p[0], p[40])", "first": "v.x", "second": "v.y"},
    "two dwords": {"type": "int2", "value": "*(local int2 *)p", "first": "v.x", "second": "v.y"},
    "a byte": {"type": "int", "value": "*(local uchar *)p", "first": "v", "second": "v"},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_below_the_lds(target: str, form: str) -> None:
    code = compile_opencl(SOURCE.format(**FORMS[form]), target, "-O3")
    a = np.random.default_rng(0).integers(0, 1 << 31, 16 * 21 + 64, np.int32)
    second = {"a pair": 40, "two dwords": 1}.get(form, 0)
    y, x = np.mgrid[:16, :16]
    for row in (16, 20, 0):
        for left, low, high in ((2, 2, 16), (4, 4, 16), (16, 16, 16), (0, 0, 16), (6, 6, 9)):
            b = np.zeros((16, 16, 2), np.int32)
            launch(code, [a, b, *(np.int32(n) for n in (row, left, low, high))], 1, (16, 16, 1))
            active = (low <= x) & (x < high)
            places = np.stack([y * row + x - left, y * row + x - left + second], -1)
            read = a[np.where(active[..., None], places, 0)]
            read = read & 0xFF if form == "a byte" else read
            wanted = np.where(active[..., None], read, -1)
            assert (b == wanted).all(), (row, left, low, high)
