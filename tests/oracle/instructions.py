"""The instructions that the probe kernel tries, by encoding family, in assembly text."""

from __future__ import annotations

import re
from dataclasses import replace

from oracle import access, atomics, scalar, valu
from oracle.probe import Probe, known_to

REGISTERS = {64: ("v[2:3]", "v[4:5]", "v[6:7]"), 32: ("v2", "v4", "v6")}
SCALARS = {64: ("s[24:25]", "s[26:27]"), 32: ("s24", "s26")}

# Within so many ULP of correctly rounded: the manuals promise 1 for most.
ULP = dict.fromkeys(("exp", "log", "sin", "cos", "rcp", "rsq", "sqrt"), 1)
LITERAL = ("madmk", "madak", "fmamk", "fmaak")


def width(kind: str) -> int:
    return 64 if kind.endswith("64") else 32


def result_kind(name: str, kind: str) -> str:
    if name.startswith(("v_cvt_pkrtz", "v_pack_b32_f16")):
        return "2f16"
    return kind


def vector() -> list[Probe]:
    """VOP1, VOP2 and VOP3 out of the table; each form that an encoding has."""
    probes = []
    for name, op in valu.VALU.items():
        base = name[2:].split("_")[0]
        kind = result_kind(name, op.result)
        target = "v8" if width(op.result) == 32 else "v[8:9]"
        sources = op.sources[:-1] if op.tied else op.sources
        regs = [REGISTERS[width(kind_)][k] for k, kind_ in enumerate(sources)]
        make = {
            "sources": (*op.sources, "32") if op.tied else op.sources,
            "result": kind if kind[0] in "f2" else "b64",
            "ulp": ULP.get(base, 0),
            "signalling": base == "frexp",
        }
        if base in ("sin", "cos"):  # the manual's domain is ±256 turns
            make["sources"] = (f"tame{op.result[1:]}",)
        if base in LITERAL:
            at = 1 if base.endswith("mk") else 2
            literal = "0x4248" if op.result == "f16" else "0x40490fdb"
            regs[at] = literal
            probes.append(Probe(f"{name} {target}, {', '.join(regs)}", **make))
            continue
        if "accvgpr" in name:
            continue
        suffixes = ["_e32", "_e64"] if len(sources) < 3 else [""]
        for suffix in suffixes:
            probes.append(Probe(f"{name}{suffix} {target}, {', '.join(regs)}", **make))
        first = SCALARS[width(sources[0])][0]
        probes.append(Probe(f"{name} {target}, {', '.join([first, *regs[1:]])}", **make))
        for constant in ("1", "-16", "64"):
            probes.append(Probe(f"{name} {target}, {', '.join([constant, *regs[1:]])}", **make))
        if op.sources[0][0] == "f":
            turn = "0.15915494309189532" if op.sources[0] == "f64" else "0.15915494"
            for constant in ("0.5", "-4.0", turn, "0x40490fdb"):
                probes.append(Probe(f"{name} {target}, {', '.join([constant, *regs[1:]])}", **make))
            signs = ["-{}", "|{}|", "-|{}|"]
            floats_ = [kind_[0] == "f" for kind_ in sources]
            for turn in range(3):
                modified = [
                    signs[(k + turn) % 3].format(r) if f else r
                    for k, (r, f) in enumerate(zip(regs, floats_, strict=True))
                ]
                suffix = "_e64" if len(sources) < 3 else ""
                probes.append(Probe(f"{name}{suffix} {target}, {', '.join(modified)}", **make))
        if op.result[0] == "f" or base in ("add", "sub"):
            suffix = "_e64" if len(sources) < 3 else ""
            probes.append(Probe(f"{name}{suffix} {target}, {', '.join(regs)} clamp", **make))
        if op.keeps_high and op.result.endswith("16"):
            for select in ("[1,0,0,0]", "[0,1,1,1]", "[1,1,1,1]"):
                bits = select.strip("[]").split(",")
                chosen = ",".join([*bits[: len(sources)], bits[3]])
                probes.append(
                    Probe(
                        f"{name} {target}, {', '.join(regs)} op_sel:[{chosen}]",
                        **{**make, "result": "2f16" if kind == "f16" else "b64"},
                    )
                )
    return probes


def compares() -> list[Probe]:
    probes = []
    for name, op in valu.VOPC.items():
        a = REGISTERS[width(op.sources[0])][0]
        b = REGISTERS[width(op.sources[1])][1]
        tail = "\n  s_mov_b64 s[16:17], vcc" if "cmpx" not in name else ""
        if "cmpx" in name:
            tail = "\n  s_mov_b64 s[16:17], vcc\n  v_mov_b32_e32 v8, v4"
        probes.append(Probe(f"{name}_e32 vcc, {a}, {b}{tail}", op.sources))
        if op.sources[0][0] == "f" and "cmpx" not in name:
            probes.append(Probe(f"{name}_e64 s[16:17], -{a}, {b}", op.sources))
        elif "cmpx" not in name:
            probes.append(
                Probe(f"{name}_e64 s[16:17], {a}, {SCALARS[width(op.sources[1])][1]}", op.sources)
            )
    return probes


def masks() -> list[Probe]:
    """What reads or writes a lane mask beside its result."""
    probes = [
        Probe("v_cndmask_b32_e32 v8, v2, v4, vcc", ("32", "32")),
        Probe("v_cndmask_b32_e64 v8, v2, v4, s[22:23]", ("32", "32")),
        Probe("v_cndmask_b32_e64 v8, -v2, |v4|, s[22:23]", ("f32", "f32"), "b64"),
        Probe("v_mad_u64_u32 v[8:9], s[16:17], v2, v4, v[6:7]", ("32", "32", "64")),
        Probe("v_mad_i64_i32 v[8:9], s[16:17], v2, v4, v[6:7]", ("32", "32", "64")),
    ]
    for name, (_, takes, _) in valu.CARRY.items():
        carry = ", vcc" if takes else ""
        probes.append(
            Probe(f"{name}_e32 v8, vcc, v2, v4{carry}\n  s_mov_b64 s[16:17], vcc", ("32", "32"))
        )
        carry = ", s[22:23]" if takes else ""
        probes.append(Probe(f"{name}_e64 v8, s[16:17], v2, v4{carry}", ("32", "32")))
    for kind, registers in (("f32", ("v2", "v4", "v6")), ("f64", ("v[2:3]", "v[4:5]", "v[6:7]"))):
        target = "v8" if kind == "f32" else "v[8:9]"
        a, b, c = registers
        # As LLVM uses it: S0 is the denominator or the numerator.
        for s0 in (a, b):
            probes.append(
                Probe(
                    f"v_div_scale_{kind} {target}, vcc, {s0}, {a}, {b}\n  s_mov_b64 s[16:17], vcc",
                    (kind, kind),
                    kind,
                )
            )
        probes.append(Probe(f"v_div_fmas_{kind} {target}, {a}, {b}, {c}", (kind, kind, kind), kind))
    return probes


def packed() -> list[Probe]:
    from oracle.packed import DOTS, PAIRED_16, PAIRED_32

    probes = []
    for name, (kind, plain) in PAIRED_16.items():
        count = len(valu.VALU[plain].sources)
        regs = ", ".join(REGISTERS[32][:count])
        result = "2f16" if kind == "f16" else "b64"
        forms = ["", " op_sel:[1,0,1]", " op_sel_hi:[0,1,0]", " op_sel:[0,1,1] op_sel_hi:[1,0,0]"]
        if kind == "f16":
            forms += [" neg_lo:[1,0,1]", " neg_hi:[0,1,1]", " clamp"]
        for form in forms:
            probes.append(Probe(f"{name} v8, {regs}{_trim(form, count)}", (kind,) * count, result))
    for name, plain in PAIRED_32.items():
        count = len(valu.VALU[plain].sources) if plain else 2
        regs = ", ".join(REGISTERS[64][:count])
        forms = ["", " op_sel:[1,0,1] op_sel_hi:[0,1,0]", " op_sel:[0,1,0]", " op_sel:[1,1,0]"]
        if plain:
            forms.append(" neg_lo:[1,0,1] neg_hi:[0,1,0]")
        for form in forms:
            probes.append(
                Probe(
                    f"{name} v[8:9], {regs}{_trim(form, count)}",
                    ("f64",) * count,  # both dwords of it are of interest
                    "2f32" if plain else "b64",
                )
            )
    for name in ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"):
        result = "f32" if name.endswith("f32") else "2f16"
        for form, kinds in (
            ("", ("f32", "f32", "f32")),
            (" op_sel_hi:[1,1,1]", ("f16", "f16", "f16")),
            (" op_sel:[1,0,1] op_sel_hi:[1,1,1]", ("f16", "f16", "f16")),
            (" op_sel:[0,1,0] op_sel_hi:[0,1,0]", ("f32", "f16", "f32")),
        ):
            probes.append(Probe(f"{name} v8, -v2, |v4|, v6{form}", kinds, result))
    for name in DOTS:
        if "c_" in name:
            probes.append(Probe(f"{name}_e32 v8, v2, v4", ("32", "32")))
        else:
            probes.append(Probe(f"{name} v8, v2, v4, v6", ("32", "32", "32")))
    return probes


def _trim(form: str, count: int) -> str:
    if count == 3:
        return form
    return " ".join(
        part if ":" not in part else part.rsplit(",", 1)[0] + "]" for part in form.split(" ")
    )


DPP = [
    *("quad_perm:[3,1,0,2]", "row_shl:1", "row_shl:7", "row_shr:1", "row_shr:15", "row_ror:5"),
    *("wave_shl:1", "wave_rol:1", "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror"),
    *("row_bcast:15", "row_bcast:31", "row_newbcast:6"),
]
SDWA = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"]


def lanes() -> list[Probe]:
    """DPP and SDWA forms, and instructions that look across lanes."""
    probes = []
    for control in DPP:
        for masks_ in ("row_mask:0xf bank_mask:0xf", "row_mask:0xa bank_mask:0x7"):
            for bound in ("", " bound_ctrl:0"):
                probes.append(Probe(f"v_mov_b32_dpp v8, v2 {control} {masks_}{bound}", ("32",)))
        probes.append(
            Probe(
                f"v_add_f32_dpp v8, -v2, |v4| {control} row_mask:0xf bank_mask:0xf",
                ("f32", "f32"),
                "f32",
            )
        )
        probes.append(
            Probe(f"v_add_u32_dpp v8, v2, v4 {control} row_mask:0xf bank_mask:0xf", ("32", "32"))
        )
    for position, selection in enumerate(SDWA):
        other = SDWA[(position + 3) % 7]
        for unused in ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"):
            select = f"dst_sel:{selection} dst_unused:{unused} src0_sel:{other}"
            probes.append(Probe(f"v_mov_b32_sdwa v8, v2 {select}", ("32",)))
            probes.append(
                Probe(
                    f"v_add_u32_sdwa v8, v2, sext(v4) {select} src1_sel:{selection}", ("32", "32")
                )
            )
        probes.append(
            Probe(
                "v_mul_f16_sdwa v8, -v2, |v4| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
                f"src0_sel:WORD_{position % 2} src1_sel:WORD_{position // 2 % 2}",
                ("f16", "f16"),
                "2f16",
            )
        )
        probes.append(
            Probe(
                f"v_cmp_lt_u32_sdwa s[16:17], v2, v4 src0_sel:{selection} src1_sel:{other}",
                ("32", "32"),
            )
        )
        probes.append(
            Probe(
                "v_lshlrev_b32_sdwa v8, v2, v4 dst_sel:DWORD dst_unused:UNUSED_PAD "
                f"src0_sel:{selection} src1_sel:{other}",
                ("32", "32"),
            )
        )
    for text in (
        "v_readfirstlane_b32 s16, v2",
        "v_readlane_b32 s16, v2, 63",
        "v_readlane_b32 s16, v2, s24",
        "v_writelane_b32 v8, s24, 17",
        "v_writelane_b32 v8, 5, s26",
        "v_mbcnt_lo_u32_b32 v8, v2, v4",
        "v_mbcnt_hi_u32_b32 v8, v2, v4",
        "v_mbcnt_hi_u32_b32 v8, exec_hi, 0",
        "v_swap_b32 v8, v2\n  v_swap_b32 v8, v2",
        "v_swap_b32 v8, v9",
        "ds_bpermute_b32 v8, v2, v4\n  s_waitcnt lgkmcnt(0)",
        "ds_bpermute_b32 v8, v2, v4 offset:12\n  s_waitcnt lgkmcnt(0)",
        "ds_permute_b32 v8, v2, v4\n  s_waitcnt lgkmcnt(0)",
        'ds_swizzle_b32 v8, v2 offset:swizzle(BITMASK_PERM, "01pip")\n  s_waitcnt lgkmcnt(0)',
        "ds_swizzle_b32 v8, v2 offset:swizzle(SWAP, 16)\n  s_waitcnt lgkmcnt(0)",
        "ds_swizzle_b32 v8, v2 offset:swizzle(REVERSE, 8)\n  s_waitcnt lgkmcnt(0)",
        "ds_swizzle_b32 v8, v2 offset:swizzle(BROADCAST, 4, 3)\n  s_waitcnt lgkmcnt(0)",
        "ds_swizzle_b32 v8, v2 offset:swizzle(QUAD_PERM, 2, 3, 0, 1)\n  s_waitcnt lgkmcnt(0)",
        "v_accvgpr_write_b32 a1, v2\n  v_accvgpr_read_b32 v8, a1",
        "v_accvgpr_write_b32 a1, v8\n  v_accvgpr_mov_b32 a2, a1\n  v_accvgpr_read_b32 v8, a2",
        # With lanes off, what these do is open: the manual's text has no EXEC in it.
        "s_mov_b64 exec, -1\n  v_permlane16_swap_b32 v8, v9",
        "s_mov_b64 exec, -1\n  v_permlane32_swap_b32 v8, v9",
        "v_bitop3_b32 v8, v2, v4, v6 bitop3:0x6c",
        "v_bitop3_b32 v8, s24, v4, 7 bitop3:0x1d",
        "v_bitop3_b16 v8, v2, v4, v6 bitop3:0xe1",
    ):
        probes.append(Probe(text, ("32", "32", "32")))
    return probes


def scalars() -> list[Probe]:
    """SOP1, SOP2, SOPC, SOPK."""
    probes = []

    def add(text: str, left: int, right: int = 32) -> None:
        probes.append(Probe(text, (str(left), str(right)), scalar=True))

    for name, (left, right, _) in scalar.SOP2.items():
        wide = 64 if name == "s_bfm_b64" else left
        target = SCALARS_TARGET[wide]
        a, b = SCALARS[left][0], SCALARS[right][1]
        add(f"{name} {target}, {a}, {b}", left, right)
        add(f"{name} {target}, {a}, -3", left, right)
    for name, (left, _) in scalar.SOP1.items():
        narrow = name.startswith(("s_bcnt", "s_ff", "s_flbit"))
        target = SCALARS_TARGET[32 if narrow else left]
        add(f"{name} {target}, {SCALARS[left][0]}", left)
    for name in scalar.COMPARES:
        left = 64 if name.endswith("64") else 32
        right = 32 if "bitcmp" in name else left
        add(f"{name} {SCALARS[left][0]}, {SCALARS[right][1]}", left, right)
    for condition in ("eq", "lg", "gt", "ge", "lt", "le"):
        add(f"s_cmpk_{condition}_i32 s24, -16", 32)
        add(f"s_cmpk_{condition}_u32 s24, 0xfff0", 32)
    for name in ("and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor", "andn1", "orn1"):
        add(f"s_{name}_saveexec_b64 s[16:17], s[24:25]", 64)
    for name in ("andn1", "andn2"):
        add(f"s_{name}_wrexec_b64 s[16:17], s[24:25]", 64)
    for text in (
        "s_addc_u32 s16, s24, s26",
        "s_subb_u32 s16, s24, s26",
        "s_cselect_b32 s16, s24, s26",
        "s_cmov_b32 s16, s24",
        "s_movk_i32 s16, 0x8001",
        "s_cmovk_i32 s16, 0x7fff",
        "s_addk_i32 s24, 0x8000\n  s_mov_b32 s16, s24",
        "s_mulk_i32 s24, 0x8003\n  s_mov_b32 s16, s24",
        "s_bitset0_b32 s16, s24",
        "s_bitset1_b32 s16, s24",
        "s_bitset0_b64 s[16:17], s24",
        "s_bitset1_b64 s[16:17], s24",
        "s_bitreplicate_b64_b32 s[16:17], s24",
    ):
        add(text, 32)
    add("s_cselect_b64 s[16:17], s[24:25], s[26:27]", 64, 64)
    add("s_cmov_b64 s[16:17], s[24:25]", 64, 64)
    # Flow, forwards over one instruction, by each condition.
    for condition in ("scc0", "scc1", "execz", "execnz", "vccz", "vccnz"):
        skip = "s_mov_b64 vcc, s[24:25]\n  " if "vcc" in condition else ""
        add(f"{skip}s_cbranch_{condition} 1\n  s_mov_b32 s16, 33", 64)
    add("s_branch 1\n  s_mov_b32 s16, 33", 32)
    return probes


def memory() -> list[Probe]:
    """DS, GLOBAL, FLAT and SMEM: each width of load and store, each atomic operation.

    `{rtn}` is the bit that makes an atomic return: sc0, or glc on gfx90a.
    """
    probes = []

    def add(kind: str, result: str, *lines: str) -> None:
        probes.append(Probe("\n  ".join(lines), (kind, kind, kind), result))

    wait = "s_waitcnt vmcnt(0) lgkmcnt(0)"
    for name, (size, _, _) in access.LOADS.items():
        registers = {8: "v[8:9]", 12: "v[30:32]", 16: "v[30:33]"}.get(size, "v8")
        tail = () if size <= 8 else (wait, "v_xor_b32 v8, v30, v31", "v_xor_b32 v9, v31, v32")
        for offset in (0, 2, 5):
            load = f"global_load_{name} {registers}, v13, s[4:5] offset:{offset}"
            add("64", "b64", load, *tail, wait)
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
                "global_load_dwordx2 v[8:9], v12, s[6:7]",
                wait,
            )
    for name, (size, _, _) in access.DS_LOADS.items():
        registers = {8: "v[8:9]", 12: "v[30:32]", 16: "v[30:33]"}.get(size, "v8")
        tail = () if size <= 8 else (wait, "v_xor_b32 v8, v30, v31", "v_xor_b32 v9, v31, v32")
        for offset in (0, 4 if size < 8 else 16):
            fill = f"ds_write_b128 v14, v[2:5] offset:{offset // 16 * 16}"
            add("64", "b64", fill, f"ds_read_{name} {registers}, v14 offset:{offset}", *tail, wait)
    for name, (size, _) in access.DS_STORES.items():
        data = {8: "v[2:3]", 12: "v[2:4]", 16: "v[2:5]"}.get(size, "v2")
        store = f"ds_write_{name} v14, {data} offset:{4 if size <= 4 else 0}"
        add("64", "b64", "ds_write_b128 v14, v[4:7]", store, "ds_read_b64 v[8:9], v14", wait)
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

    for address in ("v14", "v15"):  # alone, and with lanes that meet
        for name, atomic in atomics.DS.items():
            wide = atomic.kind.endswith("64")
            kind = _atomic_kind(name, atomic)
            data = ", ".join((["v[4:5]", "v[6:7]"] if wide else ["v4", "v6"])[: atomic.sources])
            fill = f"ds_write_b64 {address}, v[2:3]"
            head, _, tail = name.rpartition("_")
            operation = f"{head}_rtn_{tail}"
            if wide:
                old = f"ds_{operation} v[8:9], {address}, {data}"
                new = f"ds_{name} {address}, {data}"
                result = atomic.kind if atomic.kind[0] == "f" else "b64"
                add(kind, result, fill, old, wait)
                add(kind, result, fill, new, f"ds_read_b64 v[8:9], {address}", wait)
            else:
                result = "2f16" if "pk" in name else "2f32" if atomic.kind == "f32" else "b64"
                old = f"ds_{operation} v8, {address}, {data}"
                new = f"ds_{name} {address}, {data}"
                if result == "2f16":
                    add(kind, result, fill, old, wait)
                    add(kind, result, fill, new, f"ds_read_b32 v8, {address}", wait)
                else:
                    add(kind, result, fill, old, f"ds_read_b32 v9, {address}", wait)
                    add(kind, result, fill, new, f"ds_read_b32 v9, {address}", wait)
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
        back = (wait, f"global_load_{size} {target}, v12, s[6:7]", wait)
        add(
            kind, result, *fill, f"global_atomic_{name} {target}, v12, {data}, s[6:7] {{rtn}}", wait
        )
        add(kind, result, *fill, f"global_atomic_{name} v12, {data}, s[6:7]", *back)
        add(
            kind,
            result,
            *flat,
            *fill,
            f"flat_atomic_{name} {target}, v[16:17], {data} {{rtn}}",
            wait,
        )
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
    """The operands' type. Of minimum and maximum with a signalling NaN the manuals say nothing."""
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


SCALARS_TARGET = {64: "s[16:17]", 32: "s16"}

FAMILIES = {
    "vector": vector,
    "compares": compares,
    "masks": masks,
    "packed": packed,
    "lanes": lanes,
    "scalars": scalars,
    "memory": memory,
    "scalar_loads": scalar_loads,
}


def probes_for(target: str, family: str) -> tuple[list[Probe], list[str]]:
    """The family's probes that llvm-mc knows on a target, and the mnemonics it knows none of."""
    returning = "glc" if target == "gfx90a" else "sc0"
    probes = [
        replace(probe, text=probe.text.replace("{rtn}", returning)) for probe in FAMILIES[family]()
    ]
    known = known_to(target, [probe.text for probe in probes])
    kept = [probe for probe, good in zip(probes, known, strict=True) if good]
    refused = [probe for probe, good in zip(probes, known, strict=True) if not good]
    return kept, sorted({subject(p) for p in refused} - {subject(p) for p in kept})


_AROUND = re.compile(
    r"s_waitcnt|s_mov|v_mov_b32|v_xor|v_add(c)?_co|ds_(write|read)_b(32|64|128) "
    r"|global_(store|load)_dword"
)


def subject(probe: Probe) -> str:
    """The mnemonic that a probe is about: that of its first line that is no preparation."""
    lines = [line.strip() for line in probe.text.split("\n")]
    chosen = next((line for line in lines if not _AROUND.match(line)), lines[0])
    return re.sub(r"_(e32|e64|dpp|sdwa)$", "", chosen.split()[0])
