"""Waits, races and undefined values of gfx1250's copies between memory and LDS."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.copies import run
from fly_common.errors import Fault

LOAD = "  global_load_async_to_lds_b32 v250, v250, s[4:5]{}\n"
READ = "  ds_load_b32 v3, v250{}\n  s_wait_dscnt 0x0\n  global_store_b32 v250, v3, s[8:9]\n"
FILL = "  ds_store_b32 v250, v250\n  s_wait_dscnt 0x0\n"
OTHER = "  ds_store_b32 v250, v0\n  s_wait_dscnt 0x0\n"
STORE = "  global_store_async_from_lds_b32 v250, v250, s[8:9]\n"
NONE, ONE, NO_TENSOR = (
    f"  s_wait_{name}\n" for name in ("asynccnt 0x0", "asynccnt 0x1", "tensorcnt 0x0")
)
# Two rows of 32 dwords, side by side.
DESCRIPTOR = """
  s_mov_b32 s12, 1
  s_mov_b32 s13, 0
  s_mov_b32 s14, s4
  s_or_b32 s15, s5, 0x80000000
  s_mov_b32 s16, 0x20000
  s_mov_b32 s17, 0x200000
  s_mov_b32 s18, 0x20000
  s_mov_b32 s19, 0x200000
  s_mov_b32 s20, 2
  s_mov_b32 s21, 32
  s_mov_b32 s22, 0
  s_mov_b32 s23, 0
"""
TO_LDS = "  tensor_load_to_lds s[12:15], s[16:23]\n"
FROM_LDS = "  tensor_store_from_lds s[12:15], s[16:23]\n"
BOTH = FILL + FILL.replace("v250, v250", "v250, v250 offset:128")


def execute(body: str) -> None:
    run(body, [np.zeros(4096, np.uint32) for _ in range(4)], strict=True)


@pytest.mark.parametrize(
    "body",
    [
        LOAD.format("") + NONE + READ.format(""),
        LOAD.format("") + LOAD.format(" offset:128") + ONE + READ.format(""),
        FILL + STORE + NONE + OTHER,
        DESCRIPTOR + TO_LDS + NO_TENSOR + READ.format(" offset:128"),
        DESCRIPTOR + BOTH + FROM_LDS + NO_TENSOR + OTHER,
    ],
)
def test_right(body: str) -> None:
    execute(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LOAD.format("") + READ.format(""), "before its load has completed"),
        (LOAD.format("") + "  s_wait_loadcnt 0x0\n" + READ.format(""), "before its load has"),
        (
            LOAD.format("") + LOAD.format(" offset:128") + ONE + READ.format(" offset:128"),
            "byte 0x80 of LDS is used before its load has completed",
        ),
        (FILL + STORE + OTHER + NONE, "overwritten before it has been read"),
        (STORE + NONE, "never stored"),
        (DESCRIPTOR + TO_LDS + READ.format(""), "before its load has completed"),
        (DESCRIPTOR + TO_LDS + NONE + READ.format(" offset:128"), "byte 0x80 of LDS is used"),
        (DESCRIPTOR + BOTH + FROM_LDS + OTHER + NO_TENSOR, "overwritten before it has been read"),
        (DESCRIPTOR + FILL + FROM_LDS + NO_TENSOR, "never stored determines a stored value"),
        (DESCRIPTOR.replace("s20, 2", "s24, 2") + TO_LDS, "`s20`, which was never written"),
    ],
)
def test_wrong(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        execute(body)


@pytest.mark.parametrize("scales", ["v48, 0", "0, v48", "v48, v49"])
def test_no_source_says_what_a_constant_scale_is(scales: str) -> None:
    body = "".join(f"  v_mov_b32 v{number}, 0\n" for number in range(50))
    shape = "v[0:7], v[8:23], v[24:39], v[40:47]"
    body += f"  v_wmma_scale_f32_16x16x128_f8f6f4 {shape}, {scales}"
    if scales == "v48, v49":
        execute(body)
        return
    with pytest.raises(Fault, match="no public source specifies what the constant 0"):
        execute(body)
