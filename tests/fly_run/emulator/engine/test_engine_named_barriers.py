"""Named barriers of gfx1250, and the signal that tells the first wave: workgroups of several waves,
each of which takes its own way through a kernel."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from emulator_support import frame
from emulator_support.engine import assemble, launch
from fly_common.errors import Fault, FlyError
from fly_common.programs import toolchain
from fly_image.amd.code_object import CodeObject

CODE = """  s_load_b64 s[4:5], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  v_readfirstlane_b32 s6, v1
  s_lshr_b32 s6, s6, 5
  v_and_b32 v2, 31, v1
  v_cmp_eq_u32 vcc_lo, 0, v2
  s_mov_b32 exec_lo, vcc_lo
  v_mov_b32 v10, 0
  s_wait_kmcnt 0x0
{body}
  s_endpgm"""


def number(members: int, barrier: int) -> str:
    return f"  s_mov_b32 m0, {members << 16 | barrier:#x}\n"


def note(value: str, place: str = "s6") -> str:
    """Stores a scalar at the word of a wave, or another."""
    return f"""  s_lshl_b32 s20, {place}, 2
  v_mov_b32 v11, s20
  v_mov_b32 v12, {value}
  global_store_b32 v11, v12, s[4:5]
"""


# The number of waves that have come here before, in s8.
TICKET = """  v_mov_b32 v12, 1
  global_atomic_add_u32 v13, v10, v12, s[4:5] th:TH_ATOMIC_RETURN
  s_wait_loadcnt 0x0
  v_readfirstlane_b32 s8, v13
"""
# How many have, without another.
LOOK = """  global_load_b32 v13, v10, s[4:5]
  s_wait_loadcnt 0x0
  v_readfirstlane_b32 s8, v13
"""


def run(body: str, waves: int, groups: int = 1, target: str = "gfx1250", **options: object):
    words = np.zeros(256, np.uint32)
    text = frame.kernel(target, CODE.format(body=body))
    launch(assemble(text, target), [words], groups, 32 * waves, max_instructions=100_000, **options)
    return words


OWN = "  s_barrier_signal -1\n  s_barrier_wait -1\n"


def initialized(members: int, barrier: int, told: str = "m0") -> str:
    """By the first wave, before the others go on."""
    return f"""  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 begin
{number(members, barrier)}  s_barrier_init {told}
begin:
{OWN}"""


@pytest.mark.parametrize("barrier", [1, 5, 16])
@pytest.mark.parametrize("constant", [False, True], ids=["m0", "constant"])
def test_some_waves_meet(barrier: int, constant: bool) -> None:
    """Waves 1 to 4 of eight meet, three times; the others do not come, and do not wait."""
    told = str(barrier) if constant else "m0"
    body = f"""{initialized(4, barrier, told)}
  s_sub_co_u32 s7, s6, 1
  s_cmp_gt_u32 s7, 3
  s_cbranch_scc1 done
{number(0, barrier)}  s_barrier_join {told}
  s_mov_b32 s9, 0
next:
{TICKET}  s_barrier_signal {told}
  s_barrier_wait 1
{LOOK}  s_lshl_b32 s10, s9, 3
  s_add_co_i32 s10, s10, s6
  s_add_co_i32 s10, s10, 8
{note("s8", "s10")}
  s_barrier_signal {told}
  s_barrier_wait 1
  s_add_co_i32 s9, s9, 1
  s_cmp_lt_u32 s9, 3
  s_cbranch_scc1 next
done:
"""
    words = run(body, 8)
    assert words[0] == 12
    seen = words[8:32].reshape(3, 8)
    assert (seen[:, 1:5] == np.array([[4], [8], [12]])).all()
    assert (seen[:, [0, 5, 6, 7]] == 0).all()


def test_a_signal_gives_the_number_of_members_and_need_not_wait() -> None:
    """One wave only signals; its number of members stays for later signals without one. Waves that
    have joined go past their wait at once if the barrier was complete before."""
    body = f"""{number(0, 3)}  s_barrier_join m0
{OWN}  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 others
{number(1, 3)}  s_barrier_signal m0
others:
{OWN}  s_barrier_wait 1
{note("7")}
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 done
  s_barrier_signal 3
  s_barrier_wait 1
{note("9")}
done:
"""
    np.testing.assert_array_equal(run(body, 2)[:2], [7, 9])


def test_the_first_signal_is_told() -> None:
    """Of three named ones, twice; and of the workgroup's own."""
    body = f"""{initialized(3, 2)}
{number(0, 2)}  s_barrier_join m0
  s_mov_b32 s9, 0
next:
  s_barrier_signal_isfirst {{0}}
  s_cselect_b32 s8, 1, 0
  v_mov_b32 v12, s8
  global_atomic_add_u32 v10, v12, s[4:5]
  s_barrier_wait {{1}}
  s_add_co_i32 s9, s9, 1
  s_cmp_lt_u32 s9, 2
  s_cbranch_scc1 next
{LOOK}  s_add_co_i32 s10, s6, 1
{note("s8", "s10")}
"""
    for signal, wait in (("m0", 1), ("2", 1), ("-1", -1)):
        words = run(body.format(signal, wait), 3)
        assert words[0] == 2, signal
        assert words[1:4].min() >= 1


def test_a_wave_that_leaves_is_not_waited_for() -> None:
    """Before the others signal, and after them."""
    for order in ("s_cmp_lg_u32 s6, 0", "s_cmp_eq_u32 s6, 0"):
        body = f"""{initialized(3, 1)}
  s_barrier_join 1
  {order}
  s_cbranch_scc1 stay
  s_cmp_gt_u32 s6, 1
  s_cbranch_scc1 stay
  s_barrier_leave
  s_branch done
stay:
  s_barrier_signal 1
  s_barrier_wait 1
{note("5")}
  s_barrier_signal 1
  s_barrier_wait 1
{note("6")}
done:
"""
        words = run(body, 3)
        left = 0 if "lg" in order else 1
        np.testing.assert_array_equal(words[:3], [0 if w == left else 6 for w in range(3)])


def test_the_last_that_does_not_come_leaves() -> None:
    """Wave 2 leaves when wave 1 has signalled, which completes the barrier, and wave 1 completes it
    alone. Wave 0, which has only joined, goes past its wait: it was complete since."""
    body = f"""{initialized(2, 1)}
  s_barrier_join 1
{OWN}  s_cmp_eq_u32 s6, 1
  s_cbranch_scc0 first
  s_barrier_signal 1
first:
{OWN}  s_cmp_eq_u32 s6, 2
  s_cbranch_scc0 second
  s_barrier_leave
second:
{OWN}  s_cmp_eq_u32 s6, 1
  s_cbranch_scc0 third
  s_barrier_wait 1
  s_barrier_signal 1
  s_barrier_wait 1
{note("5")}third:
{OWN}  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 done
  s_barrier_wait 1
{note("6")}done:
"""
    np.testing.assert_array_equal(run(body, 3)[:3], [6, 5, 0])


def test_the_last_member_leaves_and_nobody_has_signalled() -> None:
    """That does not complete the barrier: a wave that waits next does not go on."""
    body = f"""{initialized(1, 1)}
  s_barrier_join 1
{OWN}  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 leaves
{OWN}  s_barrier_wait 1
leaves:
  s_barrier_leave
{OWN}"""
    with pytest.raises(Fault, match=r"deadlock: .* 's_barrier_wait 1' .* wave 1"):
        run(body, 2)


def test_bits_of_m0_that_are_not_the_number() -> None:
    """Bit 6 and above, up to the members."""
    body = f"""{initialized(2, 0xFFC3)}
  s_mov_b32 m0, 0x43
  s_barrier_join m0
  s_barrier_signal m0
  s_barrier_wait 1
  s_barrier_signal_isfirst m0
  s_barrier_wait 1
{note("4")}"""
    np.testing.assert_array_equal(run(body, 2)[:3], [4, 4, 0])


def test_workgroups_have_their_own() -> None:
    """And each starts without members."""
    body = f"""{initialized(2, 1)}
  s_barrier_join 1
{TICKET}  s_barrier_signal 1
  s_barrier_wait 1
  s_lshl_b32 s10, ttmp9, 1
  s_add_co_i32 s10, s10, s6
  s_add_co_i32 s10, s10, 1
{note("1", "s10")}
"""
    words = run(body, 2, groups=20)
    assert words[0] == 40
    assert (words[1:41] == 1).all()
    with pytest.raises(Fault, match="a named barrier whose number"):
        run(
            "  s_cmp_eq_u32 ttmp9, 0\n  s_cbranch_scc1 first\n  s_barrier_join 1\n"
            "  s_barrier_signal 1\n  s_endpgm\nfirst:\n" + number(1, 1) + "  s_barrier_init m0\n",
            1,
            groups=2,
            threads=1,
        )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (number(2, 0) + "  s_barrier_init m0", "not 1 to 16"),
        (number(2, 17) + "  s_barrier_init m0", "not 1 to 16"),
        (number(0, 1) + "  s_barrier_init m0", "expects no signals"),
        (number(2, 17) + "  s_barrier_join m0", "not 1 to 16"),
        (number(0, 1) + "  s_barrier_signal m0", "expects no signals"),
        (number(2, 0) + "  s_barrier_signal m0", "not 1 to 16"),
        (number(2, 0) + "  s_barrier_signal_isfirst m0", "not 1 to 16"),
        (number(2, 17) + "  s_barrier_signal_isfirst m0", "not 1 to 16"),
        (number(0, 1) + "  s_barrier_signal_isfirst m0", "expects no signals"),
        ("  s_barrier_wait 1", "has not joined"),
        ("  s_barrier_leave", "has not joined"),
        ("  s_barrier_join 1\n  s_barrier_leave", "expects no signals"),
        (
            number(2, 1) + "  s_barrier_init m0\n  s_barrier_join 1\n  s_barrier_signal 1\n"
            "  s_barrier_wait 1",
            "deadlock: every wave of the workgroup that has not ended waits at a barrier;"
            ".* 's_barrier_wait 1' workgroup .0, 0, 0. wave 0",
        ),
    ],
)
def test_faults(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        run(body, 1)


LLVM_IR = """
@pair = internal addrspace(3) global target("amdgcn.named.barrier", 0) poison
@all = internal addrspace(3) global target("amdgcn.named.barrier", 0) poison
declare void @llvm.amdgcn.s.barrier.init(ptr addrspace(3), i32)
declare void @llvm.amdgcn.s.barrier.join(ptr addrspace(3))
declare void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3), i32)
declare void @llvm.amdgcn.s.barrier.wait(i16)
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)

define amdgpu_kernel void @k(ptr addrspace(1) %a) "amdgpu-flat-work-group-size"="128,128" {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %first = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %id)
  %wave = lshr i32 %first, 5
  %in = icmp ult i32 %wave, 2
  %mine = getelementptr i32, ptr addrspace(1) %a, i32 %id
  br i1 %in, label %meet, label %rest
meet:
  call void @llvm.amdgcn.s.barrier.join(ptr addrspace(3) @pair)
  store i32 7, ptr addrspace(1) %mine
  call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) @pair, i32 2)
  call void @llvm.amdgcn.s.barrier.wait(i16 1)
  %turned = xor i32 %id, 32
  %there = getelementptr i32, ptr addrspace(1) %a, i32 %turned
  %seen = load volatile i32, ptr addrspace(1) %there
  %sum = add i32 %seen, %id
  %out = getelementptr i32, ptr addrspace(1) %mine, i32 128
  store i32 %sum, ptr addrspace(1) %out
  br label %rest
rest:
  call void @llvm.amdgcn.s.barrier.join(ptr addrspace(3) @all)
  call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) @all, i32 4)
  call void @llvm.amdgcn.s.barrier.wait(i16 1)
  ret void
}
"""


def test_code_of_llvm() -> None:
    """LLVM numbers the barriers and arranges M0."""
    with tempfile.TemporaryDirectory() as folder:
        made, linked = Path(folder, "k.o"), Path(folder, "k.hsaco")
        options = ["-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx1250", "-filetype=obj", "-o", str(made)]
        done = toolchain.run_program("llc", options, LLVM_IR.encode())
        assert done.returncode == 0, done.stderr.decode()
        done = toolchain.run_program("ld.lld", ["-shared", str(made), "-o", str(linked)], None)
        assert done.returncode == 0, done.stderr.decode()
        code = CodeObject.parse(linked.read_bytes())
    words = np.zeros(256, np.uint32)
    launch(code, [words], 1, 128, max_instructions=100_000)
    np.testing.assert_array_equal(words[128:192], np.arange(64) + 7)


@pytest.mark.parametrize("text", ["s_barrier_signal 1", "s_barrier_wait 1", "s_barrier_join 1"])
def test_gfx1201_has_none(text: str) -> None:
    with pytest.raises(FlyError, match="named barrier"):
        run(f"  {text}", 1, target="gfx1201")


def test_numbers_that_are_no_barriers_are_refused() -> None:
    for text in ("s_barrier_signal -2", "s_barrier_join 17", "s_barrier_wait 2"):
        with pytest.raises(FlyError, match="barrier"):
            run(f"  {text}", 1)
