"""Waves of 32 lanes run handlers of their own, where there are such. That shows in no result."""

from __future__ import annotations

import ctypes

import pytest
from emulator_support.engine import compile_opencl
from fly_run.emulator import state
from fly_run.emulator.coverage import coverage
from fly_run.emulator.isa.aliases import aliases_of
from fly_run.emulator.lowering.encode import Program
from fly_run.emulator.machine import Emulator
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.operation import SHORT, SHORT_KINDS

SOURCE = """kernel void k(global int *A, global int *B, int n) {
    local int s[512];
    s[TID] = A[INDEX];
    s[TID + 256] = 3;
    BARRIER;
    B[INDEX] = s[TID ^ 1] + s[(TID ^ 1) + 128]; }"""


def handlers_of(target: str, *more: str) -> set[str]:
    """The handlers that the micro-ops of a kernel call."""
    device = Emulator(target)
    function = device.load(compile_opencl(SOURCE, target, "-O3", *more)).function("k")
    names = {address: name for name, address in device._library.handlers.items()}
    return {names[address] for program in function.programs for address in addresses(program)}


def addresses(program: Program) -> list[int]:
    places = range(0, len(program.ops), state.OP_SIZE)
    return [ctypes.c_uint64.from_buffer(program.ops, at).value for at in places]


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201", "gfx1250"])
def test_a_short_wave(target: str) -> None:
    found = handlers_of(target)
    assert {f"ds_read_b32.v{SHORT}", f"ds_write_b32.v{SHORT}", f"fly_read_pair{SHORT}"} <= found
    assert any(name.startswith("global_store_dword.") for name in found)
    assert not {name for name in found if f"{name}{SHORT}" in found}
    # gfx1250's offsets to a scalar base have handlers for its waves only, without others.
    accesses = {n for n in found if n.startswith(("ds_", "global_")) and n[-2:] not in (".g", ".h")}
    assert all(name.endswith(SHORT) for name in accesses)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_a_wide_wave(target: str) -> None:
    more = () if target == "gfx942" else ("-mwavefrontsize64",)
    found = handlers_of(target, *more)
    assert {"ds_read_b32.v", "ds_write_b32.v", "fly_read_pair"} <= found
    assert not [name for name in found if name.endswith(SHORT)]


def test_signed_offsets_are_of_instructions_that_gfx1250_has() -> None:
    """Handlers of other instructions would be unused: those of gfx11's own compare-and-swap."""
    known = {aliases_of("gfx1250").get(name, name) for name in coverage("gfx1250").plain}
    signed, other = set(), set()
    for operation in table.operations().values():
        if operation.form in ("global", "flat"):
            kinds = {name.rpartition(".")[2] for name in operation.handlers}
            assert kinds.isdisjoint(SHORT_KINDS) or kinds > set(SHORT_KINDS)
            name = operation.mnemonic.removesuffix(".rtn")
            (other if kinds.isdisjoint(SHORT_KINDS) else signed).add(name)
    assert signed <= known
    assert other == {f"{space}_atomic_cmpswap_f32" for space in ("global", "flat")}
    assert other.isdisjoint(known)
