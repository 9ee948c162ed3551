"""Accesses whose lanes follow each other, or have one address, are done at once where the last
region of their site holds them all: no list of addresses is made. That shows in no result, only in
time; here an observer looks whether the list was written."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from fly_run.devices.options import Options
from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.watch.observe import Launch, Wants, WaveView

from .access_support import (
    AT_ONCE,
    EDGE,
    HALF,
    LARGE,
    TARGETS,
    Bench,
    Form,
    Where,
    all_forms,
    batched,
    compiled,
    lanes_of,
)

SPACES = ("global", "flat", "lds")
OBSERVED = ("global_", "flat_", "ds_")
UNTOUCHED = 0x5A5A_5A5A_5A5A_5A5A


class ListOfAddresses:
    """An observer: whether an access wrote its lanes' addresses down."""

    def __init__(self) -> None:
        self.written = False

    def begin(self, launch: Launch) -> None:
        self.written = False

    def wants(self, instruction: Instruction) -> Wants:
        observed = instruction.mnemonic.startswith(OBSERVED)
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


def patterns(form: Form, lanes: int) -> Iterator[tuple[int, Where]]:
    """(bytes, where) of accesses that must be done at once: their lanes have all of those bytes,
    and no more."""
    size, first, last = form.size, 5, lanes - 4
    some = (1 << last + 1) - (1 << first) & ~(1 << 11)
    yield lanes * size, Where(size)
    if size == 4 and "v[2:3]" in form.text:  # another address's offset is not negative
        room = (last - first + 1) * size
        yield room, Where(size, -first * size & 0xFFFF_FFFF, some)
    if not form.writes and size >= 4:
        yield size, Where()
        yield size, Where(0, 0, some)


def slow(bench: Bench, number: int, form: Form, lanes: int, seen: ListOfAddresses) -> Iterator[str]:
    """Each launch comes twice: the first one finds the region."""
    for room, where in patterns(form, lanes):
        if not bench.works(number, room, where, where):
            yield f"{where}: a fault"
        elif seen.written:
            yield f"{where}: slow"
    if form.space == "lds":
        return
    # The low dword of an address is no signed number, but gfx1250's offset to a scalar base is.
    with bench.high(True) as low:
        where, base = Where(form.size, HALF - EDGE), low + HALF * bench.signed(form)
        if not (bench.ends(number, base, where, 0) and bench.ends(number, base, where, 0)):
            yield "high offsets: a fault"
        elif seen.written:
            yield "high offsets: slow"


@pytest.mark.parametrize(
    ("target", "spaces"),
    [
        *(pytest.param(one, (space,), id=f"{one}-{space}") for one in LARGE for space in SPACES),
        *(pytest.param(target, SPACES, id=target) for target in TARGETS if target not in LARGE),
    ],
)
def test_taken(target: str, spaces: tuple[str, ...]) -> None:
    wrong = []
    seen = ListOfAddresses()
    listed = [f for f in all_forms(target) if f.space in spaces and not f.atomic]
    for some in batched(listed, AT_ONCE):
        device = Emulator(target, Options(observers=(seen,)))
        bench = Bench(target, some, compiled(target, some), device)
        for number, form in enumerate(some):
            found = slow(bench, number, form, lanes_of(target), seen)
            wrong += [f"{form.text}: {what}" for what in found]
        device.close()
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])
