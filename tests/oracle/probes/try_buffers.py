"""Probes of buffer resources that are structured, swizzled or add the lane's number, and of loads
straight to LDS."""

from __future__ import annotations

from oracle.memory import access, atomics
from oracle.probes.loaded import FOLD, loaded, registers
from oracle.probes.probe import Probe
from oracle.probes.try_memory import _atomic_kind

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
STRUCTURED = (
    # stride, index stride (None: linear), records of 1,536
    (32, None, 2000),
    (32, None, 1000),
    (20, None, 1333),
    (32, 8, 1100),
    (16, 16, 2000),
    (48, 32, 777),
    (12, 64, 1400),
)


def resource(base: int, stride: int, records: int, index_stride: int | None, add_tid=False):
    """A resource in s[36:39], of the inputs (`base` 4) or the outputs (6)."""
    word3 = 7 << 12 | (1 << 23 if add_tid else 4 << 15)
    if index_stride:
        word3 |= (index_stride.bit_length() - 4) << 21
    upper = stride << 16 | (1 << 31 if index_stride else 0)
    return (
        f"s_mov_b32 s36, s{base}",
        f"s_and_b32 s37, s{base + 1}, 0xffff",
        f"s_or_b32 s37, s37, {upper:#x}",
        f"s_mov_b32 s38, {records}",
        f"s_mov_b32 s39, {word3:#x}",
    )


# v16: the lane's number in the launch; v17: one of four dwords.
INDEX = (
    "v_lshrrev_b32 v16, 5, v13",
    "v_lshrrev_b32 v17, 2, v14",
    "v_and_b32 v17, 12, v17",
    "s_movk_i32 s11, 8",
)


def _probe(kind: str, about: str, *lines: str, result: str = "b64") -> Probe:
    return Probe("\n  ".join(lines), (kind, kind, kind), result, about=about)


def structured() -> list[Probe]:
    return [*_loads(), *_stores(), *_atomics(), *_private()]


def _loads() -> list[Probe]:
    probes = []
    for stride, index_stride, records in STRUCTURED:
        head = (*INDEX, *resource(4, stride, records, index_stride))
        for name, (size, _, _) in access.LOADS.items():
            if size > 4 and index_stride:
                continue  # larger than an element
            for where in (
                "v16, s[36:39], 0 idxen offset:4",
                "v[16:17], s[36:39], s11 idxen offen",
                "v[16:17], s[36:39], s11 idxen offen offset:8",
            ):
                if "offen" in where and size > (12 if "offset" not in where else 4):
                    continue  # past the last lane's record
                load = f"buffer_load_{name} {{}}, {where}"
                lines = (*head, *loaded(size, load, WAIT))
                probes.append(_probe("64", f"buffer_load_{name}", *lines))
        # Without an index the range counts bytes, whatever the stride.
        if not index_stride:
            head = resource(4, stride, 0x2345, None)
            for where in ("v13, s[36:39], 0 offen offset:4", "off, s[36:39], s11 offset:12"):
                load = f"buffer_load_dword v8, {where}"
                lines = (*head, "s_movk_i32 s11, 0x30", load, WAIT)
                probes.append(_probe("64", "buffer_load_dword", *lines))
    for records in (0x1238, 0x123C, 0x1244):  # dword by dword
        for name, size in (("dwordx2", 8), ("dwordx3", 12), ("dwordx4", 16)):
            load = f"buffer_load_{name} {{}}, v13, s[36:39], 0 offen offset:8"
            lines = (*resource(4, 0, records, None), *loaded(size, load, WAIT))
            probes.append(_probe("64", f"buffer_load_{name}", *lines))
    return probes


FILL = ("global_store_dwordx4 v12, v[4:7], s[6:7]", WAIT)
BACK = ("global_load_dwordx4 v[30:33], v12, s[6:7]", WAIT, *FOLD)


def _stores() -> list[Probe]:
    probes = []
    for index_stride in (None, 8, 64):
        for records in (2000, 1000):
            head = (*INDEX, *FILL, *resource(6, 16, records, index_stride))
            for name, (size, _) in access.STORES.items():
                if size > 4 and index_stride:
                    continue
                data = registers(2, size)
                places = ["v16, s[36:39], 0 idxen"]
                if size <= 4:
                    places += [
                        "v16, s[36:39], 0 idxen offset:9",
                        "v[16:17], s[36:39], 0 idxen offen",
                    ]
                    if size == 4:
                        places[1] = "v16, s[36:39], 0 idxen offset:8"
                for where in places:
                    store = f"buffer_store_{name} {data}, {where}"
                    lines = (*head, store, WAIT, *BACK)
                    probes.append(_probe("64", f"buffer_store_{name}", *lines))
    for records in (0x1238, 0x123C, 0x1244):
        for name, size in (("dwordx2", 8), ("dwordx3", 12), ("dwordx4", 16)):
            store = f"buffer_store_{name} {registers(2, size)}, v12, s[36:39], 0 offen"
            lines = (*FILL, *resource(6, 0, records, None), store, WAIT, *BACK)
            probes.append(_probe("64", f"buffer_store_{name}", *lines))
    return probes


def _atomics() -> list[Probe]:
    probes = []
    for name, atomic in atomics.GLOBAL.items():
        if name not in ("add", "umax_x2", "cmpswap", "swap_x2"):
            continue  # tested with raw resources
        wide = atomic.kind.endswith("64")
        size = (8 if wide else 4) * atomic.sources
        moved = [f"v_mov_b32 v{30 + k}, v{2 + k}" for k in range(size // 4)]
        to = ("v_mov_b32 v8, v30", *(("v_mov_b32 v9, v31",) if wide else ()))
        for index_stride in (None,) if wide else (None, 16):
            head = (*INDEX, *FILL, *moved, *resource(6, 16, 1100, index_stride))
            where = "v16, s[36:39], 0 idxen offset:8"
            text = f"buffer_atomic_{name} {registers(30, size)}, {where}"
            about = f"buffer_atomic_{name}"
            lines = (*head, f"{text} {{rtn}}", WAIT, *to)
            probes.append(_probe(_atomic_kind(name, atomic), about, *lines))
            lines = (*head, text, WAIT, *BACK)
            probes.append(_probe(_atomic_kind(name, atomic), about, *lines))
    return probes


def _private() -> list[Probe]:
    """Adds the lane's number to the index, which disables range checks. s11 selects a wave's
    part."""
    probes = []
    for stride, index_stride, records in (
        (32, None, 0x10000),
        (4, None, 1),
        (32, 64, 64),
        (16, 8, 0xFFFFFFFF),
        (12, 32, 0),
    ):
        head = (*INDEX, *resource(4, stride, records, index_stride, True), "s_lshl_b32 s11, s2, 10")
        for where in (
            "off, s[36:39], s11 offset:4",
            "v17, s[36:39], s11 offen",
            "v17, s[36:39], s11 offen offset:8",
        ):
            for name in ("dword", "ubyte", "sshort"):
                load = f"buffer_load_{name} v8, {where}"
                probes.append(_probe("64", f"buffer_load_{name}", *head, load, WAIT))
    return probes


# LDS initially holds the operands of all lanes; 16 bytes per lane are read back afterwards.
LDS_FILL = (
    "s_mov_b64 exec, -1",
    "ds_write_b128 v14, v[4:7] offset:960",
    "ds_write_b128 v14, v[2:5] offset:1984",
    WAIT,
)
EXEC = "s_mov_b64 exec, s[20:21]"
LDS_BACK = (
    *(WAIT, "s_mov_b64 exec, -1", "ds_read_b128 v[30:33], v14 offset:1024", WAIT),
    *FOLD,
)


def to_lds() -> list[Probe]:
    """Loads with each kind of address; the places start at 960, 1,024 and 1,032 bytes."""
    probes = []
    names = [name for name in access.LOADS if "d16" not in name and name != "dwordx2"]
    # A target has wide buffer loads to LDS if it has the global ones.
    wide = {name: f"global_load_lds_{name}" for name in ("dwordx3", "dwordx4")}
    starts = (("0x400", 0), ("0x80404", 4), ("0x3b0", 16))
    for name in names:
        for start, offset in starts:
            head = (*LDS_FILL, EXEC, f"s_mov_b32 m0, {start}")
            for place in (f"v13, s[4:5] offset:{offset}", f"v[16:17], off offset:{offset}"):
                pointer = (
                    "v_mov_b32_e32 v17, s5",
                    "v_add_co_u32_e32 v16, vcc, s4, v13",
                    "v_addc_co_u32_e32 v17, vcc, 0, v17, vcc",
                )
                load = f"global_load_lds_{name} {place}"
                lines = (*pointer, *head, load, *LDS_BACK)
                probes.append(_probe("64", f"global_load_lds_{name}", *lines))
            for records in (0x10000, 0x1238):
                buffer = resource(4, 0, records, None)
                load = f"buffer_load_{name} v13, s[36:39], 0 offen offset:{offset} lds"
                about = wide.get(name, f"buffer_load_{name}")
                probes.append(_probe("64", about, *buffer, *head, load, *LDS_BACK))
            buffer = (*INDEX, *resource(4, 32, 1100, None))
            load = f"buffer_load_{name} v16, s[36:39], s11 idxen offset:{offset} lds"
            about = wide.get(name, f"buffer_load_{name}")
            probes.append(_probe("64", about, *buffer, *head, load, *LDS_BACK))
    # The bits of M0 that count: for a global load none below a dword.
    for name in ("dword", "dwordx4"):
        head = (*LDS_FILL, EXEC, "s_mov_b32 m0, 0x407")
        load = f"global_load_lds_{name} v13, s[4:5]"
        probes.append(_probe("64", f"global_load_lds_{name}", *head, load, *LDS_BACK))
    return probes


def private_to_lds() -> list[Probe]:
    """SCRATCH_LOAD_LDS."""
    probes = []
    fill = (*LDS_FILL, "s_mov_b32 s11, 16", "v_mov_b32 v17, 16")
    fill = (*fill, "scratch_store_dwordx4 off, v[2:5], s11", WAIT, EXEC)
    for name in ("ubyte", "sbyte", "ushort", "sshort", "dword"):
        for place in ("off, s11", "v17, off offset:4", "off, off offset:24"):
            for start in ("0x400", "0x3f6"):
                load = f"scratch_load_lds_{name} {place}"
                lines = (*fill, f"s_mov_b32 m0, {start}", load, *LDS_BACK)
                probes.append(_probe("64", f"scratch_load_lds_{name}", *lines))
    return probes
