"""Probes of raw buffer resources: lanes whose data follow each other and others, offsets from half
of the address space on, ranges that end within a wave or within an access.

Written in gfx9's spelling, for waves of 32 lanes and of 64.
"""

from __future__ import annotations

from oracle.memory import access
from oracle.probes.loaded import ALL, FOLD, SOME, loaded, registers
from oracle.probes.probe import Probe

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
FAR = 1 << 31
LAST = 700  # about the first lane that a limited range does not hold
EVERYTHING = 0xFFFFFFFF


def _resource(base: int, records: int, far: bool) -> tuple[str, ...]:
    """A resource in s[36:39] over s[base:base + 1]; `far`: it begins that far below."""
    if far:
        start = (f"s_sub_u32 s36, s{base}, {FAR:#x}", f"s_subb_u32 s37, s{base + 1}, 0")
    else:
        start = (f"s_mov_b32 s36, s{base}", f"s_mov_b32 s37, s{base + 1}")
    return (
        *start,
        "s_and_b32 s37, s37, 0xffff",
        f"s_mov_b32 s38, {records:#x}",
        "s_mov_b32 s39, 0x27000",
    )


def _offsets(shift: str, scale: int, far: bool) -> tuple[str, ...]:
    """Puts `scale` times the lane's number into v16: v13 or v14, shifted right."""
    lines = [f"v_lshrrev_b32 v16, {shift}", f"v_mul_u32_u24 v16, {scale}, v16"]
    if far:
        lines.append(f"v_or_b32 v16, {FAR:#x}, v16")
    return (ALL, *lines, SOME)


def _probe(about: str, *lines: str) -> Probe:
    return Probe("\n  ".join(lines), ("64", "64", "64"), about=about)


def raw_buffers() -> list[Probe]:
    return [*_loads(), *_shared(), *_stores(), *_one_place(), *_between()]


def _ranges(size: int, scale: int, far: bool) -> tuple[int, ...]:
    """The whole space; the end of a lane's datum, and parts of the next one."""
    begin, end = FAR if far else 0, LAST * scale
    parts = {0, size // 2, max(0, size - 1), 4 if size > 4 else 0}
    return (EVERYTHING, *(begin + end + part for part in sorted(parts)))


def _loads() -> list[Probe]:
    probes = []
    for name, (size, _, _) in access.LOADS.items():
        about = f"buffer_load_{name}"
        for scale, far in ((size, False), (size, True), (32, False), (32, True)):
            lane = _offsets("5, v13", scale, far)
            for number, records in enumerate(_ranges(size, scale, far)):
                where = "v16, s[36:39], 0 offen"
                if number % 2 and scale == 32:
                    where = "v16, s[36:39], s11 offen offset:9"
                if far and number == 0 and scale == size:
                    where += " offset:3"
                lines = (*_resource(4, records, far), "s_movk_i32 s11, 6", *lane)
                load = loaded(size, f"{about} {{}}, {where}", WAIT)
                probes.append(_probe(about, *lines, *load))
    return probes


def _shared() -> list[Probe]:
    """The same place for all lanes, or for some."""
    probes = []
    for name, (size, _, _) in access.LOADS.items():
        about = f"buffer_load_{name}"
        for where, records in (
            ("off, s[36:39], s11 offset:17", EVERYTHING),
            ("off, s[36:39], s11 offset:17", 17 + size),
            ("off, s[36:39], s11 offset:17", 16 + size),
            ("v15, s[36:39], 0 offen", 32 + size),
            ("v15, s[36:39], s11 offen", 31 + size),
        ):
            lines = (*_resource(4, records, False), "s_movk_i32 s11, 0x1230")
            load = loaded(size, f"{about} {{}}, {where}", WAIT)
            probes.append(_probe(about, *lines, *load))
    return probes


FILL = (ALL, "global_store_dwordx4 v12, v[4:7], s[6:7]", WAIT)
BACK = (WAIT, ALL, "global_load_dwordx4 v[30:33], v12, s[6:7]", WAIT, *FOLD)


def _stores() -> list[Probe]:
    """Into the wave's own records."""
    probes = []
    own = ("v_readfirstlane_b32 s40, v12", "v_add_u32 v16, s40, v16")
    for name, (size, _) in access.STORES.items():
        about = f"buffer_store_{name}"
        for scale, far in ((size, False), (size, True), (16, False), (16, True)):
            lane = (*_offsets("4, v14", scale, False)[:-1], *own)
            if far:
                lane += (f"v_or_b32 v16, {FAR:#x}, v16",)
            for number, part in enumerate((None, 0, size // 2, size - 1)):
                begin = FAR if far else 0
                # Within the 15th wave of 32 lanes.
                end = 14 * 512 + 11 * scale
                records = EVERYTHING if part is None else begin + end + part
                where = "v16, s[36:39], 0 offen"
                if number % 2 and size <= 8 and scale == 16:
                    where = "v16, s[36:39], s11 offen offset:3"
                head = (*FILL, *_resource(6, records, far), "s_movk_i32 s11, 5")
                data = registers(2, size)
                lines = (*head, ALL, *lane, SOME, f"{about} {data}, {where}", *BACK)
                probes.append(_probe(about, *lines))
    return probes


def _one_place() -> list[Probe]:
    """Without an offset in a register: the highest lane's datum remains."""
    probes = []
    for name, (size, _) in access.STORES.items():
        about = f"buffer_store_{name}"
        for records in (EVERYTHING, 8 + size, 7 + size):
            own = (ALL, "v_readfirstlane_b32 s40, v12", SOME, "s_add_u32 s36, s36, s40")
            carry = "s_addc_u32 s37, s37, 0"
            store = f"{about} {registers(2, size)}, off, s[36:39], s11 offset:3"
            lines = (*FILL, SOME, *_resource(6, records, False)[:3], *own, carry)
            lines += (*_resource(6, records, False)[3:], "s_movk_i32 s11, 5", store, *BACK)
            probes.append(_probe(about, *lines))
    return probes


def _between() -> list[Probe]:
    """Lanes whose data follow each other but for one lane, the first or the last ones among them;
    and in descending order."""
    probes = []
    orders = (
        "v_xor_b32 v17, 31, v17",
        "v_min_u32 v17, 30, v17",
        "v_max_u32 v17, 1, v17",
        "v_and_b32 v17, 0xef, v17",
        "v_mul_u32_u24 v17, 2, v17",
    )
    names = {"ubyte", "ushort", "dword", "dwordx2", "dwordx3", "dwordx4"}
    for name, (size, _, _) in access.LOADS.items():
        if name not in names:
            continue
        about = f"buffer_load_{name}"
        for order in orders:
            lane = (ALL, "v_lshrrev_b32 v17, 4, v14", order, f"v_mul_u32_u24 v16, {size}, v17")
            for records in (EVERYTHING, 14 * size + size // 2, 40 * size):
                lines = (*_resource(4, records, False), *lane, SOME)
                load = loaded(size, f"{about} {{}}, v16, s[36:39], 0 offen", WAIT)
                probes.append(_probe(about, *lines, *load))
    return probes
