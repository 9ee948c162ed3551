"""Probes of memory instructions by address space (buffers, scratch, flat), and of LDS operations
that need more than an address."""

from __future__ import annotations

from oracle.memory import access, atomics
from oracle.probes.loaded import loaded, registers
from oracle.probes.probe import Probe
from oracle.probes.try_memory import ALL, SOME, _atomic_kind

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
# A raw resource over the records: s[36:39]. {records}: its size, which ends within a wave's.
RESOURCE = (
    "s_mov_b32 s36, s6",
    "s_and_b32 s37, s7, 0xffff",
    "s_mov_b32 s38, {records}",
    "s_mov_b32 s39, 0x27000",
)
FILL = ("global_store_dwordx4 v12, v[2:5], s[6:7]", WAIT)
# Ends within a wave, in the last one at the 470th item, after a dword or two. The items around it
# are active, in waves of 64 lanes and of 32.
PART, PART_64 = "0x1d64", "0x1d68"


def _probe(kind: str, *lines: str, result: str = "b64", about: str = "") -> Probe:
    return Probe("\n  ".join(lines), (kind, kind, kind), result, about=about)


def buffer_stores() -> list[Probe]:
    probes = []
    for records in ("0x100000", PART):
        resource = [line.format(records=records) for line in RESOURCE]
        for name, (size, _) in access.STORES.items():
            if size > 4 and records == PART:
                continue
            data = registers(6, size) if size <= 8 else registers(2, size)
            for where in ("v12, s[36:39], 0 offen", "v12, s[36:39], s11 offen offset:4"):
                if size > 12 and "offset" in where:
                    continue  # into the next lane's record
                store = f"buffer_store_{name} {data}, {where}"
                back = "global_load_dwordx2 v[8:9], v12, s[6:7]"
                lines = (*FILL, *resource, "s_mov_b32 s11, 0", store, WAIT, ALL, back, WAIT)
                probes.append(_probe("64", *lines, about=f"buffer_store_{name}"))
        for name, (size, _, _) in access.LOADS.items():
            if size > 4 and records == PART:
                continue
            load = f"buffer_load_{name} {{}}, v12, s[36:39], 0 offen"
            lines = (*FILL, *resource, *loaded(size, load, WAIT))
            probes.append(_probe("64", *lines, about=f"buffer_load_{name}"))
    return probes


def buffer_atomics() -> list[Probe]:
    probes = []
    for records in ("0x100000", PART, PART_64):
        resource = [line.format(records=records) for line in RESOURCE]
        for name, atomic in atomics.GLOBAL.items():
            if records == PART_64 and not atomic.kind.endswith("64"):
                continue
            wide = atomic.kind.endswith("64")
            kind = _atomic_kind(name, atomic)
            result = "2f16" if name == "pk_add_f16" else "b64"
            result = atomic.kind if atomic.kind[0] == "f" else result
            size = (8 if wide else 4) * atomic.sources
            where = "v12, s[36:39], 0 offen"
            # All lanes write their places first: an inactive one must not do so again.
            fill = (*FILL, *resource, f"buffer_load_dword v17, {where}", WAIT, SOME)
            # Results are moved into place: lanes out of range return 0.
            moved = [f"v_mov_b32 v{30 + k}, v{4 + k}" for k in range(size // 4)]
            data = registers(30, size)
            to = ("v_mov_b32 v8, v30", *(("v_mov_b32 v9, v31",) if wide else ()))
            atomic_text = f"buffer_atomic_{name} {data}, {where}"
            about = f"buffer_atomic_{name}"
            lines = (ALL, *moved, *fill, f"{atomic_text} {{rtn}}", WAIT, *to)
            probes.append(_probe(kind, *lines, result=result, about=about))
            loaded = f"global_load_{'dwordx2 v[8:9]' if wide else 'dword v8'}, v12, s[6:7]"
            for returning in ("", " {rtn}"):
                lines = (ALL, *moved, *fill, f"{atomic_text}{returning}", WAIT, ALL, loaded, WAIT)
                probes.append(_probe(kind, *lines, result=result, about=about))
    return probes


FLAT = (
    "v_mov_b32_e32 v17, s7",
    "v_add_co_u32_e32 v16, vcc, s6, v12",
    "v_addc_co_u32_e32 v17, vcc, 0, v17, vcc",
)


def flat() -> list[Probe]:
    """What try_memory's flat probes lack: stores, wide loads; and `global … v[16:17], off`."""
    probes = []
    local = (
        "s_mov_b64 s[28:29], src_shared_base",
        "v_mov_b32_e32 v17, s29",
        "v_mov_b32_e32 v16, v14",
    )
    for prefix in (FLAT, local):
        fill = (ALL, *prefix, "flat_store_dwordx4 v[16:17], v[2:5]", WAIT, SOME)
        for name, (size, _) in access.STORES.items():
            data = registers(4, size)
            store = f"flat_store_{name} v[16:17], {data} offset:{4 if size <= 4 else 0}"
            back = "flat_load_dwordx2 v[8:9], v[16:17]"
            lines = (*fill, store, WAIT, ALL, back, WAIT)
            probes.append(_probe("64", *lines, about=f"flat_store_{name}"))
        for name, (size, _, _) in access.LOADS.items():
            load = f"flat_load_{name} {{}}, v[16:17]"
            lines = (*fill, *loaded(size, load, WAIT))
            probes.append(_probe("64", *lines, about=f"flat_load_{name}"))
    for name, (size, _, _) in access.LOADS.items():
        for offset in (0, 1) if size < 16 else (0,):
            load = f"global_load_{name} {{}}, v[16:17], off offset:{offset}"
            lines = (*FLAT, *FILL, *loaded(size, load, WAIT))
            probes.append(_probe("64", *lines, about=f"global_load_{name}"))
    for name, (size, _) in access.STORES.items():
        offset = 4 if size <= 4 else 0
        store = f"global_store_{name} v[16:17], {registers(4, size)}, off offset:{offset}"
        back = "global_load_dwordx2 v[8:9], v12, s[6:7]"
        lines = (*FLAT, *FILL, store, WAIT, ALL, back, WAIT)
        probes.append(_probe("64", *lines, about=f"global_store_{name}"))
    for name, atomic in atomics.GLOBAL.items():
        wide = atomic.kind.endswith("64")
        data = registers(4, (8 if wide else 4) * atomic.sources)
        kind = _atomic_kind(name, atomic)
        result = "2f16" if name == "pk_add_f16" else "b64"
        result = atomic.kind if atomic.kind[0] == "f" else result
        target = "v[8:9]" if wide else "v8"
        old = f"global_atomic_{name} {target}, v[16:17], {data}, off {{rtn}}"
        back = (WAIT, ALL, f"global_load_{'dwordx2' if wide else 'dword'} {target}, v12, s[6:7]")
        for more in ((), back):
            lines = (*FLAT, *FILL, old, *more, WAIT)
            probes.append(_probe(kind, *lines, result=result, about=f"global_atomic_{name}"))
        lines = (*FLAT, *FILL, f"flat_atomic_{name} v[16:17], {data}", *back, WAIT)
        probes.append(_probe(kind, *lines, result=result, about=f"flat_atomic_{name}"))
    return probes


def scratch() -> list[Probe]:
    """Private memory of 64 bytes per lane: by a vector offset, by a scalar one, by neither."""
    probes = []
    places = ("off, s11", "v17, off")
    store = "scratch_store_dwordx4 off, v[2:5], s11"
    # v17: 0 or 16, alternating between groups of eight lanes.
    turns = ("v_lshrrev_b32 v17, 7, v14", "v_and_b32 v17, 1, v17", "v_lshlrev_b32 v17, 4, v17")
    fill = ("s_mov_b32 s11, 16", ALL, *turns, store, store.replace("s11", "off"), SOME)
    for name, (size, _) in access.STORES.items():
        for place in places:
            vector, scalar = place.split(", ")
            offset = 4 if size <= 4 else 0
            data = registers(4, size)
            store = f"scratch_store_{name} {vector}, {data}, {scalar} offset:{offset}"
            back = "scratch_load_dwordx2 v[8:9], off, off offset:16"
            lines = (*fill, store, WAIT, ALL, back, WAIT)
            probes.append(_probe("64", *lines, about=f"scratch_store_{name}"))
    for name, (size, _, _) in access.LOADS.items():
        for place in places:
            load = f"scratch_load_{name} {{}}, {place}"
            lines = (*fill, *loaded(size, load, WAIT))
            probes.append(_probe("64", *lines, about=f"scratch_load_{name}"))
    return probes


def lds_more() -> list[Probe]:
    probes = []
    for kind, one, two, target in (
        ("f32", "v4", "v6", "v8"),
        ("f64", "v[4:5]", "v[6:7]", "v[8:9]"),
    ):
        width = kind[1:]
        for data in (f"{one}, {two}", f"{'v2' if width == '32' else 'v[2:3]'}, {two}"):
            fill = "ds_write_b64 v14, v[2:3]"
            old = f"ds_cmpst_rtn_{kind} {target}, v14, {data}"
            new = (f"ds_cmpst_{kind} v14, {data}", f"ds_read_b{width} {target}, v14", WAIT)
            probes.append(_probe(kind, fill, old, WAIT, about=f"ds_cmpst_rtn_{kind}"))
            probes.append(_probe(kind, fill, *new, about=f"ds_cmpst_{kind}"))
    for name in ("ds_pk_add_bf16", "ds_pk_add_rtn_bf16"):
        fill = "ds_write_b32 v14, v2"
        target = "v8, " if "rtn" in name else ""
        lines = (fill, f"{name} {target}v14, v4", "ds_read_b32 v9, v14", WAIT)
        probes.append(Probe("\n  ".join(lines), ("brain16", "brain16"), about=name))
    for family in ("global", "flat", "buffer"):
        name = f"{family}_atomic_pk_add_bf16"
        if family == "buffer":
            head = [line.format(records="0x100000") for line in RESOURCE]
            lines = (*FILL, *head, "v_mov_b32 v8, v4", f"{name} v8, v12, s[36:39], 0 offen {{rtn}}")
        elif family == "flat":
            lines = (*FLAT, *FILL, f"{name} v8, v[16:17], v4 {{rtn}}")
        else:
            lines = (*FILL, f"{name} v8, v12, v4, s[6:7] {{rtn}}")
        after = (WAIT, "global_load_dword v9, v12, s[6:7]", WAIT)
        probes.append(Probe("\n  ".join((*lines, *after)), ("brain16", "brain16"), about=name))
    return probes
