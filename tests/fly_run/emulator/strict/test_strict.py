"""--strict: right kernels pass, each line that they need is missed, and what is told."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulator_support.engine import assemble, compile_opencl, launch
from fly_common.errors import Fault

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
        (WAIT, r"before its load has completed|LDS race"),
        # Without a barrier a wave may meet bytes that nobody has stored yet.
        (BARRIER, r"LDS race|LDS that was never stored|barrier that the wave has not signaled"),
        (SET, r"uninitialized value"),
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
        r"`v\d+` is read before its load has completed: it is loaded by pc 0x\w+"
        r" 'global_load_dword v\d+, [^']*'; kernel k pc 0x\w+ '[^']*' workgroup \(0, 0, 0\) wave 0",
        fault.message,
    )
    # Of the two loads the younger one may still be on its way.
    assert fault.hint == "insert s_waitcnt vmcnt(1) between them"


def test_what_a_race_is_told() -> None:
    first, hint = told("""kernel void k(global int *A, int n) {
        local int s[256]; s[TID] = n; BARRIER; s[TID] = TID; A[TID] = s[255 - TID]; }""")
    assert re.match(
        r"fly-run: error: LDS race: byte 0x\w+ is stored by wave \d and loaded by wave \d,"
        r" without synchronization; the other is pc 0x\w+ 'ds_read",
        first,
    ) or re.match(
        r"fly-run: error: LDS race: byte 0x\w+ is loaded by wave \d and stored by wave \d,"
        r" without synchronization; the other is pc 0x\w+ 'ds_write",
        first,
    )
    assert hint == "  insert a barrier between them, and wait for the earlier access before it"


def test_two_lanes_at_one_byte() -> None:
    first, _ = told("""kernel void k(global int *A, int n) {
        volatile local int s[64]; s[TID / 2 % 2] = TID; A[TID] = s[0]; }""")
    assert "LDS race: lanes 0 and 1 of one store write different values to byte 0x0;" in first
    # The same value from all lanes is no race, nor are atomics.
    source = """kernel void k(global int *A, int n) {
        local int s[1]; if (TID < 64) s[0] = n; BARRIER;
        __opencl_atomic_fetch_add((local atomic_int *)s, 1, __ATOMIC_RELAXED,
            __OPENCL_MEMORY_SCOPE_WORK_GROUP);
        BARRIER; A[TID] = s[0]; }"""
    a = np.zeros(256, "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a, np.int32(5)], 1, 256, strict=True)
    assert (a == 261).all()


# Two waves at the first 64 dwords of LDS; `wave` is 0 or 1, `lane` 0 to 63.
SAME = "s[lane] = lane * n;"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"{SAME} BARRIER; A[TID] = s[63 - lane];", None),
        (f"{SAME} A[TID] = s[lane];", None),  # each wave has stored what it loads
        (f"{SAME} BARRIER; {SAME} A[TID] = s[lane];", None),
        ("s[lane] = TID; BARRIER; A[TID] = s[lane];", "stored by wave 1 and stored by wave 0"),
        (f"if (wave == 0) {SAME} A[TID] = s[lane];", "loaded by wave 1 and stored by wave 0"),
        # A store of another value ends what the waves had in common.
        (f"{SAME} BARRIER; if (wave) s[lane] = -1; BARRIER; A[TID] = s[lane];", None),
        (f"{SAME} BARRIER; if (wave) s[lane] = -1; A[TID] = s[lane];", "and loaded by wave 0"),
        (f"ADD; {SAME} A[TID] = s[lane];", "changed by wave 1 and stored by wave 0"),
    ],
)
def test_waves_that_store_the_same_value(body: str, found: str | None) -> None:
    body = body.replace("ADD", "__builtin_amdgcn_ds_faddf((local float *)s + lane, 1.0f, 0, 0, 0)")
    source = f"""kernel void k(global int *A, int n) {{
        volatile local int s[64]; int lane = TID % 64;
        int wave = __builtin_amdgcn_readfirstlane(TID / 64);
        if (wave == 0) s[lane] = 0; BARRIER; {body} }}"""
    code = compile_opencl(source, "gfx942", "-O1")
    arguments = [np.zeros(128, "i4"), np.int32(3)]
    if found is None:
        launch(code, arguments, 1, 128, strict=True)
        return
    with pytest.raises(Fault, match=found):
        launch(code, arguments, 1, 128, strict=True)


EARLY = r"byte 0x\w+ of LDS is used before its load has completed: it is loaded by"


@pytest.mark.parametrize(
    ("last", "between", "found"),
    [
        (63, "s_waitcnt vmcnt(0)", None),
        (63, "s_nop 0", EARLY),
        (63, "s_waitcnt lgkmcnt(0)", EARLY),
        (127, "s_waitcnt vmcnt(0)\\ns_barrier", None),
        (127, "s_barrier", "LDS race: byte 0x100 is loaded by wave 0 and stored by wave 1"),
    ],
)
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_loads_straight_to_lds(target: str, last: int, between: str, found: str | None) -> None:
    """Each wave brings 64 dwords there, and turns over its own (`last` 63) or all (127)."""
    source = f"""kernel void k(global int *A, int n) {{
        local int s[128]; int got, base = __builtin_amdgcn_readfirstlane(TID / 64) * 256;
        __asm__ volatile("s_mov_b32 m0, %1\\nglobal_load_lds_dword %2, off\\n{between}\\n"
            "ds_read_b32 %0, %3\\ns_waitcnt lgkmcnt(0)"
            : "=&v"(got) : "s"(base), "v"(A + TID), "v"(4 * (TID ^ {last})), "v"(s) : "memory");
        A[TID + 128] = got; }}"""
    code = compile_opencl(source, target, "-O1")
    a = np.arange(256, dtype="i4")
    if found is None:
        launch(code, [a, np.int32(3)], 1, 128, strict=True)
        np.testing.assert_array_equal(a[128:], np.arange(128) ^ last)
        return
    with pytest.raises(Fault, match=found):
        launch(code, [a, np.int32(3)], 1, 128, strict=True)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("local int s[256]; if (n) s[TID] = 1; A[TID] = s[TID];", "LDS that was never stored"),
        (
            "volatile int p[4]; if (n) p[0] = 1; A[TID] = p[0];",
            "private memory that was never stored",
        ),
        (
            'int v; __asm__ volatile("" : "=v"(v)); A[TID] = v;',
            "was never written, determines a stored",
        ),
    ],
)
def test_uninitialised_memory(source: str, message: str) -> None:
    first, hint = told(f"kernel void k(global int *A, int n) {{ {source} }}")
    assert "uninitialized value" in first
    assert message in first
    assert hint == "  a variable is read on a path that does not initialize it"


def test_private_offsets_wrap_around() -> None:
    """gfx90a adds -4 and 4 within the buffer access: that is the array's first element."""
    source = """kernel void k(global int *A, int n) {
        volatile int a[8]; a[0] = TID; A[TID] = a[n + 1]; }"""
    code = compile_opencl(source, "gfx90a", "-O3")
    a = np.zeros(256, "i4")
    launch(code, [a, np.int32(-1)], 1, 256, strict=True)
    np.testing.assert_array_equal(a, np.arange(256))
    with pytest.raises(Fault, match="private memory that was never stored"):
        launch(code, [a, np.int32(0)], 1, 256, strict=True)


def test_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = assembly("scale", "gfx942", "-O3")
    code = assemble("\n".join(line for line in lines if "vmcnt(0)" not in line), "gfx942")
    arguments = [np.zeros(512, "f4"), np.zeros(512, "f4"), np.int32(500)]
    launch(code, arguments, 2, 256)
    monkeypatch.setenv("FLY_STRICT", "1")
    with pytest.raises(Fault, match="before its load has completed"):
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


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_halves_exchange_what_is_defined(target: str) -> None:
    """v_permlane64 in a wave of 64 lanes: lane 5's datum arrives in lane 37."""
    source = """kernel void k(global int *A, int used) {
        int v, w;
        __asm__ volatile("" : "=v"(v));
        if (TID != 5) v = TID;
        __asm__ volatile("v_permlane64_b32 %0, %1" : "=v"(w) : "v"(v));
        if (TID != 37 - used) A[TID] = w; }"""
    code = compile_opencl(source, target, "-O1", "-mwavefrontsize64")
    a = np.zeros(64, "i4")
    launch(code, [a, np.int32(0)], 1, 64, strict=True)
    assert a.tolist() == [0 if lane == 37 else lane ^ 32 for lane in range(64)]
    with pytest.raises(Fault, match="lane 37"):
        launch(code, [a, np.int32(1)], 1, 64, strict=True)
