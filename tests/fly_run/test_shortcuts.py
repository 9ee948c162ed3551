"""Accesses whose lanes follow each other, or have one address, are done at once where the last
region of their site holds them all: no list of addresses is made. That shows in no result, only in
time; here an observer looks whether the list was written."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from fly_run.device import Options
from fly_run.emulator import state
from fly_run.emulator.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.observe import Launch, Wants, WaveView

from .access_support import (
    AT_ONCE,
    EDGE,
    HALF,
    TARGETS,
    Bench,
    Form,
    all_forms,
    batched,
    compiled,
    lanes_of,
)

SPACES = ("global", "flat")
UNTOUCHED = 0x5A5A_5A5A_5A5A_5A5A


class ListOfAddresses:
    """An observer: whether an access wrote its lanes' addresses down."""

    def __init__(self) -> None:
        self.written = False

    def begin(self, launch: Launch) -> None:
        self.written = False

    def wants(self, instruction: Instruction) -> Wants:
        observed = instruction.mnemonic.startswith(tuple(f"{space}_" for space in SPACES))
        return Wants.BEFORE | Wants.AFTER if observed else Wants.NOTHING

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        self._places(wave)[:] = [UNTOUCHED] * state.LANES

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        self.written = any(place != UNTOUCHED for place in self._places(wave))

    def end(self, executed: int, counts: object) -> None:
        pass

    @staticmethod
    def _places(wave: WaveView) -> ctypes.Array[ctypes.c_uint64]:
        return (ctypes.c_uint64 * state.LANES).from_address(wave.address + state.ADDRESS)


def patterns(form: Form, lanes: int) -> Iterator[tuple[int, int, int, int]]:
    """(bytes, stride, start, EXEC) of accesses that must be done at once: their lanes have all of
    those bytes, and no more."""
    size, first, last = form.size, 5, lanes - 4
    some = (1 << last + 1) - (1 << first) & ~(1 << 11)
    yield lanes * size, size, 0, -1
    if size == 4:
        yield (last - first + 1) * size, size, -first * size & 0xFFFF_FFFF, some
    if not form.writes and size >= 4:
        yield size, 0, 0, -1
        yield size, 0, 0, some


def slow(bench: Bench, number: int, form: Form, lanes: int, seen: ListOfAddresses) -> Iterator[str]:
    """Each launch comes twice: the first one finds the region."""
    for room, stride, start, active in patterns(form, lanes):
        memory = np.zeros(room, np.uint8)
        address = bench.device.bind("A", memory.ctypes.data, room, True)
        values = address, stride, start, active, 0
        if "v[2:3]" not in form.text and start:
            continue  # this address's offset is not negative
        if not (bench.ends(number, values, 0) and bench.ends(number, values, 0)):
            yield f"{values}: a fault"
        elif seen.written:
            yield f"{values}: slow"


@pytest.mark.parametrize("target", TARGETS)
def test_taken(target: str) -> None:
    wrong = []
    seen = ListOfAddresses()
    listed = [f for f in all_forms(target) if f.space in SPACES and not f.atomic]
    for some in batched(listed, AT_ONCE):
        device = Emulator(target, Options(observers=(seen,)))
        bench = Bench(target, some, compiled(target, some), device)
        arena = device._arena
        around = np.zeros(2 * EDGE, np.uint8)
        low = arena.reserve(3 * HALF) + HALF & -HALF
        arena.map("B", low + HALF - EDGE, around.ctypes.data, around.nbytes, True)
        for number, form in enumerate(some):
            found = list(slow(bench, number, form, lanes_of(target), seen))
            # The low dword of an address is no signed number.
            values = low, form.size, HALF - EDGE, -1, 0
            if not (bench.ends(number, values, 0) and bench.ends(number, values, 0)):
                found.append("high offsets: a fault")
            elif seen.written:
                found.append("high offsets: slow")
            wrong += [f"{form.text}: {what}" for what in found]
        device.close()
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])
