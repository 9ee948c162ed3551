"""--strict: right kernels pass, each line that they need is missed, and what is told."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fly_common.errors import Fault

from .engine_support import assemble, compile_opencl, launch
from .strict_support import BARRIER, KERNELS, SET, WAIT, assembly, mutants, run

STRICT_TARGETS = ("gfx942", "gfx1100", "gfx1201")


@pytest.mark.parametrize("target", STRICT_TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_right_kernels_pass(kernel: str, target: str) -> None:
    """More of them are in tests/kernels/test_alarms.py."""
    assert run("\n".join(assembly(kernel, target, "-O3")), target) is None


@pytest.mark.parametrize("target", STRICT_TARGETS)
@pytest.mark.parametrize(
    ("what", "told"),
    [
        (WAIT, r"before its load has arrived|LDS race"),
        # Without a barrier a wave may meet bytes that nobody has stored yet.
        (BARRIER, r"LDS race|LDS that was never stored|barrier that the wave has not signalled"),
        (SET, r"uninitialised value"),
    ],
    ids=["wait", "barrier", "initialisation"],
)
def test_lines_left_out_are_found(what: re.Pattern[str], told: str, target: str) -> None:
    """All of them but waits before a cache is invalidated, which gfx1201 has. Without optimisation
    many waits cover nothing, so the kernels are -O3's."""
    made = list(mutants(what, target, "-O3"))
    missed = []
    for mutant in made:
        fault = run(mutant.text, target, max_instructions=200_000)
        if fault is None or not re.search(told, fault.message):
            missed.append(mutant)
    found = len(made) - len(missed)
    print(f"{target}: {found} of {len(made)} found ({found / len(made):.0%})")
    assert [mutant for mutant in missed if not mutant.invalidates] == []
    assert found >= 0.9 * len(made)


def told(source: str, **options: object) -> list[str]:
    code = compile_opencl(source, "gfx942", "-O3")
    with pytest.raises(Fault) as caught:
        launch(code, [np.zeros(256, "i4"), np.int32(0)], 1, 256, strict=True)
    return caught.value.render("fly-run").splitlines()


def test_what_a_missing_wait_is_told() -> None:
    lines = assembly("scale", "gfx942", "-O3")
    number = next(n for n, line in enumerate(lines) if "vmcnt(0)" in line)
    fault = run("\n".join([*lines[:number], *lines[number + 1 :]]), "gfx942")
    assert fault is not None
    assert re.fullmatch(
        r"`v\d+` is read before its load has arrived: pc 0x\w+ 'global_load_dword v\d+, [^']*'"
        r" loads it; kernel k pc 0x\w+ '[^']*' workgroup \(0, 0, 0\) wave 0",
        fault.message,
    )
    # Of the two loads the younger one may still be on its way.
    assert fault.hint == "s_waitcnt vmcnt(1) must come between"


def test_what_a_race_is_told() -> None:
    first, hint = told("""kernel void k(global int *A, int n) {
        local int s[256]; s[TID] = n; BARRIER; s[TID] = TID; A[TID] = s[255 - TID]; }""")
    assert re.match(
        r"fly-run: error: LDS race: byte 0x\w+ is stored by wave \d and loaded by wave \d, with"
        r" nothing that orders them; the other is pc 0x\w+ 'ds_read",
        first,
    ) or re.match(
        r"fly-run: error: LDS race: byte 0x\w+ is loaded by wave \d and stored by wave \d, with"
        r" nothing that orders them; the other is pc 0x\w+ 'ds_write",
        first,
    )
    assert hint == "  a barrier must come between; the earlier access must be waited for before it"


def test_two_lanes_at_one_byte() -> None:
    first, _ = told("""kernel void k(global int *A, int n) {
        volatile local int s[64]; s[TID / 2 % 2] = TID; A[TID] = s[0]; }""")
    assert "LDS race: lanes 0 and 1 of one store put different values at byte 0x0;" in first
    # The same value from all lanes is no race, nor are atomics.
    source = """kernel void k(global int *A, int n) {
        local int s[1]; if (TID < 64) s[0] = n; BARRIER;
        __opencl_atomic_fetch_add((local atomic_int *)s, 1, __ATOMIC_RELAXED,
            __OPENCL_MEMORY_SCOPE_WORK_GROUP);
        BARRIER; A[TID] = s[0]; }"""
    a = np.zeros(256, "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a, np.int32(5)], 1, 256, strict=True)
    assert (a == 261).all()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("local int s[256]; if (n) s[TID] = 1; A[TID] = s[TID];", "LDS that was never stored"),
        (
            "volatile int p[4]; if (n) p[0] = 1; A[TID] = p[0];",
            "private memory that was never stored",
        ),
        ('int v; __asm__ volatile("" : "=v"(v)); A[TID] = v;', "was never written, decides what"),
    ],
)
def test_uninitialised_memory(source: str, message: str) -> None:
    first, hint = told(f"kernel void k(global int *A, int n) {{ {source} }}")
    assert "uninitialised value" in first
    assert message in first
    assert hint == "  a variable is read on a path that skips it"


def test_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = assembly("scale", "gfx942", "-O3")
    code = assemble("\n".join(line for line in lines if "vmcnt(0)" not in line), "gfx942")
    arguments = [np.zeros(512, "f4"), np.zeros(512, "f4"), np.int32(500)]
    launch(code, arguments, 2, 256)
    monkeypatch.setenv("FLY_STRICT", "1")
    with pytest.raises(Fault, match="before its load has arrived"):
        launch(code, arguments, 2, 256)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_rows_exchange_what_is_defined(target: str) -> None:
    """Even lanes of v are undefined: fetched by lanes of the other row, they matter."""
    source = """kernel void k(global int *A, int n) {{
        int v;
        __asm__ volatile("" : "=v"(v));
        if (TID & 1) v = TID;
        A[TID] = __builtin_amdgcn_permlanex16(TID, v, {low}, {low}, true, false); }}"""
    a = np.zeros(64, "i4")
    for low in ("0x11111111", "0x11111110"):
        code = compile_opencl(source.format(low=low), target, "-O1")
        if low.endswith("0"):
            with pytest.raises(Fault, match="lane 0"):
                launch(code, [a, np.int32(5)], 1, 64, strict=True)
        else:
            launch(code, [a, np.int32(5)], 1, 64, strict=True)
            assert a.tolist() == [(lane & -16 ^ 16) + 1 for lane in range(64)]
