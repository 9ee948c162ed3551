"""Probes of the addresses that only gfx1250 has: signed offsets to a scalar base, offsets that
count accesses (`scale_offset`), and FLAT instructions with a scalar base."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.memory import access, atomics, rdna_memory
from oracle.probes.loaded import ALL, FOLD, SOME, loaded, registers
from oracle.probes.probe import Probe
from oracle.probes.try_memory import _atomic_kind

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
FILL = ("global_store_dwordx4 v12, v[2:5], s[6:7]", WAIT)
RECORD, OPERANDS = 16, 32  # bytes of a lane's record, and of its operands
# Lanes before this one have negative offsets.
ZERO = 7
FAMILIES = ("global", "flat")


def _address(pair: str, each: int, size: int, stride: int, scaled: bool) -> tuple[str, ...]:
    """Sets s[36:37] and v16 to an address of `stride` bytes a lane from the wave's first datum, of
    which each lane has `each` bytes at the base `pair`."""
    low, high = pair
    unit = stride // size if scaled else stride
    return (
        f"s_mul_i32 s36, ttmp9, {32 * each}",
        f"s_add_u32 s36, s36, {ZERO * stride}",
        f"s_add_u32 s36, {low}, s36",
        f"s_addc_u32 s37, {high}, 0",
        "v_lshrrev_b32 v16, 4, v14",
        f"v_add_u32 v16, {-ZERO}, v16",
        f"v_mul_lo_u32 v16, v16, {unit}",
    )


def _forms() -> Iterator[tuple[str, bool, str]]:
    """Yields (family, whether the offset is scaled, the modifier)."""
    for family in FAMILIES:
        yield family, False, ""
        yield family, True, " scale_offset"


def addresses() -> list[Probe]:
    return [
        probe
        for family, scaled, modifier in _forms()
        for make in (_loads, _stores, _atomics)
        for probe in make(family, scaled, modifier)
    ] + [probe for scaled in (False, True) for probe in _local(scaled)]


def _strides(size: int) -> tuple[int, ...]:
    """Lanes that follow each other, and that are apart."""
    return (size, 2 * size) if 2 * size <= RECORD else (size,)


def _probe(kind: str, *lines: str, result: str = "b64", about: str) -> Probe:
    return Probe("\n  ".join(lines), (kind, kind, kind), result, about=about)


def _loads(family: str, scaled: bool, modifier: str) -> Iterator[Probe]:
    for name, (size, _, _) in access.LOADS.items():
        about = f"{family}_load_{name}"
        for stride in (0, *_strides(size)):  # 0: one address for all
            place = _address(("s4", "s5"), OPERANDS, size, stride, scaled)
            load = f"{about} {{}}, v16, s[36:37] offset:4{modifier}"
            yield _probe("64", *place, *loaded(size, load, WAIT), about=about)
        # Rows of sixteen lanes that follow each other, four accesses or 64 bytes apart.
        apart = ("v_lshrrev_b32 v17, 8, v14", f"v_lshl_add_u32 v16, v17, {2 if scaled else 6}, v16")
        place = (*_address(("s4", "s5"), OPERANDS, size, size, scaled), *apart)
        yield _probe("64", *place, *loaded(size, load, WAIT), about=about)


def _stores(family: str, scaled: bool, modifier: str) -> Iterator[Probe]:
    back = ("global_load_dwordx4 v[30:33], v12, s[6:7]", WAIT, *FOLD)
    for name, (size, _) in access.STORES.items():
        about = f"{family}_store_{name}"
        for stride in _strides(size):
            place = _address(("s6", "s7"), RECORD, size, stride, scaled)
            store = f"{about} v16, {registers(4, size)}, s[36:37]{modifier}"
            yield _probe("64", ALL, *place, *FILL, SOME, store, WAIT, ALL, *back, about=about)


def _atomics(family: str, scaled: bool, modifier: str) -> Iterator[Probe]:
    for name, atomic in (atomics.GLOBAL | rdna_memory.GLOBAL).items():
        about = f"{family}_atomic_{name}"
        wide = atomic.size == 8
        kind = "brain16" if name == "pk_add_bf16" else _atomic_kind(name, atomic)
        result = "2f16" if name == "pk_add_f16" else "b64"
        result = atomic.kind if atomic.kind[0] == "f" else result
        target = registers(8, atomic.size)
        operands = f"v16, {registers(4, atomic.size * atomic.sources)}, s[36:37]"
        place = (*_address(("s6", "s7"), RECORD, atomic.size, RECORD, scaled), *FILL)
        back = (WAIT, ALL, f"global_load_{'dwordx2' if wide else 'dword'} {target}, v12, s[6:7]")
        returning = f"{about} {target}, {operands}{modifier} {{rtn}}"
        for line, more in (
            (returning, ()),
            (returning, back),
            (f"{about} {operands}{modifier}", back),
        ):
            lines = (ALL, *place, SOME, line, *more, WAIT)
            yield _probe(kind, *lines, result=result, about=about)


def _local(scaled: bool) -> Iterator[Probe]:
    """FLAT instructions with a scalar base that is in LDS: v14 has 16 bytes a lane, or the lane's
    number counts accesses."""
    base = ("s_mov_b64 s[36:37], src_shared_base", "v_mov_b32 v16, v14")
    base = (*base, "v_lshrrev_b32 v16, 4, v16") if scaled else base
    where = "v16, {}s[36:37]" + " scale_offset" * scaled
    fill = ("ds_write_b64 v14, v[2:3]", "ds_write_b64 v14, v[4:5] offset:8", WAIT)
    for name, (size, _, _) in access.LOADS.items():
        about = f"flat_load_{name}"
        lines = loaded(size, f"{about} {{}}, {where.format('')}", WAIT)
        yield _probe("64", ALL, *base, *fill, SOME, *lines, about=about)
    back = ("ds_read_b64 v[30:31], v14", "ds_read_b64 v[32:33], v14 offset:8", WAIT, *FOLD)
    for name, (size, _) in access.STORES.items():
        about = f"flat_store_{name}"
        store = f"{about} {where.format(registers(4, size) + ', ')}"
        yield _probe("64", ALL, *base, *fill, SOME, store, WAIT, ALL, *back, about=about)
