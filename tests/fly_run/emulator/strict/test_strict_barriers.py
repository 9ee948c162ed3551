"""What `--strict` says of barriers in LDS and of named barriers (gfx1250): the accesses that they
order, and those that they do not. A workgroup's waves run in ascending order, so a race with a
later wave is not seen in the results."""

from __future__ import annotations

import itertools

import pytest
from emulator_support.clusters import run
from fly_common.errors import Fault

OWN = "  s_barrier_signal -1\n  s_barrier_wait -1\n"
# v2: 4 times the lane; the words of barriers are at 0 and 8, data from 64 on. One lane arrives.
LANES = "  v_and_b32 v2, 31, v1\n  v_lshlrev_b32 v2, 2, v2\n"
ONE, ALL = "  s_mov_b32 exec_lo, 1\n", "  s_mov_b32 exec_lo, -1\n"


NUMBERS = itertools.count()  # of labels


def init(*counts: int) -> str:
    """Wave 0 stores barriers of so many arrivals."""
    stores = "".join(
        f"  v_mov_b32 v4, {count - 1}\n  v_mov_b32 v5, {count - 1}\n"
        f"  ds_store_b64 v10, v[4:5] offset:{8 * number}\n"
        for number, count in enumerate(counts)
    )
    made = f"made_{next(NUMBERS)}"
    return f"""{LANES}  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 {made}
{ONE}{stores}{ALL}  s_wait_dscnt 0x0
{made}:
"""


def arrive(barrier: int = 0, *, wait: bool = True) -> str:
    waits = "  s_wait_dscnt 0x0\n" if wait else ""
    return f"""{ONE}  v_dual_mov_b32 v6, 1 :: v_dual_mov_b32 v7, 0
  ds_atomic_barrier_arrive_rtn_b64 v[8:9], v10, v[6:7] offset:{8 * barrier}
{waits}{ALL}"""


def poll(barrier: int = 0, phase: int = 0) -> str:
    """Waits as long as the lowest bit of the phase is this."""
    name = f"poll_{next(NUMBERS)}"
    return f"""{name}:
  s_sleep 1
  ds_load_b32 v3, v10 offset:{8 * barrier}
  s_wait_dscnt 0x0
  v_readfirstlane_b32 s8, v3
  s_bfe_u32 s8, s8, 0x1001d
  s_cmp_eq_u32 s8, {phase}
  s_cbranch_scc1 {name}
"""


def each(*waves: str) -> str:
    """What each wave does."""
    body, end = "", f"end_{next(NUMBERS)}"
    for number, part in enumerate(waves):
        other = f"not_{next(NUMBERS)}"
        body += f"  s_cmp_lg_u32 s6, {number}\n  s_cbranch_scc1 {other}\n{part}"
        body += f"  s_branch {end}\n{other}:\n"
    return f"{body}{end}:\n"


STORE = "  ds_store_b32 v2, v1 offset:64\n  s_wait_dscnt 0x0\n"
EARLY = STORE.replace("  s_wait_dscnt 0x0\n", "")  # complete when the wave arrives: LDS is in order
LOAD = "  ds_load_b32 v3, v2 offset:64\n  s_wait_dscnt 0x0\n"
COPY = "  global_load_async_to_lds_b32 v2, v2, s[4:5] offset:64\n"
COPIED = f"{ONE}  ds_atomic_async_barrier_arrive_b64 v10\n{ALL}"
# 32 dwords to byte 64; bit 18: arrives at the barrier at 0.
TENSOR = """  s_mov_b32 s12, 1
  s_mov_b32 s13, 64
  s_mov_b32 s14, s4
  s_or_b32 s15, s5, 0x80000000
  s_mov_b32 s16, 0x60000
  s_mov_b32 s17, 0x200000
  s_mov_b32 s18, 0x10000
  s_mov_b32 s19, 0x200000
  s_mov_b32 s20, 1
  s_mov_b32 s21, 32
  s_mov_b32 s22, 0
  s_mov_b32 s23, 0
  tensor_load_to_lds s[12:15], s[16:23]
"""
SILENT = TENSOR.replace("0x60000", "0x20000")
ELSEWHERE = TENSOR.replace("s13, 64", "s13, 512")
TWICE = (  # a buffer that is filled again when it has been read
    STORE + arrive(0) + poll(1, 0) + STORE.replace("v1", "v2") + arrive(0),
    poll(0, 0) + LOAD + arrive(1) + poll(0, 1) + LOAD,
)
TWO, THREE = init(1, 1) + OWN, init(1, 1, 2) + OWN


@pytest.mark.parametrize("order", [1, -1], ids=["early", "late"])
@pytest.mark.parametrize(
    "waves",
    [
        (STORE + arrive(), poll() + LOAD),
        (EARLY + arrive(), poll() + LOAD),
        (COPY + COPIED, poll() + LOAD),
        (COPY + "  s_wait_asynccnt 0x0\n" + arrive(), poll() + LOAD),
        (TENSOR, poll() + LOAD),
        (SILENT + "  s_wait_tensorcnt 0x0\n" + arrive(), poll() + LOAD),
        (SILENT + ELSEWHERE, poll() + LOAD),  # moves are done in order
        (TENSOR + poll() + LOAD, ""),  # the wave's own copy
        (COPY + COPIED + poll() + LOAD, ""),
        TWICE,
        (STORE + arrive(), poll() + arrive(1), poll(1) + LOAD),  # through another wave
        (STORE + arrive(2), arrive(2) + poll(2) + LOAD),
        (LOAD.replace("load", "store").replace("v3, v2", "v2, v3") + arrive(), poll() + STORE),
    ],
    ids=lambda waves: "",
)
def test_ordered_by_barriers_in_lds(waves: tuple[str, ...], order: int) -> None:
    run(THREE + each(*waves[::order]), 1, 1, waves=len(waves), strict=True)


@pytest.mark.parametrize("order", [1, -1], ids=["early", "late"])
@pytest.mark.parametrize(
    "waves",
    [
        (STORE + arrive(), LOAD),
        (STORE + arrive(2), arrive(2) + LOAD),  # arrives, and does not wait
        (STORE + arrive(), poll(0, 1) + LOAD),  # waits for a phase that is complete from the start
        (STORE + arrive(), poll(1, 1) + LOAD),
        (STORE + arrive(), "  ds_load_b32 v3, v10\n  s_wait_dscnt 0x0\n" + LOAD),
        (arrive() + STORE, poll() + LOAD),
        (COPY + arrive(), poll() + LOAD),  # the copy may be late
        (SILENT + arrive(), poll() + LOAD),
        (ELSEWHERE + SILENT, poll() + LOAD),
        (COPIED + COPY, poll() + LOAD),
        (TWICE[0], poll(0, 0) + arrive(1) + LOAD),
        (STORE + arrive() + STORE, poll() + LOAD),
        (STORE + arrive(), poll() + arrive(1) + LOAD, poll(1) + STORE),
    ],
    ids=lambda waves: "",
)
def test_not_ordered_by_barriers_in_lds(waves: tuple[str, ...], order: int) -> None:
    with pytest.raises(Fault, match=r"LDS race: byte 0x[4-9a-f]. is"):
        run(THREE + each(*waves[::order]), 1, 1, waves=len(waves), strict=True)


def test_a_barrier_must_be_stored_before_it_is_used() -> None:
    body = THREE + each(STORE + arrive(), poll() + LOAD)
    with pytest.raises(Fault, match="a value from LDS that was never stored determines the memory"):
        run(body.replace("  ds_store_b64 v10, v[4:5] offset:0\n", ""), 1, 1, waves=2, strict=True)
    body = LANES + TENSOR
    with pytest.raises(Fault, match="never stored determines when a barrier in LDS is complete"):
        run(body, 1, 1, strict=True)


@pytest.mark.parametrize("use", [arrive(2), TENSOR], ids=["lanes", "copy"])
def test_another_wave_must_see_its_store_before_it_arrives(use: str) -> None:
    body = init(1, 1, 2) + each("", use)
    with pytest.raises(Fault, match=r"LDS race: byte 0x1?0 is changed by wave 1 and stored by"):
        run(body, 1, 1, waves=2, strict=True)


def test_a_barrier_that_is_stored_again_starts_again() -> None:
    """Phases that were complete before order nothing after."""
    again = OWN + init(1, 1, 2) + OWN
    body = THREE + each(STORE + arrive(), poll() + LOAD)
    body += again
    with_poll = each(arrive() + STORE.replace("v1", "v2"), poll() + LOAD)
    with pytest.raises(Fault, match="LDS race: byte 0x4"):
        run(body + with_poll, 1, 1, waves=2, strict=True)
    right = each(STORE.replace("v1", "v2") + arrive(), poll() + LOAD)
    run(body + right, 1, 1, waves=2, strict=True)


def test_a_wave_must_not_store_a_barrier_that_others_poll() -> None:
    store = "  v_dual_mov_b32 v4, 0 :: v_dual_mov_b32 v5, 0\n  ds_store_b64 v10, v[4:5]\n"
    once = "  ds_load_b32 v3, v10\n  s_wait_dscnt 0x0\n"
    for waves in ((arrive() + ONE + store + ALL, poll()), (once, arrive() + ONE + store + ALL)):
        with pytest.raises(Fault, match="LDS race: byte 0x0 is"):
            run(THREE + each(*waves), 1, 1, waves=2, strict=True)


def test_what_a_late_wave_is_shown_does_not_stay() -> None:
    """The results are those of a run without --strict: each wave's phases and pending counts."""
    note = "  v_lshlrev_b32 v7, 2, v1\n  global_store_b32 v7, v3, s[4:5]\n"
    load = "  ds_load_b32 v3, v10 offset:16\n  s_wait_dscnt 0x0\n"
    waves = (arrive(2) + arrive(2) + arrive(2), poll(2) + load + note)
    words = run(THREE + each(*waves), 1, 1, waves=2, strict=True)
    assert words.tolist() == run(THREE + each(*waves), 1, 1, waves=2).tolist()
    assert set(words[32:].tolist()) == {7 << 29}


# A named barrier of two waves, of three; s_barrier_init is in wave 0.
NAMED = f"""{LANES}  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 named
  s_mov_b32 m0, 0x20001
  s_barrier_init m0
named:
{OWN}"""
JOIN, SIGNAL, WAIT = "  s_barrier_join 1\n", "  s_barrier_signal 1\n", "  s_barrier_wait 1\n"
LEAVE = "  s_barrier_leave\n"
FIRST = SIGNAL.replace("signal", "signal_isfirst")
M0 = JOIN.replace(" 1", " m0").join(["  s_mov_b32 m0, 1\n", SIGNAL.replace(" 1", " m0")])


@pytest.mark.parametrize("order", [1, -1], ids=["early", "late"])
@pytest.mark.parametrize(
    "waves",
    [
        (JOIN + STORE + SIGNAL + WAIT, JOIN + SIGNAL + WAIT + LOAD),
        (JOIN + STORE + FIRST + WAIT, JOIN + FIRST + WAIT + LOAD),
        (STORE + SIGNAL, JOIN + SIGNAL + WAIT + LOAD),
        (STORE + M0 + WAIT, M0 + WAIT + LOAD),
        (JOIN + STORE + SIGNAL + WAIT + arrive(), JOIN + SIGNAL + WAIT, poll() + LOAD),
        (JOIN + STORE + SIGNAL + WAIT, JOIN + SIGNAL + WAIT + LOAD + LEAVE),
        (
            JOIN + (STORE + SIGNAL + WAIT) + SIGNAL + WAIT + STORE.replace("v1", "v2"),
            JOIN + (SIGNAL + WAIT + LOAD) + SIGNAL + WAIT,
        ),
    ],
    ids=lambda waves: "",
)
def test_ordered_by_named_barriers(waves: tuple[str, ...], order: int) -> None:
    run(THREE + NAMED + each(*waves[::order]), 1, 1, waves=len(waves), strict=True)


@pytest.mark.parametrize("order", [1, -1], ids=["early", "late"])
@pytest.mark.parametrize(
    "waves",
    [
        (JOIN + STORE + SIGNAL + WAIT, JOIN + SIGNAL + LOAD),
        (JOIN + SIGNAL + STORE + WAIT, JOIN + SIGNAL + WAIT + LOAD),
        (JOIN + EARLY + SIGNAL + WAIT, JOIN + SIGNAL + WAIT + LOAD),
        (JOIN + SIGNAL + WAIT, STORE + SIGNAL, LOAD),
        # A wave that leaves hands nothing over.
        (JOIN + SIGNAL + WAIT + LOAD, JOIN + STORE + LEAVE),
        (
            JOIN + (STORE + SIGNAL + WAIT) + SIGNAL + STORE.replace("v1", "v2") + WAIT,
            JOIN + (SIGNAL + WAIT) + LOAD + SIGNAL + WAIT,
        ),
    ],
    ids=lambda waves: "",
)
def test_not_ordered_by_named_barriers(waves: tuple[str, ...], order: int) -> None:
    with pytest.raises(Fault, match=r"LDS race: byte 0x[4-9a-f]. is"):
        run(THREE + NAMED + each(*waves[::order]), 1, 1, waves=len(waves), strict=True)


def test_the_number_of_a_named_barrier_must_be_defined() -> None:
    body = f"{OWN}{JOIN.replace(' 1', ' m0')}"
    with pytest.raises(Fault, match="`m0`, which was never written, determines which barrier"):
        run(body, 1, 1, strict=True)
