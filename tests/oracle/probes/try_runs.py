"""Probes of accesses whose lanes have consecutive addresses or a single one, which may be
vectorised. With all lanes active, and with some; in whole waves, and in groups of 16 lanes.

All lanes' bytes are compared afterwards, to detect writes by inactive lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from oracle.memory import access, lds
from oracle.probes.loaded import ALL, FOLD, SOME, loaded, registers
from oracle.probes.probe import Probe

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
# Offsets into a wave's 1,024 bytes, in v17, by element size: v14 is 16 · lane.
SHIFT = {1: 4, 2: 3, 4: 2, 8: 1, 16: 0}


def _run(size: int) -> tuple[str, ...]:
    if size == 12:
        return "v_lshrrev_b32 v17, 4, v14", "v_mul_u32_u24 v17, 12, v17"
    return (f"v_lshrrev_b32 v17, {SHIFT[size]}, v14",)


def _one(size: int) -> tuple[str, ...]:
    return "v_mov_b32 v17, v14", SOME, "v_mov_b32 v17, 16", ALL


def _one_of_sixteen(size: int) -> tuple[str, ...]:
    return ("v_and_b32 v17, 0x300, v14",)


def _run_of_sixteen(size: int) -> tuple[str, ...]:
    """Runs of dwords, 128 bytes apart."""
    start = ("v_and_b32 v17, 0x300, v14", "v_lshrrev_b32 v17, 1, v17")
    return (*start, "v_bfe_u32 v16, v14, 4, 4", "v_lshl_add_u32 v17, v16, 2, v17")


def _backwards(size: int) -> tuple[str, ...]:
    return (*_run(size), f"v_sub_u32 v17, {size * 31}, v17", "v_and_b32 v17, 0x3ff, v17")


# In registers, and in memory at s[6:7] + v16 and at v[20:21].
GLOBAL = (
    "v_sub_u32 v16, v12, v14",
    "v_add_u32 v16, v16, v17",
    "v_mov_b32_e32 v21, s7",
    "v_add_co_u32_e32 v20, vcc, s6, v16",
    "v_addc_co_u32_e32 v21, vcc, 0, v21, vcc",
)


def _load(about: str, size: int, place: tuple[str, ...], fill: str, text: str) -> Probe:
    lines = (ALL, *place, fill, WAIT, SOME, *loaded(size, text, WAIT))
    return Probe("\n  ".join(lines), ("64", "64", "64"), about=about)


def _store(about: str, size: int, place: tuple[str, ...], fill: str, text: str, back: str) -> Probe:
    lines = (ALL, *place, fill, WAIT, SOME, text.format(registers(2, size)), WAIT, ALL, back, WAIT)
    return Probe("\n  ".join((*lines, *FOLD)), ("64", "64", "64"), about=about)


def runs() -> list[Probe]:
    probes = []
    fill = "global_store_dwordx4 v12, v[4:7], s[6:7]"
    back = "global_load_dwordx4 v[30:33], v12, s[6:7]"
    for space, before, behind in (
        ("global", "v16, ", ", s[6:7]"),
        ("global", "v[20:21], ", ", off"),
        ("flat", "v[20:21], ", ""),
    ):
        address = before.removesuffix(", ")
        for name, (size, _, _) in access.LOADS.items():
            about = f"{space}_load_{name}"
            for where, offset in _patterns(size):
                text = f"{about} {{}}, {address}{behind}{offset}"
                probes.append(_load(about, size, (*where(size), *GLOBAL), fill, text))
        for name, (size, _) in access.STORES.items():
            about = f"{space}_store_{name}"
            for where in (_run, _run_of_sixteen) if size == 4 else (_run,):
                offset = " offset:4" if where is _run_of_sixteen else ""
                text = f"{about} {before}{{}}{behind}{offset}"
                probes.append(_store(about, size, (*where(size), *GLOBAL), fill, text, back))
    fill, back = "ds_write_b128 v14, v[4:7]", "ds_read_b128 v[30:33], v14"
    for name, (size, _, _) in lds.DS_LOADS.items():
        about = f"ds_read_{name}"
        for where, offset in _patterns(size):
            text = f"{about} {{}}, v17{offset}"
            probes.append(_load(about, size, where(size), fill, text))
    for name, (size, _) in lds.DS_STORES.items():
        about = f"ds_write_{name}"
        for where in (_run, _run_of_sixteen, _backwards) if size == 4 else (_run,):
            offset = " offset:4" if where is _run_of_sixteen else ""
            text = f"{about} v17, {{}}{offset}"
            probes.append(_store(about, size, where(size), fill, text, back))
    # Two runs at once, either of which may take the fast path.
    for first, second in ((0, 64), (1, 2)):
        text = f"ds_read2_b32 v[8:9], v17 offset0:{first} offset1:{second}"
        probes.append(_load("ds_read2_b32", 8, _run(4), fill, text))
    return probes


Place = Callable[[int], tuple[str, ...]]


def _patterns(size: int) -> list[tuple[Place, str]]:
    """Returns the places of a load, with the constant offset."""
    found: list[tuple[Place, str]] = [(_run, ""), (_backwards, "")]
    if size <= 12:
        found.append((_run, " offset:4"))
    if size >= 4:
        found += [(_one, ""), (_one, " offset:8"), (_one_of_sixteen, "")]
    if size == 4:
        found.append((_run_of_sixteen, ""))
    return found
