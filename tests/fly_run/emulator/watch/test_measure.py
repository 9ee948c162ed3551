"""Cache lines and LDS cycles: by hand, and by a brute-force count of random addresses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from fly_run.devices.options import Options
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.watch.measure import Measured
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView

TARGETS = ("gfx90a", "gfx942", "gfx950")

TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "uint2", 16: "uint4"}
LINE = {"gfx90a": 64, "gfx942": 128, "gfx950": 128}
LDS = 32 << 10


class Measures:
    """Keeps what was measured at the last launch."""

    def __init__(self) -> None:
        self.counts: Sequence[Count] = ()

    def begin(self, launch: Launch) -> None:
        pass

    def wants(self, instruction: Instruction) -> Wants:
        return Wants.MEASURE

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        pass

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        pass

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        self.counts = counts

    def of(self, prefix: str) -> Measured:
        (count,) = [c for c in self.counts if c.instruction.mnemonic.startswith(prefix)]
        (access,) = count.accesses
        return access


def measured(
    source: str, target: str, arguments: list, block: int = 64, level: str = "-O3"
) -> Measures:
    seen = Measures()
    device = Emulator(target, Options(observers=(seen,)))
    launch(compile_opencl(source, target, level), arguments, 1, block, device=device)
    return seen


def lds_read(target: str, size: int, addresses: np.ndarray) -> Measured:
    """A load of `size` bytes from the LDS addresses, one for each lane."""
    kind = TYPES[size]
    source = f"""kernel void k(global int *a, global {kind} *out) {{
        local char s[{LDS}];
        if (a[0] < 0) s[TID] = a[TID];
        out[TID] = *(local {kind} *)(s + a[TID]); }}"""
    out = np.zeros(64 * size, "u1")
    return measured(source, target, [addresses.astype("i4"), out], len(addresses)).of("ds_read")


def lds_write(target: str, size: int, addresses: np.ndarray) -> Measured:
    kind = TYPES[size]
    source = f"""kernel void k(global int *a, global {kind} *data, global char *out) {{
        local char s[{LDS}];
        *(local {kind} *)(s + a[TID]) = data[TID];
        BARRIER;
        out[TID] = s[TID]; }}"""
    arguments = [addresses.astype("i4"), np.zeros(64 * size, "u1"), np.zeros(64, "u1")]
    return measured(source, target, arguments, len(addresses)).of("ds_write")


def global_read(target: str, size: int, offsets: np.ndarray) -> Measured:
    """A load of `size` bytes at offsets into a buffer, which begins at a multiple of 256."""
    kind = TYPES[size]
    source = f"""kernel void k(global long *a, global char *data, global {kind} *out) {{
        out[TID] = *(global {kind} *)(data + a[TID]); }}"""
    data = np.zeros(1 << 16, "u1")
    arguments = [offsets.astype("i8"), data, np.zeros(64 * size, "u1")]
    seen = measured(source, target, arguments, len(offsets))
    name = {1: "ubyte", 2: "ushort", 4: "dword", 8: "dwordx2", 16: "dwordx4"}[size]
    found = [
        access
        for count in seen.counts
        for access in count.accesses
        if count.instruction.mnemonic == f"global_load_{name}" and access.direction == "load"
    ]
    # With 8 bytes the load of the offsets has the same name, and comes first.
    return found[-1]


LANES = np.arange(64)


@pytest.mark.parametrize(
    ("stride", "cycles"), [(0, 2), (1, 2), (2, 4), (3, 2), (4, 8), (16, 32), (32, 64), (33, 2)]
)
@pytest.mark.parametrize("target", TARGETS)
def test_dwords_by_stride(target: str, stride: int, cycles: int) -> None:
    """32 banks, 32 lanes at once: lanes whose dword numbers differ by a multiple of 32 / gcd with
    the stride meet; lanes that want the same dword share it."""
    found = lds_read(target, 4, 4 * stride * LANES)
    assert (found.space, found.direction, found.size, found.lanes) == ("LDS", "load", 4, 64)
    assert (found.units, found.ideal) == (cycles, 2)


@pytest.mark.parametrize(
    ("size", "target", "cycles"),
    [
        (8, "gfx942", 4),  # 16 lanes at once
        (16, "gfx942", 8),  # 8 lanes at once
        (8, "gfx950", 2),  # 64 banks
        (16, "gfx950", 4),
        (8, "gfx90a", 4),
    ],
)
def test_wide_loads_of_neighbours_meet_nowhere(size: int, target: str, cycles: int) -> None:
    found = lds_read(target, size, size * LANES)
    assert (found.units, found.ideal) == (cycles, cycles)


def test_rows_of_a_padded_and_of_an_unpadded_tile() -> None:
    """A column of float4s: rows of 128 bytes put every lane into the same four banks; with 16 bytes
    of padding the eight lanes of a phase have the 32 banks to themselves."""
    assert lds_write("gfx942", 16, 128 * LANES).units == 64
    assert lds_write("gfx942", 16, 144 * LANES).units == 8
    # A load's phases are other lanes: 0-3 and 20-23 are four banks apart, 16 rows and 4 banks on.
    assert lds_read("gfx942", 16, 128 * LANES).units == 64
    assert lds_read("gfx942", 16, 144 * LANES).units == 8


def test_lanes_that_take_no_part_cost_nothing() -> None:
    found = lds_read("gfx942", 4, 128 * np.arange(20))
    assert (found.units, found.ideal, found.lanes) == (20, 1, 20)


def by_hand(target: str, kind: str, size: int) -> list[list[int]]:
    """The phases, written out."""
    if kind == "load" and size == 16:
        pairs = [(0, 20), (4, 16), (8, 28), (12, 24), (32, 52), (36, 48), (40, 60), (44, 56)]
        groups = [[*range(a, a + 4), *range(b, b + 4)] for a, b in pairs]
        if target == "gfx950":
            return [groups[a] + groups[b] for a, b in ((0, 3), (1, 2), (4, 7), (5, 6))]
        return groups
    lanes = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[size]
    if target == "gfx950" and kind == "load" and size == 8:
        lanes = 32
    return [list(range(at, at + lanes)) for at in range(0, 64, lanes)]


def busy(target: str, kind: str, size: int, addresses: np.ndarray) -> int:
    banks = 64 if target == "gfx950" and kind == "load" and size in (8, 16) else 32
    total = 0
    for phase in by_hand(target, kind, size):
        wanted = {
            byte // 4
            for lane in phase
            if lane < len(addresses) and addresses[lane] >= 0
            for byte in range(addresses[lane] // 4 * 4, addresses[lane] + size, 4)
        }
        per_bank = [0] * banks
        for dword in wanted:
            per_bank[dword % banks] += 1
        total += max(per_bank)
    return total


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize("size", TYPES)
def test_random_lds_addresses_by_brute_force(target: str, size: int) -> None:
    rng = np.random.default_rng(size)
    for spread in (64, 1024, LDS):
        for lanes in (64, 37):
            addresses = rng.integers(0, (spread - size) // size + 1, lanes) * size
            found = lds_read(target, size, addresses)
            assert found.units == busy(target, "load", size, addresses)
    addresses = rng.permutation(256)[:64] * size
    assert lds_write(target, size, addresses).units == busy(target, "store", size, addresses)


@pytest.mark.parametrize("target", TARGETS)
def test_coalescing_by_hand(target: str) -> None:
    line = LINE[target]
    contiguous = global_read(target, 4, 4 * LANES)
    assert (contiguous.units, contiguous.ideal, contiguous.lanes) == (256 // line,) * 2 + (64,)
    every_line = global_read(target, 4, line * LANES)
    assert (every_line.units, every_line.ideal) == (64, 256 // line)
    strided = global_read(target, 4, 8 * LANES)
    assert (strided.units, strided.ideal) == (512 // line, 256 // line)
    same = global_read(target, 4, 0 * LANES)
    assert (same.units, same.ideal) == (1, 1)
    shifted = global_read(target, 16, 16 * LANES + 8)
    assert (shifted.units, shifted.ideal) == (1024 // line + 1, 1024 // line)
    backwards = global_read(target, 1, 63 - LANES)
    assert (backwards.units, backwards.ideal) == (1, 1)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("size", TYPES)
def test_random_global_addresses_by_brute_force(target: str, size: int) -> None:
    rng = np.random.default_rng(size)
    for spread, lanes in ((512, 64), (4096, 64), (60000, 50)):
        offsets = rng.integers(0, spread - size, lanes)
        found = global_read(target, size, offsets)
        lines = {byte // LINE[target] for at in offsets for byte in range(at, at + size)}
        assert found.units == len(lines)
        assert found.ideal == min(len(lines), -(-lanes * size // LINE[target]))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_random_buffer_addresses_by_brute_force(target: str) -> None:
    """Through a resource that begins 512 bytes into the data; lanes beyond its 2,000 bytes fetch
    nothing, nor do those that are not active."""
    source = """kernel void k(global int *a, global char *on, global char *data, global int *out) {
        __amdgpu_buffer_rsrc_t r =
            __builtin_amdgcn_make_buffer_rsrc(data + 512, 0, 2000, 0x27000);
        if (on[TID])
            out[TID] = __builtin_amdgcn_raw_buffer_load_b32(r, a[TID], 0, 0); }"""
    rng = np.random.default_rng(1)
    for _ in range(4):
        offsets, on = rng.integers(0, 700, 64) * 4, rng.random(64) < 0.7
        arguments = [offsets.astype("i4"), on.astype("u1"), np.zeros(1 << 12, "u1")]
        found = measured(source, target, [*arguments, np.zeros(64, "i4")]).of("buffer_load_dword")
        inside = offsets[on & (offsets < 2000)]
        assert found.units == len({(512 + int(at)) // LINE[target] for at in inside})
        assert found.lanes == len(inside)
        assert found.ideal == min(found.units, -(-len(inside) * 4 // LINE[target]))


def patterns(size: int) -> tuple[np.ndarray, np.ndarray]:
    """48 × 64 byte offsets, and which lanes take part: some that repeat, some moved by a constant
    that keeps their alignment or does not, some with other lanes active, some of lane 0 alone."""
    rng = np.random.default_rng(size)
    places, active = [], []
    for _ in range(8):
        one, part = rng.integers(0, 256, 64) * size, rng.random(64) < 0.7
        places += [one, one, one + 4 * size, one + 4, one + 64, one - one[0] + (128 - 4)]
        active += [part | True] * 4 + [part, LANES == 0]
    return np.stack(places), np.stack(active)


@pytest.mark.parametrize("size", [4, 16])
def test_patterns_that_come_again_moved_or_masked(size: int) -> None:
    """In LDS; and, every second time a byte on, by addresses of their own, by a common one with
    offsets, through a resource."""
    kind = TYPES[size]
    source = f"""kernel void k(global int *a, global int *on, global char *data, global char *more,
                              global {kind} *out, int n) {{
        local char s[{LDS}];
        if (n < 0) s[TID] = a[TID];
        __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(data, 0, {LDS}, 0x27000);
        {kind} sum = 0;
        __attribute__((opencl_unroll_hint(1))) for (int i = 0; i < n; i++) {{
            int at = a[64 * i + TID];
            if (on[64 * i + TID] & (at != -1)) {{
                sum += *(local {kind} *)(s + at);
                at += i & 1;
                sum += *(global {kind} *)(data + at);
                sum += *(global {kind} *)(more + (uint)at);
                sum += __builtin_amdgcn_raw_buffer_load_b{8 * size}(r, at, 0, 0);
            }}
        }}
        out[TID] = sum; }}"""
    tried, on = patterns(size)
    data = np.zeros(LDS, "u1")
    arguments = [tried.astype("i4"), on.astype("i4"), data, data.copy(), np.zeros(64 * size, "u1")]
    seen = measured(source, "gfx942", [*arguments, np.int32(len(tried))])
    local = seen.of("ds_read")
    cycles = lines = ideal = 0
    for number, (places, active) in enumerate(zip(tried, on, strict=True)):
        cycles += busy("gfx942", "load", size, np.where(active, places, -1))
        moved = places[active] + number % 2
        count = len({byte // 128 for at in moved for byte in range(at, at + size)})
        lines += count
        ideal += min(count, -(-int(active.sum()) * size // 128))
    assert (local.units, local.lanes) == (cycles, on.sum())
    name = {4: "load_dword", 16: "load_dwordx4"}[size]
    found = {
        count.instruction.text: count.accesses
        for count in seen.counts
        if count.instruction.mnemonic.endswith(f"_{name}") and count.lanes == on.sum()
    }
    assert sorted(", off" in text for text in found if text.startswith("global")) == [False, True]
    assert len(found) == 3
    for accesses in found.values():
        assert [(access.units, access.ideal) for access in accesses] == [(lines, ideal)]


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize(("stride", "cycles"), [(0, 1), (1, 1), (2, 2), (32, 32), (33, 1)])
def test_a_wave_of_32_is_one_phase(target: str, stride: int, cycles: int) -> None:
    """64 work items are two waves."""
    source = f"""kernel void k(global int *a, global int *out) {{
        local char s[{LDS}];
        if (a[0] < 0) s[TID] = a[TID];
        out[TID] = *(local int *)(s + a[TID]); }}"""
    addresses = 4 * stride * LANES
    seen = measured(source, target, [addresses.astype("i4"), np.zeros(64, "i4")])
    found = seen.of("ds_load")
    assert (found.units, found.ideal, found.lanes) == (2 * cycles, 2, 64)
    store = seen.of("global_store")
    assert (store.units, store.ideal, store.lanes) == (2, 2, 64)


def test_flat_accesses_are_told_apart_by_their_aperture() -> None:
    """At -O0 a generic pointer stays generic: half the lanes read LDS, the others global memory."""
    source = """kernel void k(global int *a, global int *out) {
        local int s[64];
        s[TID] = TID;
        BARRIER;
        int *p = TID < 24 ? (int *)s : (int *)a;
        out[TID] = p[TID]; }"""
    out = np.zeros(64, "i4")
    seen = measured(source, "gfx942", [np.arange(64, dtype="i4"), out], level="-O0")
    np.testing.assert_array_equal(out, np.arange(64))
    found = [
        access
        for count in seen.counts
        for access in count.accesses
        if count.instruction.mnemonic == "flat_load_dword" and access.shared
    ]
    assert [(access.shared, access.lanes) for access in found] == [(24, 40)]
    private = [a for c in seen.counts for a in c.accesses if a.space == "private" or a.private]
    assert private  # -O0 keeps variables in private memory


def test_flat_lanes_by_aperture_and_line() -> None:
    """Lanes go to LDS, to private memory, to global memory or nowhere, as they are told."""
    source = """kernel void k(global int *kind, global int *at, global int *a, global int *out) {
        local int s[512];
        int own[512];
        s[TID] = own[TID] = 0;
        int *p = kind[TID] == 0 ? (int *)s : kind[TID] == 1 ? own : (int *)a;
        if (kind[TID] < 3) out[TID] = p[at[TID]]; }"""
    rng = np.random.default_rng(5)
    for kind in (*rng.integers(0, 4, (3, 64)), np.array([2, 0, 1, *[3] * 61])):
        at = rng.integers(0, 512, 64)
        arguments = [kind.astype("i4"), at.astype("i4"), np.zeros(512, "i4"), np.zeros(64, "i4")]
        seen = measured(source, "gfx942", arguments, level="-O0")
        (found,) = [
            access
            for count in seen.counts
            for access in count.accesses
            if access.shared and access.private
        ]
        told = (found.shared, found.private, found.lanes)
        assert told == tuple((kind == number).sum() for number in range(3))
        assert found.units == len(set(at[kind == 2] * 4 // 128))
        assert found.ideal == min(found.units, -(-found.lanes * 4 // 128))


@pytest.mark.parametrize("count", [32, 21])
@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize("space", ["global", "flat"])
def test_signed_offsets_from_a_scalar_address(space: str, unit: int, count: int) -> None:
    """gfx1250's: of bytes, or of data with `scale_offset`. A flat address may be in LDS."""
    asm = f"{space}_load_b32 %0, %1, %2 offset:8{' scale_offset' if unit > 1 else ''}"
    source = f"""kernel void k(global int *at, global int *a, global int *out, int lds, int n) {{
        local int s[512];
        s[TID] = at[TID];
        BARRIER;
        ulong p = (ulong)(lds ? (int *)s + 256 : (int *)a + 256);
        ulong high = (uint)__builtin_amdgcn_readfirstlane(p >> 32);
        p = high << 32 | (uint)__builtin_amdgcn_readfirstlane(p);
        int v = 0;
        if (TID < n) __asm__ volatile("{asm}\\n s_wait_loadcnt_dscnt 0" : "=v"(v)
            : "v"(at[TID]), "s"(p) : "memory");
        out[TID] = v; }}"""
    rng = np.random.default_rng(unit)
    for lds in (0, 1) if space == "flat" else (0,):
        at = rng.integers(-250, 200, 32)
        at = at if unit == 4 else at & -4
        data = np.arange(512, dtype="i4")
        arguments = [at.astype("i4"), data, np.zeros(32, "i4"), np.int32(lds), np.int32(count)]
        seen = measured(source, "gfx1250", arguments, block=32, level="-O1")
        (found,) = [
            access
            for one in seen.counts
            for access in one.accesses
            if "offset:8" in one.instruction.text and access.space == "global"
        ]
        places = 256 * 4 + 8 + at[:count] * unit
        if lds:
            assert (found.shared, found.lanes, found.units) == (count, 0, 0)
        else:
            np.testing.assert_array_equal(arguments[2][:count], data[places // 4])
            lines = len(set(places // 128))
            assert (found.shared, found.lanes, found.units) == (0, count, lines)


def test_two_reads_in_one_instruction_are_two_accesses() -> None:
    source = """kernel void k(global int *out) {
        local int s[256];
        s[TID] = TID; s[TID + 64] = 1;
        BARRIER;
        out[TID] = s[TID ^ 1] + s[(TID ^ 1) + 64]; }"""
    seen = measured(source, "gfx942", [np.zeros(64, "i4")])
    (count,) = [c for c in seen.counts if c.instruction.mnemonic.startswith("ds_read2")]
    assert [(a.units, a.ideal, a.lanes) for a in count.accesses] == [(2, 2, 64)] * 2
