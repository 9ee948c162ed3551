"""What `--strict` says of clusters: signals of their barrier, what it orders, and multicasts."""

from __future__ import annotations

import pytest
from emulator_support.clusters import run
from fly_common.errors import Fault

FILL = "  v_lshlrev_b32 v2, 2, v1\n  ds_store_b32 v2, v1\n  s_wait_dscnt 0x0\n"
# Each wave reads what the next one has stored.
READ = """  v_xor_b32 v3, 0x80, v2
  ds_load_b32 v4, v3
  s_wait_dscnt 0x0
"""
OWN = "  s_barrier_signal -1\n  s_barrier_wait -1\n"
FIRST = "  s_cmp_lg_u32 s6, 0\n  s_cbranch_scc1 {0}\n  s_barrier_signal -3\n{0}:\n"
WAIT = "  s_barrier_wait -3\n"
LOAD = "  cluster_load_b32 v4, v2, s[4:5]\n  s_wait_loadcnt 0x0\n"
COPY = "  cluster_load_async_to_lds_b32 v2, v2, s[4:5]\n  s_wait_asynccnt 0x0\n"
LANE = "  v_lshlrev_b32 v2, 2, v1\n"
MASK = "  s_mov_b32 m0, {}\n"
TENSOR = """
  s_mov_b32 s12, 1
  s_mov_b32 s13, 0
  s_mov_b32 s14, s4
  s_or_b32 s15, s5, 0x80000000
  s_mov_b32 s16, {}
  s_mov_b32 s17, 0x200000
  s_mov_b32 s18, 0x20000
  s_mov_b32 s19, 0x200000
  s_mov_b32 s20, 2
  s_mov_b32 s21, 32
  s_mov_b32 s22, 0
  s_mov_b32 s23, 0
  tensor_load_to_lds s[12:15], s[16:23]
  s_wait_tensorcnt 0x0
"""


@pytest.mark.parametrize(
    "body",
    [
        FILL + OWN + FIRST.format("a") + WAIT + READ,
        MASK.format("3") + LANE + LOAD,
        MASK.format("0") + LANE + COPY,
        MASK.format("3") + LANE + COPY + COPY,
        "  s_lshl_b32 m0, 1, s7\n" + LANE + COPY,  # each for itself
        TENSOR.format("0x20003"),
        TENSOR.format("0x20000"),
    ],
)
def test_right(body: str) -> None:
    run(body, 2, 4, waves=2 if READ in body else 1, strict=True)


def test_the_barrier_orders_what_a_signalling_wave_has_done() -> None:
    """With one wave that stores and signals, and one that waits and reads."""
    body = f"""  v_lshlrev_b32 v2, 2, v1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 second
{FILL}  s_barrier_signal -3
  s_barrier_wait -3
  s_branch done
second:
  s_barrier_wait -3
{READ}done:"""
    run(body, 2, 2, waves=2, strict=True)
    with pytest.raises(Fault, match="LDS race: byte 0x0 is loaded by wave 1 and stored by wave 0"):
        run(body.replace("  s_wait_dscnt 0x0\n  s_barrier", "  s_barrier"), 2, 2, 2, strict=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # Wave 1's store is not ordered by wave 0's signal.
        (FILL + FIRST.format("a") + WAIT + READ, "LDS race"),
        ("  s_barrier_signal -3\n" * 2 + WAIT, "workgroup 0 of the cluster signals .* again"),
        (MASK.format("4") + LANE + LOAD, "0x4, names workgroups beyond the 2 of the cluster"),
        (MASK.format("1") + LANE + LOAD, "does not name the workgroup itself, number 1"),
        (LANE + LOAD, "`m0`, which was never written, determines which workgroups"),
        (
            MASK.format("3") + LANE + "  s_cmp_eq_u32 s7, 0\n  s_cbranch_scc1 no\n" + COPY + "no:",
            "workgroup 1 of the cluster asks for, but workgroup 0 does not, or less often: pc 0x",
        ),
        (
            MASK.format("3") + LANE + "  s_lshl_b32 s9, s7, 2\n  v_add_nc_u32 v2, s9, v2\n" + COPY,
            "does not, or less often",
        ),
        (TENSOR.format("0x20007"), "0x7, names workgroups beyond the 2"),
        (TENSOR.format("0x20001"), "does not name the workgroup itself, number 1"),
        (
            TENSOR.format("0x20003").replace("s_mov_b32 s13, 0", "s_lshl_b32 s13, s7, 2"),
            "a multicast with the mask 0x3 that workgroup",
        ),
    ],
)
def test_wrong(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        run(body, 2, 2, waves=2 if READ in body else 1, strict=True)


@pytest.mark.parametrize("mask", ["1", "3"])
def test_a_multicast_outside_of_a_cluster(mask: str) -> None:
    run(MASK.format("0") + LANE + LOAD, 1, 2, strict=True)
    with pytest.raises(Fault, match=f"0x{mask}, is not 0 outside of a cluster"):
        run(MASK.format(mask) + LANE + LOAD, 1, 2, strict=True)


def test_stores_ignore_the_mask() -> None:
    body = TENSOR.format("0x20008").replace("load_to", "store_from")
    fill = "  v_lshlrev_b32 v2, 3, v1\n  ds_store_b64 v2, v[0:1]\n  s_wait_dscnt 0x0\n"
    run(fill + body, 2, 2, strict=True)
