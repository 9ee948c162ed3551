"""Probes of instructions outside the tables: LDS operations with their own addressing, relative
registers, an FFT's lane order."""

from __future__ import annotations

from oracle.probes.probe import Probe

WAIT = "s_waitcnt lgkmcnt(0)"
# Offsets of 1,024 bytes and 0, by element size in bits: lanes don't overlap.
FAR = {32: "offset0:4 offset1:0", 64: "offset0:2 offset1:0"}
EXEC = "s_mov_b64 exec, s[20:21]"
# LDS holds the operands of all lanes.
FILL = (
    *("s_mov_b64 exec, -1", "ds_write_b128 v14, v[2:5]", "ds_write_b128 v14, v[4:7] offset:1024"),
    *(WAIT, EXEC),
)
BACK = (WAIT, "s_mov_b64 exec, -1")
# Folds 16 bytes of each lane's places into v9.
PLACES = ("ds_read_b128 v[30:33], v14", WAIT, "v_xor_b32 v9, v30, v31", "v_xor_b32 v9, v9, v32")
PLACES = (*PLACES, "v_xor_b32 v9, v9, v33")


def rare() -> list[Probe]:
    return [*_lds(), *_relative(), *_vectors()]


def _probe(about: str, *lines: str, kind: str = "64", **more) -> Probe:
    return Probe("\n  ".join(lines), (kind, kind, kind), about=about, **more)


def _lds() -> list[Probe]:
    probes = []
    for name in ("ds_append", "ds_consume"):
        for start, offset in (("0", 0), ("8", 4), ("64", 128)):
            one = f"{name} v8 offset:{offset}"
            lines = (*FILL, f"s_mov_b32 m0, {start}", one, *BACK, *PLACES)
            probes.append(_probe(name, *lines))
    for start, offset in (("0", 0), ("0xabc00104", 8)):
        head = (*FILL, f"s_mov_b32 m0, {start}")
        read = (f"ds_read_addtid_b32 v8 offset:{offset}", *BACK)
        probes.append(_probe("ds_read_addtid_b32", *head, *read))
        write = (f"ds_write_addtid_b32 v6 offset:{offset}", *BACK, *PLACES)
        probes.append(_probe("ds_write_addtid_b32", *head, *write))
    for first, second in ((0, 2), (3, 1)):
        name = "ds_wrxchg2_rtn_b32"
        one = f"{name} v[8:9], v14, v6, v7 offset0:{first} offset1:{second}"
        probes.append(_probe(name, *FILL, one, WAIT, "v_mov_b32 v40, v9", *BACK, *PLACES))
        probes.append(_probe(name, *FILL, one, *BACK))
    for bits, one, two, count in ((32, "v6", "v3", 1), (64, "v[6:7]", "v[2:3]", 2)):
        for far, offsets in (("", "offset0:1 offset1:0"), ("st64", FAR[bits])):
            name = f"ds_wrxchg2{far}_rtn_b{bits}"
            exchange = f"{name} v[30:{29 + 2 * count}], v14, {one}, {two} {offsets}"
            last = 29 + 2 * count
            seen = ("v_mov_b32 v8, v30", f"v_xor_b32 v9, v31, v{last}")
            probes.append(_probe(name, *FILL, exchange, WAIT, *seen))
            unit = 64 * bits // 8 if far else bits // 8
            places = [int(part.split(":")[1]) * unit for part in offsets.split()]
            reads = [f"ds_read_b32 v{8 + k}, v14 offset:{place}" for k, place in enumerate(places)]
            probes.append(_probe(name, *FILL, exchange, *BACK, *reads, WAIT))
    name = "ds_condxchg32_rtn_b64"
    for offset in (0, 8):
        one = f"{name} v[8:9], v14, v[6:7] offset:{offset}"
        probes.append(_probe(name, *FILL, one, WAIT))
        probes.append(_probe(name, *FILL, one, *BACK, *PLACES))
    name = "ds_wrap_rtn_b32"
    for offset in (0, 8):
        one = f"{name} v8, v14, v6, v3 offset:{offset}"
        probes.append(_probe(name, *FILL, one, *BACK, *PLACES, kind="32"))
    for mask in range(0, 32, 3):
        swizzle = f"ds_swizzle_b32 v8, v2 offset:swizzle(FFT,{mask})"
        probes.append(_probe("ds_swizzle_b32", swizzle, WAIT))
    for mask, direction in ((0, 0), (0, 1), (5, 1), (24, 0)):
        swizzle = f"ds_swizzle_b32 v8, v2 offset:{0xC000 | direction << 10 | 7 << 5 | mask:#x}"
        probes.append(_probe("ds_swizzle_b32", swizzle, WAIT))
    return probes


def _relative() -> list[Probe]:
    """Scalar registers by number plus M0."""
    texts = {
        "s_movrels_b32": "s_movrels_b32 s16, s23",
        "s_movrels_b64": "s_movrels_b64 s[16:17], s[22:23]",
        "s_movreld_b32": "s_movreld_b32 s10, s24",
        "s_movreld_b64": "s_movreld_b64 s[10:11], s[24:25]",
    }
    probes = []
    for name, text in texts.items():
        for index in (2, 4) if "movrels" in name else (6,):
            lines = (f"s_mov_b32 m0, {index}", text)
            probes.append(_probe(name, *lines, scalar=True))
    return probes


def _vectors() -> list[Probe]:
    probes = []
    moved = [f"v_alignbit_b32 v{30 + k}, v6, v7, {7 * k + 1}" for k in range(4)]
    fold = ("v_xor_b32 v8, v40, v41", "v_add_u32 v9, v42, v43")
    one = "v_mqsad_u32_u8 v[40:43], v[2:3], v4, v[30:33]"
    large = [f"v_or_b32 v{30 + k}, 0xfffffc00, v{30 + k}" for k in range(4)]
    for seen in (fold, ("v_mov_b32 v8, v41", "v_mov_b32 v9, v43")):
        probes.append(_probe("v_mqsad_u32_u8", *moved, one, *seen))
        lines = (*moved, *large, f"{one} clamp", *seen)
        probes.append(_probe("v_mqsad_u32_u8", *lines))
    for source in ("v2, v4", "s24, v4", "-0.5, v4", "0x40003555, v4", "v2, s26", "s24, s24"):
        one = f"v_pk_fmac_f16 v8, {source}"
        probes.append(_probe("v_pk_fmac_f16", one, kind="f16", result="2f16"))
    return probes
