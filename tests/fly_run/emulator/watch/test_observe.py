"""Observers: what they are told, in which order, and that nobody else notices them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from emulator_support.engine import TARGETS, compile_opencl, launch
from fly_common.errors import Fault
from fly_run.devices.options import Options
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.watch.observe import Count, Enough, Launch, Wants, WaveView

# Lane l adds up a[0…l]: the loop's body runs with ever fewer lanes.
SOURCE = """kernel void k(global float *a, global float *b, int n) {
    float s = 0;
    for (int i = 0; i < n; i++)
        if (i <= TID) s += a[i];
    b[INDEX] = s; }"""


class Recorder:
    """Notes everything it is told."""

    def __init__(self, wants: Wants):
        self.wanted = wants
        self.heard: list[tuple[str, str, int]] = []
        self.launches: list[Launch] = []
        self.ends: list[tuple[int, Sequence[Count]]] = []

    def begin(self, launch: Launch) -> None:
        self.launches.append(launch)

    def wants(self, instruction: Instruction) -> Wants:
        return self.wanted

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        self.heard.append(("before", instruction.mnemonic, wave.exec_mask))

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        self.heard.append(("after", instruction.mnemonic, wave.exec_mask))

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        self.ends.append((executed, counts))


def observed(
    observer: object, source: str, arguments: list, grid: int = 2, block: int = 128, **more
):
    target = more.pop("target", "gfx942")
    code = compile_opencl(source, target, more.pop("level", "-O3"))
    device = Emulator(target, Options(observers=(observer,), **more))
    return launch(code, arguments, grid, block, device=device)


def sums(grid: int = 2, block: int = 128) -> tuple[list, np.ndarray]:
    a = np.arange(1, 65, dtype="f4")
    b = np.zeros(grid * block, "f4")
    right = np.tile(np.concatenate([np.cumsum(a)[:40], np.full(block - 40, a[:40].sum())]), grid)
    return [a, b, np.int32(40)], right


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "wants", [Wants.COUNT, Wants.BEFORE, Wants.AFTER, Wants.BEFORE | Wants.AFTER | Wants.COUNT]
)
def test_results_and_instruction_counts_are_those_of_an_unobserved_run(
    target: str, wants: Wants
) -> None:
    arguments, right = sums()
    plain = launch(compile_opencl(SOURCE, target, "-O3"), arguments, 2, 128)
    np.testing.assert_array_equal(arguments[1], right)
    arguments, _ = sums()
    recorder = Recorder(wants)
    device = observed(recorder, SOURCE, arguments, target=target)
    np.testing.assert_array_equal(arguments[1], right)
    assert device.instructions == plain.instructions
    ((executed, counts),) = recorder.ends
    assert executed == plain.instructions
    if Wants.COUNT in wants:
        assert sum(count.times for count in counts) == executed
    before = [kind for kind, *_ in recorder.heard if kind == "before"]
    assert len(before) == (executed if Wants.BEFORE in wants else 0)


def test_counts_are_those_of_calls() -> None:
    """Native counters against the view that Python gets of the same executions."""
    arguments, _ = sums()
    recorder = Recorder(Wants.BEFORE | Wants.COUNT)
    observed(recorder, SOURCE, arguments)
    ((_, counts),) = recorder.ends
    told: dict[str, list[int]] = {}
    for _, mnemonic, mask in recorder.heard:
        told.setdefault(mnemonic, []).append(mask)
    for mnemonic, masks in told.items():
        found = [count for count in counts if count.instruction.mnemonic == mnemonic]
        assert sum(count.times for count in found) == len(masks)
        assert sum(count.lanes for count in found) == sum(mask.bit_count() for mask in masks)
        full = (1 << 64) - 1
        assert sum(count.partial for count in found) == sum(mask != full for mask in masks)
        assert sum(count.idle for count in found) == sum(mask == 0 for mask in masks)
    # Lane l's loop body runs for i = 0…min(l, 39): in wave 0 of each of 2 workgroups 40 times
    # with 64 - i lanes, in wave 1 40 times with all.
    (body,) = [count for count in counts if count.instruction.mnemonic.startswith("v_add_f32")]
    assert body.times == 2 * 2 * 40
    assert body.lanes == 2 * (sum(64 - i for i in range(40)) + 40 * 64)
    assert body.partial == 2 * 39
    assert body.idle == 0


def test_waves_without_lanes_are_counted() -> None:
    source = """kernel void k(global int *out, int n) {
        int x = 0;
        for (int i = 0; i < n; i++)
            __asm__ volatile("s_mov_b64 exec, 0\\n v_add_u32 %0, %0, 1\\n s_mov_b64 exec, -1"
                         : "+v"(x));
        out[TID] = x; }"""
    recorder = Recorder(Wants.COUNT)
    observed(recorder, source, [np.zeros(64, "i4"), np.int32(3)], 1, 64)
    ((_, counts),) = recorder.ends
    (added,) = [count for count in counts if count.instruction.mnemonic.startswith("v_add_u32")]
    assert (added.times, added.lanes, added.partial, added.idle) == (3, 0, 3, 3)


def test_lanes_beyond_the_work_items_are_not_missed() -> None:
    arguments, _ = sums(1, 100)
    recorder = Recorder(Wants.COUNT)
    observed(recorder, SOURCE, arguments, 1, 100)
    ((_, counts),) = recorder.ends
    first = counts[0]
    assert (first.times, first.lanes, first.partial) == (2, 100, 0)


def test_a_view_shows_registers_and_memory() -> None:
    source = """kernel void k(global int *a) {
        local int s[64];
        s[TID] = 3 * TID;
        BARRIER;
        a[INDEX] = s[TID ^ 1]; }"""

    class Looks(Recorder):
        def after(self, wave: WaveView, instruction: Instruction) -> None:
            if instruction.mnemonic == "ds_read_b32":
                register = instruction.operands[0]
                seen.append((wave.group, wave.wave, wave.vgprs[register.index].copy()))
                lds.append(wave.lds.view("u4").copy())
                assert wave.active().all()

    seen: list = []
    lds: list = []
    observed(Looks(Wants.AFTER), source, [np.zeros(128, "i4")], 2, 64)
    assert [(group, wave) for group, wave, _ in seen] == [((0, 0, 0), 0), ((1, 0, 0), 0)]
    for (_, _, row), memory in zip(seen, lds, strict=True):
        np.testing.assert_array_equal(row, 3 * (np.arange(64) ^ 1))
        np.testing.assert_array_equal(memory, 3 * np.arange(64))


def test_a_view_may_be_written() -> None:
    class Changes(Recorder):
        def after(self, wave: WaveView, instruction: Instruction) -> None:
            if instruction.mnemonic.startswith("v_add_f32"):
                wave.vgprs[instruction.operands[0].index][:] = 0

    arguments, _ = sums()
    observed(Changes(Wants.AFTER), SOURCE, arguments)
    assert not arguments[1].any()


def test_an_observers_error_ends_the_launch_and_reaches_the_caller() -> None:
    class Refuses(Recorder):
        def before(self, wave: WaveView, instruction: Instruction) -> None:
            if instruction.mnemonic.startswith("v_add_f32"):
                raise Fault("not here")

    arguments, _ = sums()
    recorder = Refuses(Wants.BEFORE | Wants.COUNT)
    with pytest.raises(Fault, match="not here"):
        observed(recorder, SOURCE, arguments)
    ((executed, counts),) = recorder.ends
    assert executed == sum(count.times for count in counts)


def test_an_interruption_reaches_the_caller() -> None:
    class Interrupts(Recorder):
        def before(self, wave: WaveView, instruction: Instruction) -> None:
            raise KeyboardInterrupt

    arguments, _ = sums()
    with pytest.raises(KeyboardInterrupt):
        observed(Interrupts(Wants.BEFORE), SOURCE, arguments)


def test_each_launch_is_counted_by_itself() -> None:
    arguments, right = sums()
    recorder = Recorder(Wants.COUNT)
    device = observed(recorder, SOURCE, arguments)
    launch(compile_opencl(SOURCE, "gfx942", "-O3"), arguments, 2, 128, device=device)
    np.testing.assert_array_equal(arguments[1], right)
    (first, second) = recorder.ends
    assert first[0] == second[0]
    assert len(recorder.launches) == 2
    assert [count.times for count in first[1]] == [count.times for count in second[1]]


def test_who_has_had_enough_is_called_no_more_in_this_launch() -> None:
    class Tires(Recorder):
        def before(self, wave: WaveView, instruction: Instruction) -> None:
            super().before(wave, instruction)
            if len(self.heard) % 10 == 0:
                raise Enough

    tires, stays = Tires(Wants.BEFORE), Recorder(Wants.BEFORE)
    code = compile_opencl(SOURCE, "gfx942", "-O3")
    for observers in ((tires,), (tires, stays)):
        device = Emulator("gfx942", Options(observers=observers))
        for launches in (1, 2):
            tires.heard.clear()
            stays.heard.clear()
            arguments, right = sums()
            launch(code, arguments, 2, 128, device=device)
            np.testing.assert_array_equal(arguments[1], right)
            assert len(tires.heard) == 10, launches
            assert len(stays.heard) == (stays.ends[-1][0] if stays in observers else 0)


def test_several_observers_each_hear_what_they_want() -> None:
    one, two = Recorder(Wants.BEFORE), Recorder(Wants.AFTER | Wants.COUNT)
    arguments, _ = sums()
    code = compile_opencl(SOURCE, "gfx942", "-O3")
    device = Emulator("gfx942", Options(observers=(one, two)))
    launch(code, arguments, 2, 128, device=device)
    assert {kind for kind, *_ in one.heard} == {"before"}
    assert {kind for kind, *_ in two.heard} == {"after"}


def test_arithmetic_is_not_touched_by_python_in_between() -> None:
    """The wave rounds towards zero; what Python does between its instructions rounds as ever."""
    source = """kernel void k(global float *a) {
        __builtin_amdgcn_s_setreg(1 | (0 << 6) | (3 << 11), 15);
        a[INDEX] = a[INDEX] - 1e-10f; }"""

    class Divides(Recorder):
        def before(self, wave: WaveView, instruction: Instruction) -> None:
            got.add(float(np.float32(2.0) / np.float32(3.0)))

    got: set[float] = set()
    plain, seen = np.full(64, 2, "f4"), np.full(64, 2, "f4")
    launch(compile_opencl(source, "gfx942", "-O3"), [plain], 1, 64)
    observed(Divides(Wants.BEFORE), source, [seen], 1, 64)
    assert (plain < 2).all()
    np.testing.assert_array_equal(plain, seen)
    assert got == {float(np.float32(2.0) / np.float32(3.0))}
