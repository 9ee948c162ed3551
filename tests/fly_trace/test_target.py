"""Programs that ask for their target, and what the wave's counters and scheduler are told."""

# ruff: noqa: F821  (extents are named by strings)

from typing import Any

import fly_llc
import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_trace.session.trace import trace_function
from fly_trace.signatures.signature import parse

import fly
import fly.expr as fx

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


@fly.kernel
def asking_kernel(A: fx.Tensor):
    generation = 9 if fx.rocdl.get_rocm_arch().startswith("gfx9") else 10
    A[fx.thread_idx.x] = A[fx.thread_idx.x] + generation


@fly.jit
def asking(A: fx.Tensor[fx.Int32, "n"]):
    asking_kernel(A).launch(grid=1, block=64)


@fly.kernel
def plain_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = 1


@fly.jit
def plain(A: fx.Tensor[fx.Int32, "n"]):
    plain_kernel(A).launch(grid=1, block=64)


def test_only_programs_that_ask_are_for_one_target():
    assert trace_function(plain, {}, target="gfx1201") == trace_function(plain, {})
    texts = {target: trace_function(asking, {}, target=target) for target in TARGETS}
    for target, text in texts.items():
        assert f'fly.target = "{target}"' in text
        assert ("constant 9 : i32" in text) == target.startswith("gfx9")


def test_no_target_where_one_is_asked_for():
    with pytest.raises(InputError, match="get_rocm_arch depends on the target") as refused:
        trace_function(asking, {})
    assert "--target gfx942" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="unknown target 'gfx943'") as unknown:
        trace_function(asking, {}, target="gfx943")
    assert "gfx942" in (unknown.value.hint or "")


def test_a_module_for_one_target_is_not_compiled_for_another():
    module = trace_function(asking, {}, target="gfx1201").encode()
    with pytest.raises(InputError, match="is for gfx1201, and can't be compiled for gfx942"):
        fly.run(fly.chain("gfx942"), module)


def test_each_target_gets_its_own_trace(monkeypatch):
    """Twice each: made, and found in the store by another function of the same source."""
    for target in ("gfx942", "gfx1201") * 2:
        monkeypatch.setenv("FLY_TARGET", target)
        numbers = np.zeros(64, np.int32)
        function = fly.jit(asking.function)
        function(numbers)
        assert function._dependencies.digest is not None, "traces are not kept"
        assert (numbers == (9 if target == "gfx942" else 10)).all()


@fly.kernel
def waiting_kernel(A: fx.Tensor, B: fx.Tensor):
    t = fx.thread_idx.x
    lds = fx.shared_array(fx.Int32, 64)
    lds[t] = A[t]
    fx.rocdl.s_waitcnt(expcnt=2)
    B[t] = 1
    fx.rocdl.s_waitcnt(vmcnt=17)
    B[t] = 2
    fx.rocdl.s_waitcnt(lgkmcnt=5)
    B[t] = 3
    fx.rocdl.s_waitcnt(vmcnt=3, lgkmcnt=4, expcnt=6)
    fx.barrier()
    B[t] = lds[63 - t]


@fly.jit
def waiting(A: fx.Tensor[fx.Int32, "n"], B: fx.Tensor[fx.Int32, "n"]):
    waiting_kernel(A, B).launch(grid=1, block=64)


# The counters as LLVM's assembler prints them, decoded from what was encoded here. (LLVM makes one
# wait of those that follow each other, and adds what the kernel's own data needs.)
FIELDS = ["expcnt(2)", "vmcnt(17)", "lgkmcnt(5)", "vmcnt(3) expcnt(6)"]
INSTRUCTIONS = ["s_wait_expcnt 0x2", "s_wait_loadcnt 0x11", "s_wait_dscnt 0x5", "s_wait_expcnt 0x6"]


def assembly(function: Any, target: str, *arguments: Any) -> list[str]:
    """The instructions and comments of the only kernel."""
    optimised = str(function.compile(*arguments, target=target).ir("opt.ll"))
    text = fly_llc.compile(optimised.encode(), fly_llc.Options(emit="asm"))
    body = text.decode().partition("; %bb.0:")[2].partition("s_endpgm")[0]
    return [line.strip() for line in body.splitlines() if line.strip()]


def in_order(wanted: list[str], lines: list[str]) -> bool:
    """Whether each of `wanted` is in a line behind that of the one before."""
    rest = iter(lines)
    return all(any(line.startswith(word) for line in rest) for word in wanted)


@pytest.mark.parametrize("target", TARGETS)
def test_waits_are_the_targets(target):
    lines = assembly(waiting, target)
    wanted = INSTRUCTIONS if target == "gfx1201" else [f"s_waitcnt {word}" for word in FIELDS]
    assert in_order(wanted, lines), lines
    a, b = np.arange(64, dtype=np.int32) ** 2, np.zeros(64, np.int32)
    waiting.compile(target=target)(a, b)
    np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize(
    ("generation", "target"), [("cdna3", "gfx942"), ("rdna3", "gfx1100"), ("rdna4", "gfx1201")]
)
def test_a_generations_own_wait_is_what_the_target_chooses(generation, target):
    @fly.kernel
    def kernel(named: fx.Constexpr[bool]):
        family = getattr(fx.rocdl, generation) if named else fx.rocdl
        family.s_waitcnt(vmcnt=3, lgkmcnt=2)

    @fly.jit
    def wait(named: fx.Constexpr[bool]):
        kernel(named).launch(grid=1, block=64)

    named, chosen = (
        trace_function(wait, parse(f"named = {named}"), locations=False, target=target)
        for named in (True, False)
    )
    assert named == chosen.replace(f'fly.target = "{target}", ', "")


@fly.kernel
def scheduled_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, product: fx.TiledMma, tell: fx.Constexpr
):
    thread = fx.thread_idx.x
    load = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
    store = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy_a = fx.make_tiled_copy_A(load, product).get_slice(thread)
    copy_b = fx.make_tiled_copy_B(load, product).get_slice(thread)
    copy_c = fx.make_tiled_copy_C(store, product).get_slice(thread)
    own = product.get_slice(thread)
    a, b, c = own.make_fragment_A(A), own.make_fragment_B(B), own.make_fragment_C(C)
    c.fill(0.0)
    fx.copy(load, copy_a.partition_S(A), copy_a.retile(a))
    fx.copy(load, copy_b.partition_S(B), copy_b.retile(b))
    tell()
    fx.gemm(product, c, a, b, c)
    fx.copy(store, copy_c.retile(c), copy_c.partition_D(C))


def words():
    fx.rocdl.s_setprio(3)
    fx.rocdl.sched_barrier(0x101)
    fx.rocdl.sched_mfma(1)
    fx.rocdl.sched_vmem(2)
    fx.rocdl.sched_dsrd(3)
    fx.rocdl.sched_dswr(4)
    fx.rocdl.sched_group_barrier(0x402, 5, 6)
    fx.rocdl.s_sleep(2)
    fx.rocdl.s_setprio(0)


def schedule():
    fx.rocdl.iglp_opt(1)


@fly.jit
def scheduled(
    A: fx.Tensor[fx.Float16, 16, 32],
    B: fx.Tensor[fx.Float16, 16, 32],
    C: fx.Tensor[fx.Float32, 16, 16],
    tell: fx.Constexpr,
):
    cdna = fx.rocdl.get_rocm_arch().startswith("gfx9")
    instruction = (fx.rocdl.MFMA if cdna else fx.rocdl.WMMA)(16, 16, 16, fx.Float16)
    product = fx.make_tiled_mma(fx.make_mma_atom(instruction), fx.make_layout((1, 1, 1), (0, 0, 0)))
    scheduled_kernel(A, B, C, product, tell).launch(grid=1, block=64 if cdna else 32)


# What LLVM's assembler prints of it: instructions, and comments for what is no instruction.
SAID = {
    words: [
        "s_setprio 3",
        "; sched_barrier mask(0x00000101)",
        "; sched_group_barrier mask(0x00000008) size(1) SyncID(0)",
        "; sched_group_barrier mask(0x00000020) size(2) SyncID(0)",
        "; sched_group_barrier mask(0x00000100) size(3) SyncID(0)",
        "; sched_group_barrier mask(0x00000200) size(4) SyncID(0)",
        "; sched_group_barrier mask(0x00000402) size(5) SyncID(6)",
        "s_sleep 2",
        "s_setprio 0",
    ],
    schedule: ["; iglp_opt mask(0x00000001)"],
}


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
@pytest.mark.parametrize("tell", SAID, ids=lambda tell: tell.__name__)
def test_what_the_scheduler_is_told_arrives(target, tell, monkeypatch):
    """One source for MFMA and WMMA; the schedule changes nothing of the product."""
    monkeypatch.setenv("FLY_TARGET", target)
    random = np.random.default_rng(3)
    a, b = (random.standard_normal((16, 32)).astype(np.float16) for _ in "AB")
    c = np.zeros((16, 16), np.float32)
    scheduled(a, b, c, tell)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8").T, rtol=1e-5, atol=5e-5)
    lines = assembly(scheduled, target, a, b, c, tell)
    assert sum(line.startswith(("v_mfma", "v_wmma")) for line in lines) == 2
    assert in_order(SAID[tell], lines), lines
