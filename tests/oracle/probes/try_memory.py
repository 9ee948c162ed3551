"""Probes of memory instructions: each width of load and store, each atomic operation."""

from __future__ import annotations

from oracle.memory import access, atomics, lds
from oracle.probes.loaded import ALL, SOME, loaded
from oracle.probes.probe import Probe


def memory() -> list[Probe]:
    """DS, GLOBAL, FLAT and SMEM: each width of load and store, each atomic operation.

    `{rtn}` is the modifier that makes an atomic return: sc0, or glc on gfx90a.
    """
    probes = []

    def add(kind: str, result: str, *lines: str, about: str = "") -> None:
        probes.append(Probe("\n  ".join(lines), (kind, kind, kind), result, about=about))

    wait = "s_waitcnt vmcnt(0) lgkmcnt(0)"
    for name, (size, _, _) in access.LOADS.items():
        for offset in (0, 2, 5):
            load = f"global_load_{name} {{}}, v13, s[4:5] offset:{offset}"
            add("64", "b64", *loaded(size, load, wait), about=f"global_load_{name}")
    for name, (size, _) in access.STORES.items():
        data = {8: "v[2:3]", 12: "v[2:4]", 16: "v[2:5]"}.get(size, "v2")
        for offset in (0, 4) if size <= 4 else (0,):
            add(
                "64",
                "b64",
                "global_store_dwordx4 v12, v[4:7], s[6:7]",
                wait,
                f"global_store_{name} v12, {data}, s[6:7] offset:{offset}",
                wait,
                ALL,
                "global_load_dwordx2 v[8:9], v12, s[6:7]",
                wait,
            )
    for name, (size, _, _) in lds.DS_LOADS.items():
        for offset in (0, 4 if size < 8 else 16):
            fill = f"ds_write_b128 v14, v[2:5] offset:{offset // 16 * 16}"
            load = f"ds_read_{name} {{}}, v14 offset:{offset}"
            add("64", "b64", fill, *loaded(size, load, wait), about=f"ds_read_{name}")
    for name, (size, _) in lds.DS_STORES.items():
        data = {8: "v[2:3]", 12: "v[2:4]", 16: "v[2:5]"}.get(size, "v2")
        store = f"ds_write_{name} v14, {data} offset:{4 if size <= 4 else 0}"
        add(
            "64",
            "b64",
            ALL,
            "ds_write_b128 v14, v[4:7]",
            SOME,
            store,
            ALL,
            "ds_read_b64 v[8:9], v14",
            wait,
        )
    for bits, one, two, target in (
        (32, "v2", "v4", "v[8:9]"),
        (64, "v[2:3]", "v[4:5]", "v[30:33]"),
    ):
        tail = () if bits == 32 else (wait, "v_mov_b32 v8, v30", "v_xor_b32 v9, v31, v33")
        unit = bits // 8
        for st, first, second in (("", 0, 8 // unit), ("", 8 // unit, 0), ("st64", 16 // unit, 1)):
            if st:
                first, second = 1024 // (64 * unit), 2048 // (64 * unit)
            where = f"offset0:{first} offset1:{second}"
            add(
                "64",
                "b64",
                f"ds_write2{st}_b{bits} v14, {one}, {two} {where}",
                f"ds_read2{st}_b{bits} {target}, v14 {where}",
                *(*tail, wait),
            )
    add("32", "b64", "ds_write_b32 v14, v2", "ds_read2_b32 v[8:9], v14 offset1:0", wait)

    for address in ("v14", "v15"):  # separate, and shared by lanes
        for name, atomic in atomics.DS.items():
            wide = atomic.kind.endswith("64")
            kind = _atomic_kind(name, atomic)
            data = ", ".join((["v[4:5]", "v[6:7]"] if wide else ["v4", "v6"])[: atomic.sources])
            fill = (ALL, f"ds_write_b64 {address}, v[2:3]", SOME)
            head, _, tail = name.rpartition("_")
            operation = f"{head}_rtn_{tail}"
            if wide:
                old = f"ds_{operation} v[8:9], {address}, {data}"
                new = f"ds_{name} {address}, {data}"
                result = atomic.kind if atomic.kind[0] == "f" else "b64"
                back = (ALL, f"ds_read_b64 v[8:9], {address}", wait)
                add(kind, result, *fill, old, wait)
                add(kind, result, *fill, old, wait, *back)
                add(kind, result, *fill, new, *back)
            else:
                result = "2f16" if "pk" in name else "2f32" if atomic.kind == "f32" else "b64"
                old = f"ds_{operation} v8, {address}, {data}"
                new = f"ds_{name} {address}, {data}"
                if result == "2f16":
                    back = (wait, ALL, f"ds_read_b32 v8, {address}", wait)
                    add(kind, result, *fill, old, wait)
                    add(kind, result, *fill, old, *back)
                    add(kind, result, *fill, new, *back)
                else:
                    back = (wait, ALL, f"ds_read_b32 v9, {address}", wait)
                    add(kind, result, *fill, old, *back)
                    add(kind, result, *fill, new, *back)
    flat = (
        "v_mov_b32_e32 v17, s7",
        "v_add_co_u32_e32 v16, vcc, s6, v12",
        "v_addc_co_u32_e32 v17, vcc, 0, v17, vcc",
    )
    local = (
        "s_mov_b64 s[28:29], src_shared_base",
        "v_mov_b32_e32 v17, s29",
        "v_mov_b32_e32 v16, v14",
    )
    for name, atomic in atomics.GLOBAL.items():
        wide = atomic.kind.endswith("64")
        kind = _atomic_kind(name, atomic)
        result = "2f16" if "pk" in name else atomic.kind if atomic.kind[0] == "f" else "b64"
        data = {(1, False): "v4", (2, False): "v[4:5]", (1, True): "v[4:5]", (2, True): "v[4:7]"}[
            (atomic.sources, wide)
        ]
        target, size = ("v[8:9]", "dwordx2") if wide else ("v8", "dword")
        fill = ("global_store_dwordx2 v12, v[2:3], s[6:7]", wait)
        back = (wait, ALL, f"global_load_{size} {target}, v12, s[6:7]", wait)
        old = f"global_atomic_{name} {target}, v12, {data}, s[6:7] {{rtn}}"
        add(kind, result, *fill, old, wait)
        add(kind, result, *fill, old, *back)
        add(kind, result, *fill, f"global_atomic_{name} v12, {data}, s[6:7]", *back)
        old = f"flat_atomic_{name} {target}, v[16:17], {data} {{rtn}}"
        add(kind, result, *flat, *fill, old, wait)
        add(kind, result, *flat, *fill, old, *back)
        add(kind, result, *flat, *fill, f"global_atomic_{name} v[16:17], {data}, off", *back)
    for names, prefix in ((access.LOADS, flat), (access.LOADS, local)):
        for name, (size, _, _) in names.items():
            if size > 8:
                continue
            fill = ("flat_store_dwordx2 v[16:17], v[2:3]", wait)
            load = f"flat_load_{name} {'v[8:9]' if size == 8 else 'v8'}, v[16:17]"
            add("64", "b64", *prefix, *fill, load, wait)
    return probes


def _atomic_kind(name: str, atomic: atomics.Atomic) -> str:
    """Returns the operands' type. The manuals do not specify minimum and maximum of signalling
    NaNs."""
    if "pk" in name:
        return "f16"
    if atomic.kind[0] != "f":
        return atomic.kind[1:]
    return f"tame{atomic.kind[1:]}" if name.startswith(("min", "max")) else atomic.kind


def scalar_loads() -> list[Probe]:
    probes = []
    for count, name in ((1, ""), (2, "x2"), (4, "x4"), (8, "x8"), (16, "x16")):
        target = f"s[36:{35 + count}]" if count > 1 else "s36"
        for offset in ("0x0", "0x40", "s11"):
            probes.append(
                Probe(
                    f"s_movk_i32 s11, 0x48\n  s_load_dword{name} {target}, s[4:5], {offset}\n"
                    f"  s_waitcnt lgkmcnt(0)\n  s_mov_b32 s16, s36\n  s_mov_b32 s17, s{35 + count}",
                    ("32", "32"),
                    scalar=True,
                )
            )
    return probes


def buffers() -> list[Probe]:
    """MUBUF with a raw resource on the operands: in range, and out of range in some lanes."""
    probes = []
    for records in ("0x100000", "0x1f0"):
        resource = (
            "s_mov_b32 s36, s4",
            "s_and_b32 s37, s5, 0xffff",
            f"s_mov_b32 s38, {records}",
            "s_mov_b32 s39, 0x27000",
        )
        for name in ("ubyte", "sbyte", "ushort", "sshort", "dword", "short_d16", "ubyte_d16_hi"):
            for where in (
                "v13, s[36:39], 0 offen",
                "v13, s[36:39], 0 offen offset:12",
                "v13, s[36:39], s11 offen offset:4",
                "off, s[36:39], s11 offset:8",
            ):
                lines = (
                    *resource,
                    "s_movk_i32 s11, 0x10",
                    f"buffer_load_{name} v8, {where}",
                    "s_waitcnt vmcnt(0)",
                )
                probes.append(Probe("\n  ".join(lines), ("32", "32")))
    return probes
