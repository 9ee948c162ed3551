"""Probes of gfx11 and gfx12: gfx9's under their new names, and those of new instructions.

Probes use gfx9's spelling wherever gfx9 has the instruction; rdna_probe.spelled converts it for
each target. Probes that llvm-mc does not know for a target are dropped, and its test lists them
(`ABSENT`).
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from oracle.memory import access, rdna_memory
from oracle.probes import instructions, rdna_probe, try_scalar
from oracle.probes.probe import Probe, known_to
from oracle.probes.try_cdna5 import alone
from oracle.probes.try_cdna5_memory import addresses
from oracle.probes.try_memory import ALL, SOME, buffers, memory, scalar_loads
from oracle.probes.try_raw_buffers import raw_buffers
from oracle.probes.try_rdna_more import atomics, short_floats, transposed, two_scalars
from oracle.probes.try_rdna_rare import rare
from oracle.probes.try_small import dots
from oracle.probes.try_spaces import buffer_atomics, buffer_stores, flat
from oracle.probes.try_vector import (
    REGISTERS,
    SCALARS,
    masks,
    packed,
    scalar_mixtures,
    vector,
    width,
)
from oracle.program.rdna_names import of_rdna
from oracle.scalar import rdna_salu
from oracle.vector import cdna5_valu, rdna_dots, rdna_valu, valu

DPP = [
    *("quad_perm:[3,1,0,2]", "row_shl:1", "row_shl:7", "row_shr:1", "row_shr:15", "row_ror:5"),
    *("row_mirror", "row_half_mirror", "row_share:6", "row_xmask:11"),
]
DPP8 = "dpp8:[7,0,6,1,5,2,4,3]"


def vectors(target: str) -> list[Probe]:
    table = {of_rdna(name, target): op for name, op in valu.VALU.items()}
    for name, op in table.items():
        if op.result.endswith("16"):
            table[name] = replace(op, keeps_high=True)
    every = table | rdna_valu.TABLE
    return [*vector(every), *two_scalars(every), *halves(target)]


def cdna5(target: str) -> list[Probe]:
    """What only gfx1250 has."""
    if target != "gfx1250":
        return []
    own = cdna5_valu.TABLE
    return [*vector(own), *two_scalars(own), *alone()]


def cdna5_memory(target: str) -> list[Probe]:
    return addresses() if target == "gfx1250" else []


def halves(target: str) -> list[Probe]:
    """gfx11's true16 operands: either half of a register, for sources and destination."""
    probes = []
    if target != "gfx1100":
        return probes
    table = {of_rdna(name, target): op for name, op in valu.VALU.items()} | rdna_valu.TABLE
    for name, op in table.items():
        if not op.result.endswith("16") or op.tied:
            continue
        sources = [
            f"{register}.{'hl'[k % 2]}" if kind.endswith("16") else register
            for k, (register, kind) in enumerate(zip(REGISTERS[32], op.sources, strict=False))
        ]
        result = "2f16" if op.result == "f16" else "b64"
        if name.startswith("v_frexp"):
            continue  # the manual does not specify the NaN for a signalling NaN
        ulp = 1 if name.split("_")[1] in ("exp", "log", "sin", "cos", "rcp", "rsq", "sqrt") else 0
        kinds = tuple("tame16" if ulp and kind == "f16" else kind for kind in op.sources)
        for end in "lh":
            forms = [sources, ["s24"]] if len(op.sources) == 1 else [sources]
            for chosen in forms:
                text = f"{name} v8.{end}, {', '.join(chosen)}"
                probes.append(Probe(text, kinds, result, ulp))
    return probes


def compares(target: str) -> list[Probe]:
    """V_CMP into vcc_lo and another register; V_CMPX into EXEC only."""
    probes = []
    for name, op in valu.VOPC.items():
        a, b = REGISTERS[width(op.sources[0])][0], REGISTERS[width(op.sources[1])][1]
        if "cmpx" in name:
            for suffix in ("_e32", "_e64"):
                text = f"{name}{suffix} {a}, {b}\n  v_mov_b32_e32 v8, v4"
                probes.append(Probe(text, op.sources))
            continue
        probes.append(Probe(f"{name}_e32 vcc_lo, {a}, {b}\n  s_mov_b32 s16, vcc_lo", op.sources))
        sign = "-" if op.sources[0][0] == "f" else ""
        probes.append(Probe(f"{name}_e64 s16, {sign}{a}, {b}", op.sources))
        probes.append(Probe(f"{name}_e64 null, {a}, {b}", op.sources))
        first, second = [SCALARS[width(kind)][k] for k, kind in enumerate(op.sources)]
        for mixed in ((first, b), (a, second)):
            probes.append(Probe(f"{name}_e64 s16, {', '.join(mixed)}", op.sources))
    return probes


def _masks(target: str) -> list[Probe]:
    """gfx9's, with masks in one register."""
    probes = []
    for probe in masks():
        line, *more = probe.text.split("\n")
        line = line.replace("s[16:17],", "s16,").replace("s[22:23]", "s22")
        probes.append(replace(probe, text="\n".join([line, *more])))
    return probes


def lanes(target: str) -> list[Probe]:
    """DPP of both kinds, and instructions that exchange data between lanes."""
    probes = []
    for control in DPP:
        for mask in ("row_mask:0xf bank_mask:0xf", "row_mask:0x2 bank_mask:0x7"):
            for more in ("", " bound_ctrl:1", " fi:1", " bound_ctrl:1 fi:1"):
                probes.append(Probe(f"v_mov_b32_dpp v8, v2 {control} {mask}{more}", ("32",)))
        full = f"{control} row_mask:0xf bank_mask:0xf"
        probes.append(Probe(f"v_add_f32_dpp v8, -v2, |v4| {full}", ("f32", "f32"), "f32"))
        probes.append(Probe(f"v_add_nc_u32_dpp v8, v2, v4 {full}", ("32", "32")))
        # The long encoding, new in gfx11.
        probes.append(
            Probe(f"v_fma_f32_e64_dpp v8, -v2, |v4|, v6 {full}", ("f32", "f32", "f32"), "f32")
        )
        probes.append(Probe(f"v_add3_u32_e64_dpp v8, v2, v4, v6 {full}", ("32", "32", "32")))
    for more in ("", " fi:1"):
        probes.append(Probe(f"v_mov_b32_dpp v8, v2 {DPP8}{more}", ("32",)))
        probes.append(Probe(f"v_add_f32_dpp v8, v2, v4 {DPP8}{more}", ("f32", "f32"), "f32"))
        probes.append(Probe(f"v_add3_u32_e64_dpp v8, v2, v4, v6 {DPP8}{more}", ("32",) * 3))
    wait = "\n".join(rdna_probe.WAITS[target])
    swizzles = [
        'offset:swizzle(BITMASK_PERM, "01pip")',
        *("offset:swizzle(SWAP, 16)", "offset:swizzle(REVERSE, 8)"),
        *("offset:swizzle(BROADCAST, 4, 3)", "offset:swizzle(QUAD_PERM, 2, 3, 0, 1)"),
    ]
    for text in (
        "v_readfirstlane_b32 s16, v2",
        "v_readlane_b32 s16, v2, 31",
        "v_readlane_b32 s16, v2, s24",
        "v_writelane_b32 v8, s24, 17",
        "v_writelane_b32 v8, 5, s26",
        "v_mbcnt_lo_u32_b32 v8, v2, v4",
        "v_mbcnt_hi_u32_b32 v8, v2, v4",
        "v_swap_b32 v8, v9",
        *(f"v_permlane{x}16_b32 v8, v2, s24, s26{o}" for x in ("", "x") for o in _OP_SEL),
        *(f"v_permlane{x}16_var_b32 v8, v2, v4{o}" for x in ("", "x") for o in _OP_SEL),
        "v_permlane64_b32 v8, v2",
        f"ds_bpermute_b32 v8, v2, v4\n{wait}",
        f"ds_bpermute_b32 v8, v2, v4 offset:12\n{wait}",
        f"ds_permute_b32 v8, v2, v4\n{wait}",
        *(f"ds_swizzle_b32 v8, v2 {swizzle}\n{wait}" for swizzle in swizzles),
        *(f"v_cndmask_b16 v8, {mixed}, s22" for mixed in ("v2, v4", "v2, -3", "5, v4", "5, -3")),
        "v_cndmask_b16 v8, v2, v4, vcc_lo",
    ):
        probes.append(Probe(text, ("32", "32", "32")))
    return probes


_OP_SEL = ("", " op_sel:[1,0]", " op_sel:[0,1]", " op_sel:[1,1]")

# X and Y of VOPD differ in the banks of their sources and in their destination's parity.
DUAL = {
    "fmac_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "fmaak_f32": ("v{0}, v2, v4, 0x40490fdb", "v{0}, v3, v5, 0x40490fdb"),
    "fmamk_f32": ("v{0}, v2, 0x40490fdb, v4", "v{0}, v3, 0x40490fdb, v5"),
    "mov_b32": ("v{0}, v2", "v{0}, v3"),
    "mul_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "add_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "sub_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "subrev_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "mul_dx9_zero_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "max_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "min_f32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "cndmask_b32": ("v{0}, v2, v4", "v{0}, v3, v5"),
    "add_nc_u32": ("", "v{0}, v3, v5"),
    "lshlrev_b32": ("", "v{0}, v3, v5"),
    "and_b32": ("", "v{0}, v3, v5"),
}


def duals(target: str) -> list[Probe]:
    """VOPD: each operation as X and as Y; sources that the other half overwrites."""
    probes = []

    def add(x: str, y: str, first: str, second: str) -> None:
        left, right = (of_rdna(f"v_{n}", target).replace("v_", "v_dual_", 1) for n in (x, y))
        text = f"{left} {first} :: {right} {second}"
        # A NaN result's payload is unspecified, so there must be no NaN if the other result is
        # bits, and a moved NaN must not be signalling.
        if x.endswith("f32") and y.endswith("f32"):
            kind, result = "f32", "2f32"
        elif all(name.endswith(("f32", "mov_b32")) for name in (x, y)):
            kind, result = "tame32", "2f32"
        else:
            kind, result = "finite32", "b64"
        probes.append(Probe(text, (kind, kind), result))

    for name, (x, y) in DUAL.items():
        for other in ("mul_f32", "mov_b32"):
            if x:
                add(name, other, x.format(8), DUAL[other][1].format(9))
            add(other, name, DUAL[other][0].format(8), y.format(9))
    add("mov_b32", "mov_b32", "v8, v9", "v9, v8")
    add("add_f32", "mul_f32", "v8, v9, v2", "v9, v8, v3")
    # How gfx1250 sums them is not known.
    dots_ = () if target == "gfx1250" else (("f16", "odd16"), ("bf16", "oddbrain16"))
    for form, kind in dots_:
        for factor in ("v2", "s24"):
            text = f"v_dual_dot2acc_f32_{form} v8, {factor}, v4 :: v_dual_mov_b32 v9, v7"
            probes.append(Probe(f"v_mov_b32 v8, v6\n  {text}", (kind, kind, "f32")))
    return probes


def scalars(target: str) -> list[Probe]:
    """gfx9's under their new names; 32-bit masks; 64-bit and float arithmetic."""
    probes = [probe for probe in try_scalar.scalars() if "exec_b64" not in probe.text]

    def add(text: str, left: str, right: str = "32", result: str = "b64") -> None:
        probes.append(Probe(text, (left, right), result, scalar=True))

    for name in ("and", "or", "xor", "and_not1", "or_not1", "nand", "nor", "xnor"):
        for source in ("s24", "1", "-2"):  # including results of 1
            add(f"s_{name}_saveexec_b32 s16, {source}", "32")
    for name in ("and_not0", "or_not0"):
        for source in ("s24", "1", "-2"):
            add(f"s_{name}_saveexec_b32 s16, {source}", "32")
    for name in ("and_not0", "and_not1"):
        add(f"s_{name}_wrexec_b32 s16, s24", "32")
    # EXEC as the result, which is read back.
    for name in ("mov", "not"):
        add(f"s_{name}_b32 exec_lo, s24\n  s_mov_b32 s16, exec_lo", "32")
    for name in ("and", "or", "xor", "and_not1", "or_not1", "nand", "nor", "xnor", "cselect"):
        add(f"s_{name}_b32 exec_lo, s24, s26\n  s_mov_b32 s16, exec_lo", "32")
    for name, (bits, _) in rdna_salu.INTEGER.items():
        add(f"{name} s[16:17], s[24:25], s[26:27]" if bits == 64 else f"{name} s16, s24, s26", "64")
    for name in rdna_salu.CONVERSIONS:
        to, of = name.split("_")[-2:]
        result = to if to[0] == "f" else "b64"
        add(f"{name} s16, s24", of if of[0] == "f" else "32", result=result)
    add("s_cvt_pk_rtz_f16_f32 s16, s24, s26", "number32", "number32")
    for operation in rdna_salu.ARITHMETIC:
        one = operation in rdna_salu.ONE_SOURCE
        constant = {"fmaak": "s24, s26, 0x40490fdb", "fmamk": "s24, 0x40490fdb, s26"}
        sources = constant.get(operation, "s24" if one else "s24, s26")
        add(f"s_{operation}_f32 s16, {sources}", "f32", "f32", result="f32")
    for name in rdna_salu.TRANSCENDENTAL:
        for source in ("s24", "-|s24|", "s24 clamp"):
            probes.append(Probe(f"{name} s16, {source}", ("f32",), "f32", ulp=1, scalar=True))
    probes += short_floats()
    for condition in rdna_salu.CONDITIONS:
        for kind in ("f32", "f16"):
            add(f"s_cmp_{condition}_{kind} s24, s26", kind, kind)
    return probes


def _packed(target: str) -> list[Probe]:
    """gfx9's; V_DOT4_I32_I8 and similar, which became one that gives each source's signedness."""
    probes = [*packed(), *dots()]
    probes = [probe for probe in probes if "v_dot4_i32_i8" not in probe.text]
    probes = [probe for probe in probes if "v_dot8_i32_i4" not in probe.text]
    for name in rdna_dots.BITS:
        signs = ("", " neg_lo:[1,0,0]", " neg_lo:[0,1,0]", " neg_lo:[1,1,0]")
        for form in [f"{sign}{clamp}" for sign in signs for clamp in ("", " clamp")]:
            for mixed in (REGISTERS[32], *scalar_mixtures(list(REGISTERS[32]))):
                text = f"{name} v8, {', '.join(mixed)}{form}"
                probes.append(Probe(text, ("32", "32", "32")))
    for form, whole in (("f16", "1.0"), ("bf16", "-4.0")):
        name = f"v_dot2_{form}_{form}"
        kind, result = ("f16", "f16") if form == "f16" else ("oddbrain16", "b64")
        for text in (
            *("v2, v4, v6", "-v2, |v4|, -|v6|", "-|v2|, -v4, v6", "v2, v4, v6 op_sel:[0,0,1,0]"),
            *("v2, v4, v6 op_sel:[0,0,1,1]", "v2, v4, v6 op_sel:[0,0,0,1]", "s24, v4, v6"),
            *(f"v2, {whole}, v6", f"v2, v4, {whole}", "v2, s26, s24", "0x12345678, v4, -v6"),
        ):
            probes.append(Probe(f"{name} v8, {text}", (kind,) * 3, result))
        for move in ("quad_perm:[1,0,2,3]", "row_shr:3", "dpp8:[7,0,1,2,5,4,3,6]"):
            masks = "" if "dpp8" in move else " row_mask:0xf bank_mask:0xe"
            text = f"{name}_e64_dpp v8, -v2, v4, v6 op_sel:[0,0,1,1] {move}{masks}"
            probes.append(Probe(text, (kind,) * 3, result))
            for signs in ("", " neg_lo:[1,0,0] neg_hi:[0,1,0]"):
                text = f"v_dot2_f32_{form}_e64_dpp v8, v2, v4, v6{signs} {move}{masks}"
                odd = "odd16" if form == "f16" else "oddbrain16"
                probes.append(Probe(text, (odd, odd, "f32"), "f32"))
    return probes


def _memory(target: str) -> list[Probe]:
    """gfx9's, and the new atomic operations."""
    probes = [probe for probe in memory() if "ds_cmpst_" not in probe.text]

    def add(kind: str, result: str, *lines: str) -> None:
        probes.append(Probe("\n  ".join(lines), (kind, kind, kind), result))

    wait = "s_waitcnt vmcnt(0) lgkmcnt(0)"
    for address in ("v14", "v15"):  # separate, and shared by lanes
        for name, atomic in rdna_memory.DS.items():
            head, _, tail = name.rpartition("_")
            wide = atomic.kind.endswith("64")
            data = ", ".join((["v[4:5]", "v[6:7]"] if wide else ["v4", "v6"])[: atomic.sources])
            fill = (ALL, f"ds_write_b64 {address}, v[2:3]", SOME)
            target_, unit = ("v[8:9]", "b64") if wide else ("v8", "b32")
            kind = "tame32" if name.startswith("pk") else atomic.kind[1:]
            old = f"ds_{head}_rtn_{tail} {target_}, {address}, {data}"
            read = (wait, ALL, f"ds_read_{unit} {target_}, {address}", wait)
            add(kind, "b64", *fill, old, wait)
            add(kind, "b64", *fill, old, *read)
            add(kind, "b64", *fill, f"ds_{name} {address}, {data}", *read)
    return probes


def _narrow(target: str) -> list[Probe]:
    """S_LOAD and S_BUFFER_LOAD of bytes and halves, besides gfx9's widths, and of three dwords."""
    probes = scalar_loads()
    far = ("s_sub_u32 s40, s4, 0x80000000", "s_subb_u32 s41, s5, 0", "s_mov_b32 s11, 0x80000006")
    for name in rdna_salu.LOADS:
        if "buffer" in name:
            probes += _scalar_buffer(name, "s16")
            continue
        # A different offset for each datum.
        some = ("s_and_b32 s11, s24, 0x1ffe",)
        places = (("s[4:5], 0x0",), ("s[4:5], 0x6",), (*far, "s[40:41], s11"))
        for *before, place in (*places, (*some, "s[4:5], s11")):
            lines = (*before, f"{name} s16, {place}", "s_waitcnt lgkmcnt(0)")
            probes.append(Probe("\n  ".join(lines), ("32", "32"), scalar=True, about=name))
    name = "s_load_dwordx3"
    fold = ("s_mov_b32 s16, s48", "s_mov_b32 s17, s50", "s_xor_b32 s17, s17, s49")
    # The two lowest bits of either part of an address are ignored.
    odd = (*far[:2], "s_or_b32 s40, s40, 3", "s_mov_b32 s11, 0x80000010")
    for *before, place in (("s[4:5], 0x24",), (*far, "s[40:41], s11"), (*odd, "s[40:41], s11")):
        lines = (*before, f"{name} s[48:50], {place}", "s_waitcnt lgkmcnt(0)", *fold)
        probes.append(Probe("\n  ".join(lines), ("32", "32"), scalar=True, about=name))
    name = "s_buffer_load_dwordx3"
    return [*probes, *_scalar_buffer(name, "s[48:50]", *fold, register=6)]


def _scalar_buffer(name: str, result: str, *after: str, register: int = 4) -> list[Probe]:
    """A scalar load at 0x34, or at 0x30 plus a register, of a resource that ends well after it,
    with one byte more or fewer than each width needs, in strides, or before it."""
    probes = []
    for records, stride in (
        *((0x34 + n, 0) for n in (0, 1, 2, 4, 11, 12, 64)),
        *((10, 5), (11, 5), (11, 0x4005), (13, 5)),
        (1, 0x2000),
    ):
        lines = (
            *("s_mov_b32 s40, s4", "s_and_b32 s41, s5, 0xffff", f"s_mov_b32 s42, {records}"),
            *(f"s_or_b32 s41, s41, {stride} << 16", "s_mov_b32 s43, 0x27000"),
            *("s_or_b32 s40, s40, 3", f"s_movk_i32 s11, {register}"),
            f"{name} {result}, s[40:43], {'0x34' if records % 2 else 's11 offset:0x30'}",
            *("s_waitcnt lgkmcnt(0)", *after),
        )
        probes.append(Probe("\n  ".join(lines), ("32", "32"), scalar=True, about=name))
    return probes


def _buffers(target: str) -> list[Probe]:
    """gfx9's loads, and stores of each width into the lane's own record, which is read back."""
    probes = buffers()
    resource = (
        "s_mov_b32 s36, s6",
        "s_and_b32 s37, s7, 0xffff",
        "s_mov_b32 s38, 0x100000",
        "s_mov_b32 s39, 0x27000",
    )
    wait = "s_waitcnt vmcnt(0)"
    for name, (size, _) in access.STORES.items():
        data = {8: "v[2:3]", 12: "v[2:4]", 16: "v[2:5]"}.get(size, "v2")
        lines = (
            *resource,
            "global_store_dwordx4 v12, v[4:7], s[6:7]",
            wait,
            f"buffer_store_{name} {data}, v12, s[36:39], 0 offen",
            wait,
            "global_load_dwordx2 v[8:9], v12, s[6:7]",
            wait,
        )
        probes.append(Probe("\n  ".join(lines), ("64", "64", "64")))
    return probes


def scratch(target: str) -> list[Probe]:
    """Each width of scratch load and store, by an offset, a scalar and a vector address."""
    probes = []
    wait = "s_waitcnt vmcnt(0)"
    for where in ("off, off offset:8", "off, s11", "v15, off", "v15, s11 offset:-8"):
        vector_, _, rest = where.partition(", ")
        for name, (size, _) in access.STORES.items():
            data = {8: "v[2:3]", 12: "v[2:4]", 16: "v[2:5]"}.get(size, "v2")
            lines = (
                "s_movk_i32 s11, 0x8",
                f"scratch_store_dwordx2 {vector_}, v[6:7], {rest}",
                wait,
                f"scratch_store_{name} {vector_}, {data}, {rest}",
                wait,
                f"scratch_load_dwordx2 v[8:9], {where}",
                wait,
            )
            probes.append(Probe("\n  ".join(lines), ("64", "64", "64")))
        for name, (size, _, _) in access.LOADS.items():
            if size > 8:
                continue
            lines = (
                "s_movk_i32 s11, 0x8",
                f"scratch_store_dwordx2 {vector_}, v[6:7], {rest}",
                wait,
                f"scratch_load_{name} {'v[8:9]' if size == 8 else 'v8'}, {where}",
                wait,
            )
            probes.append(Probe("\n  ".join(lines), ("64", "64", "64")))
    return probes


def _raw_buffers(target: str) -> list[Probe]:
    return [*raw_buffers(), *buffer_stores(), *buffer_atomics()]


def _flat(target: str) -> list[Probe]:
    return flat()


FAMILIES = {
    "vector": vectors,
    "cdna5": cdna5,
    "cdna5_memory": cdna5_memory,
    "compares": compares,
    "masks": _masks,
    "packed": _packed,
    "lanes": lanes,
    "duals": duals,
    "scalars": scalars,
    "memory": _memory,
    "atomics": atomics,
    "transposed": transposed,
    "scalar_loads": _narrow,
    "buffers": _buffers,
    "flat": _flat,
    "raw_buffers": _raw_buffers,
    "scratch": scratch,
    "rare": rare,
}


def subject(probe: Probe, target: str) -> str:
    """Returns the mnemonic that a probe tests, in the target's names; for VOPD the pair."""
    if "::" in probe.text:
        return " ".join(half.split()[0] for half in probe.text.split("::"))
    name = instructions.subject(probe)
    if not probe.about and (scratch_ := re.findall(r"scratch_\w+", probe.text)):
        name = scratch_[1]  # the first one is preparation
    return of_rdna(re.sub(r"_e64$", "", name), target)


@functools.cache
def probes_for(target: str, family: str) -> tuple[list[Probe], list[str]]:
    """Returns the family's probes that llvm-mc knows, in the target's spelling, and the mnemonics
    without any. Equal texts are tested once."""
    given = {
        rdna_probe.spelled(probe.text, target).strip(): probe for probe in FAMILIES[family](target)
    }
    known = known_to(target, list(given))
    kept, refused = [], []
    for (text, probe), good in zip(given.items(), known, strict=True):
        about = subject(probe, target)
        (kept if good else refused).append(replace(probe, text=text, about=about))
    names = {probe.about for probe in kept}
    return kept, sorted({probe.about for probe in refused} - names)


@functools.cache
def missing(target: str) -> frozenset[str]:
    """Returns the mnemonics of all families that a target does not have."""
    return frozenset(name for family in FAMILIES for name in probes_for(target, family)[1])


def supported(target: str, family: str) -> list[Probe]:
    """Returns the probes for the emulator: all forms on gfx1100; on gfx1201 every third, and all of
    those that gfx1100 lacks or sums differently."""
    chosen = probes_for(target, family)[0]
    if target == "gfx1100" or len(chosen) < 200:
        return chosen
    own = missing("gfx1100")
    if target == "gfx1250":
        own = {p.about for p in chosen} - {p.about for p in probes_for("gfx1201", family)[0]}
    return [
        probe
        for k, probe in enumerate(chosen)
        if k % 3 == 0 or probe.about in own or probe.about.startswith("v_dot2")
    ]
