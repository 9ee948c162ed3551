"""Probes of DPP, SDWA, cross-lane and scalar ALU instructions."""

from __future__ import annotations

from oracle.probes.probe import Probe
from oracle.probes.try_memory import ALL, SOME
from oracle.probes.try_vector import SCALARS, scalar_mixtures
from oracle.scalar import salu

MOVE = "v_accvgpr_mov_b32 a2, a1"
SCALARS_TARGET = {64: "s[16:17]", 32: "s16"}


DPP = [
    *("quad_perm:[3,1,0,2]", "row_shl:1", "row_shl:7", "row_shr:1", "row_shr:15", "row_ror:5"),
    *("wave_shl:1", "wave_rol:1", "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror"),
    *("row_bcast:15", "row_bcast:31", "row_newbcast:6"),
]
SDWA = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"]


def lanes() -> list[Probe]:
    """DPP and SDWA forms, and instructions that exchange data between lanes."""
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
        "v_mbcnt_hi_u32_b32 v8, v2, 5",
        "v_mbcnt_lo_u32_b32 v8, v2, s24",
        "v_mbcnt_lo_u32_b32 v8, s24, v4",
        "v_mbcnt_lo_u32_b32 v8, s24, 5",
        "v_mbcnt_hi_u32_b32 v8, s24, v4",
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
        *(
            "\n  ".join((ALL, "v_accvgpr_write_b32 a1, v18", *lines, ALL, last))
            for *lines, last in (
                (SOME, "v_accvgpr_write_b32 a1, v2", "v_accvgpr_read_b32 v8, a1"),
                (SOME, "v_accvgpr_write_b32 a1, s24", "v_accvgpr_read_b32 v8, a1"),
                ("v_accvgpr_write_b32 a2, v2", SOME, MOVE, "v_accvgpr_read_b32 v8, a2"),
                (SOME, "v_accvgpr_read_b32 v8, a1", "v_mov_b32 v9, v8"),
            )
        ),
        # Their behaviour with inactive lanes is unspecified: the manual's text does not mention
        # EXEC.
        "s_mov_b64 exec, -1\n  v_permlane16_swap_b32 v8, v9",
        "s_mov_b64 exec, -1\n  v_permlane32_swap_b32 v8, v9",
        "v_bitop3_b32 v8, v2, v4, v6 bitop3:0x6c",
        "v_bitop3_b16 v8, v2, v4, v6 bitop3:0xe1",
        *(
            f"v_bitop3_b{width} v8, {', '.join(mixed)} bitop3:{table}"
            for table in ("0x1d", "0xe2")
            for width in (16, 32)
            for mixed in scalar_mixtures(["v2", "v4", "v6"])
        ),
    ):
        probes.append(Probe(text, ("32", "32", "32")))
    for control in ("row_newbcast:6", "row_newbcast:13"):
        for mask in ("row_mask:0xf bank_mask:0xf", "row_mask:0xa bank_mask:0xf"):
            probes.append(Probe(f"v_mov_b64_dpp v[8:9], v[2:3] {control} {mask}", ("64",)))
            text = f"v_ceil_f64_dpp v[8:9], v[2:3] {control} {mask}"
            probes.append(Probe(text, ("f64",), "f64"))
    return probes


def scalars() -> list[Probe]:
    """SOP1, SOP2, SOPC, SOPK."""
    probes = []

    def add(text: str, left: int, right: int = 32) -> None:
        probes.append(Probe(text, (str(left), str(right)), scalar=True))

    for name, (left, right, _) in salu.SOP2.items():
        wide = 64 if name == "s_bfm_b64" else left
        target = SCALARS_TARGET[wide]
        a, b = SCALARS[left][0], SCALARS[right][1]
        add(f"{name} {target}, {a}, {b}", left, right)
        add(f"{name} {target}, {a}, -3", left, right)
        add(f"{name} {target}, {a}, 0", left, right)
    for name, (left, _) in salu.SOP1.items():
        narrow = name.startswith(("s_bcnt", "s_ff", "s_flbit"))
        target = SCALARS_TARGET[32 if narrow else left]
        add(f"{name} {target}, {SCALARS[left][0]}", left)
    for name in salu.COMPARES:
        left = 64 if name.endswith("64") else 32
        right = 32 if "bitcmp" in name else left
        add(f"{name} {SCALARS[left][0]}, {SCALARS[right][1]}", left, right)
    for condition in ("eq", "lg", "gt", "ge", "lt", "le"):
        add(f"s_cmpk_{condition}_i32 s24, -16", 32)
        add(f"s_cmpk_{condition}_u32 s24, 0xfff0", 32)
        for constant in (5, -3):  # registers hold them too
            add(f"s_cmpk_{condition}_i32 s24, {constant}", 32)
        add(f"s_cmpk_{condition}_u32 s24, 5", 32)
    for name in ("and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor", "andn1", "orn1"):
        for source in ("s[24:25]", "1", "-2"):  # including results of 1
            add(f"s_{name}_saveexec_b64 s[16:17], {source}", 64)
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
    # Conditions as operands.
    for condition in ("src_scc", "src_execz", "src_vccz"):
        add(f"s_mov_b64 vcc, s[24:25]\n  s_sub_u32 s16, s26, {condition}", 64)
    # Control flow: skips one instruction, by each condition.
    for condition in ("scc0", "scc1", "execz", "execnz", "vccz", "vccnz"):
        skip = "s_mov_b64 vcc, s[24:25]\n  " if "vcc" in condition else ""
        add(f"{skip}s_cbranch_{condition} 1\n  s_mov_b32 s16, 33", 64)
    add("s_branch 1\n  s_mov_b32 s16, 33", 32)
    # Calls that skip one instruction; the return address, relative to their own.
    back = "s_mov_b32 s16, 33\n  s_sub_u32 s17, s36, s34"
    add(f"s_getpc_b64 s[34:35]\n  s_call_b64 s[36:37], 1\n  {back}", 32)
    over = "s_getpc_b64 s[34:35]\n  s_add_u32 s34, s34, 16\n  s_addc_u32 s35, s35, 0"
    add(f"{over}\n  s_swappc_b64 s[36:37], s[34:35]\n  {back}", 32)
    add(f"{over}\n  s_setpc_b64 s[34:35]\n  s_mov_b32 s16, 33", 32)
    return probes
