"""Which waits of gfx1250 cover which operations, for `--strict`: each counter its own."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.copies import run
from fly_common.errors import Fault

ADDRESSES = "".join(f"  v_mov_b32 v{number}, s{number}\n" for number in (4, 5))
FILL = "  ds_store_b32 v250, v250\n  s_wait_dscnt 0x0\n"
LDS = "  ds_load_b32 v3, v250\n  s_wait_dscnt 0x0\n"
TENSOR = """  s_mov_b64 s[12:13], 1
  s_mov_b32 s14, s4
  s_or_b32 s15, s5, 0x80000000
  s_mov_b32 s16, 0x20000
  s_mov_b32 s17, 0x200000
  s_mov_b32 s18, 0x10000
  s_mov_b32 s19, 0x200000
  s_mov_b32 s20, 1
  s_mov_b32 s21, 32
  s_mov_b64 s[22:23], 0
  tensor_load_to_lds s[12:15], s[16:23]
"""
# An operation, what must not be before it has completed, and the counters that it is in.
OPERATIONS = {
    "global load": ("  global_load_b32 v2, v250, s[4:5]\n", "  v_mov_b32 v3, v2\n", {"load"}),
    "monitor": ("  global_load_monitor_b32 v2, v250, s[4:5]\n", "  v_mov_b32 v3, v2\n", {"load"}),
    "cluster load": (
        "  s_mov_b32 m0, 0\n  cluster_load_b32 v2, v250, s[4:5]\n",
        "  v_mov_b32 v3, v2\n",
        {"load"},
    ),
    "transposed load": (
        "  global_load_tr8_b64 v[2:3], v250, s[4:5]\n",
        "  v_mov_b32 v6, v3\n",
        {"load"},
    ),
    "atomic": (
        "  v_mov_b32 v2, 0\n  global_atomic_add_u32 v3, v250, v2, s[4:5] th:TH_ATOMIC_RETURN\n",
        "  v_mov_b32 v6, v3\n",
        {"load"},
    ),
    "flat load": (f"{ADDRESSES}  flat_load_b32 v2, v[4:5]\n", "  v_mov_b32 v3, v2\n", {"load"}),
    "LDS load": (f"{FILL}  ds_load_b32 v2, v250\n", "  v_mov_b32 v3, v2\n", {"ds"}),
    "scalar load": ("  s_load_b32 s12, s[4:5], 0x0\n", "  s_mov_b32 s13, s12\n", {"km"}),
    "to LDS": ("  global_load_async_to_lds_b32 v250, v250, s[4:5]\n", LDS, {"async"}),
    "from LDS": (
        f"{FILL}  global_store_async_from_lds_b32 v250, v250, s[8:9]\n",
        "  ds_store_b32 v250, v0\n",
        {"async"},
    ),
    "tensor": (TENSOR, LDS, {"tensor"}),
}
WAITS = {
    **{f"s_wait_{name}cnt 0x0": {name} for name in ("load", "store", "ds", "km")},
    **{f"s_wait_{name}cnt 0x0": {name} for name in ("async", "tensor", "x")},
    "s_wait_loadcnt_dscnt 0x0": {"load", "ds"},
    "s_wait_storecnt_dscnt 0x0": {"store", "ds"},
    "s_wait_idle": {"load", "store", "ds", "km", "async", "tensor"},
    "s_wait_alu 0x0": set(),
    "s_wait_loadcnt 0x1": set(),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_wait_covers_what_its_counters_count(operation: str, wait: str) -> None:
    issue, use, counters = OPERATIONS[operation]
    body = f"{issue}  {wait}\n{use}"
    arrays = [np.zeros(4096, np.uint32) for _ in range(4)]
    if counters <= WAITS[wait]:
        run(body, arrays, strict=True)
        return
    with pytest.raises(Fault, match=r"before its load has completed|before it has been read"):
        run(body, arrays, strict=True)
