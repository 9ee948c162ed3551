"""Barriers in LDS (gfx1250): arrivals of lanes, of copies and of tensor data moves, and waves that
poll for the next phase. The model here is of Python integers, after MLIR's documentation of
`amdgpu.ds_barrier_state`."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.clusters import run as run_waves
from emulator_support.copies import run
from fly_common.errors import Fault


def word(pending: int, phase: int, reload: int) -> int:
    return pending | phase << 29 | reload << 32


def arrived(state: int, update: int) -> int:
    """A count that would become negative starts again, and the phase goes down by one of eight."""
    pending, phase, reload = state % 2**29, state // 2**29 % 8, state // 2**32 % 2**16
    left = pending - update % 2**32
    return word(left, phase, reload) if left >= 0 else word(reload, (phase + 7) % 8, reload)


# s[4:5]: states, one a lane; s[6:7]: updates; s[8:9]: results; s[10:11]: what is in LDS after it.
EACH = """
  v_lshlrev_b32 v1, 3, v0
  v_dual_mov_b32 v6, 0 :: v_dual_mov_b32 v7, 0
  global_load_b64 v[2:3], v1, s[4:5]
  global_load_b64 v[4:5], v1, s[6:7]
  s_wait_loadcnt 0x0
  ds_store_b64 v1, v[2:3] offset:64
  s_wait_dscnt 0x0
  {arrive}
  s_wait_dscnt 0x0
  s_wait_asynccnt 0x0
  ds_load_b64 v[8:9], v1 offset:64
  s_wait_dscnt 0x0
  global_store_b64 v1, v[6:7], s[8:9]
  global_store_b64 v1, v[8:9], s[10:11]
"""
RETURNING = "ds_atomic_barrier_arrive_rtn_b64 v[6:7], v1, v[4:5] offset:64"
ASYNC = "ds_atomic_async_barrier_arrive_b64 v1 offset:64"
STATES = [
    *(
        word(pending, phase, reload)
        for pending in (0, 1, 5)
        for phase in (0, 1, 7)
        for reload in (0, 9)
    ),
    word(2**29 - 1, 3, 2**16 - 1),
    word(100, 4, 50),
    word(7, 6, 7),
]


def lanes(values: list[int]) -> np.ndarray:
    return np.resize(np.array(values, np.uint64), 32)


@pytest.mark.parametrize("shift", range(5))
def test_arrivals_with_a_count(shift: int) -> None:
    states = lanes(STATES)
    # The upper half of the update is ignored.
    updates = np.roll(lanes([1, 0, 2, 6, 101, 2**29, 2**32 - 1, 2**35 + 1, 100]), shift)
    results, after = np.zeros(32, np.uint64), np.zeros(32, np.uint64)
    run(EACH.format(arrive=RETURNING), [states, updates, results, after])
    assert results.tolist() == states.tolist()
    wanted = [arrived(int(s), int(u)) for s, u in zip(states, updates, strict=True)]
    assert after.tolist() == wanted


def test_arrivals_after_copies() -> None:
    states, after = lanes(STATES), np.zeros(32, np.uint64)
    run(EACH.format(arrive=ASYNC), [states, states.copy(), np.zeros(32, np.uint64), after])
    assert after.tolist() == [arrived(int(state), 1) for state in states]


@pytest.mark.parametrize("instruction", [RETURNING, ASYNC.replace("v1", "v12")])
def test_every_active_lane_arrives(instruction: str) -> None:
    """At one barrier, with the lanes of 0xf0f0f0f0 only."""
    body = EACH.replace(
        "  {arrive}",
        f"""  v_mov_b32 v12, 0
  v_mov_b32 v6, 0
  v_mov_b32 v7, 0
  s_mov_b32 exec_lo, 0xf0f0f0f0
  {instruction.replace("v1,", "v12,")}
  s_mov_b32 exec_lo, -1""",
    )
    states = lanes([word(10, 2, 20), *STATES])
    after, results = np.zeros(32, np.uint64), np.zeros(32, np.uint64)
    run(body, [states, np.ones(32, np.uint64), results, after])
    state, seen = int(states[0]), []
    for _ in range(16):
        seen.append(state)
        state = arrived(state, 1)
    assert state == word(15, 1, 20)
    assert int(after[0]) == state
    assert after[1:].tolist() == states[1:].tolist()
    if "rtn" in instruction:
        active = [0xF0F0F0F0 >> lane & 1 == 1 for lane in range(32)]
        assert results[active].tolist() == seen


@pytest.mark.parametrize("address", [4, 1 << 20])
def test_faults(address: int) -> None:
    body = f"  v_mov_b32 v12, {address}\n  ds_atomic_async_barrier_arrive_b64 v12"
    with pytest.raises(Fault, match="misaligned" if address == 4 else "LDS fault"):
        run(body, [np.zeros(64, np.uint32) for _ in range(4)])


def test_a_wave_polls_until_the_others_have_arrived() -> None:
    """Wave 0 waits for 3 · 32 lanes, then adds up what they have stored."""
    body = """  v_dual_mov_b32 v2, 95 :: v_dual_mov_b32 v3, 95
  v_mov_b32 v4, 0
  s_mov_b32 s10, exec_lo
  s_mov_b32 exec_lo, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 made
  ds_store_b64 v4, v[2:3]
made:
  s_mov_b32 exec_lo, s10
  s_wait_dscnt 0x0
  s_barrier_signal -1
  s_barrier_wait -1
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 waits
  v_lshlrev_b32 v5, 2, v1
  ds_store_b32 v5, v1 offset:64
  v_dual_mov_b32 v6, 1 :: v_dual_mov_b32 v7, 0
  ds_atomic_barrier_arrive_rtn_b64 v[8:9], v4, v[6:7]
  s_wait_dscnt 0x0
  s_branch done
waits:
  s_sleep 1
  ds_load_b64 v[2:3], v4
  s_wait_dscnt 0x0
  v_readfirstlane_b32 s11, v2
  s_bfe_u32 s11, s11, 0x1001d
  s_cmp_eq_u32 s11, 0
  s_cbranch_scc1 waits
  v_lshlrev_b32 v5, 2, v1
  ds_load_b32 v6, v5 offset:192
  ds_load_b32 v7, v5 offset:320
  ds_load_b32 v8, v5 offset:448
  s_wait_dscnt 0x0
  v_add3_u32 v6, v6, v7, v8
  global_store_b32 v5, v6, s[4:5]
done:"""
    words = run_waves(body, 1, 1, waves=4)
    assert words[:32].tolist() == [3 * lane + 32 + 64 + 96 for lane in range(32)]
