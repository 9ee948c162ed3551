"""Probes of MODE: rounding modes, denormals of one direction, clamps, output modifiers,
instructions that read and write it; and VGPR indexing, which it enables. The waves have the
kernel's MODE before and after a probed instruction."""

from __future__ import annotations

from oracle.probes.probe import Probe

USUAL = 0x3F0  # all denormals, DX10_CLAMP, IEEE
WORD = "hwreg(HW_REG_MODE, 0, 10)"


def mode() -> list[Probe]:
    probes = [*_roundings(), *_denormals(), *_modifiers(), *_clamps(), *_overflows()]
    return [*probes, *_registers(), *_indexing()]


def _under(value: int, kind: str, *lines: str, sources: tuple = (), **more) -> Probe:
    text = (f"s_setreg_imm32_b32 {WORD}, {value:#x}", *lines)
    text = (*text, f"s_setreg_imm32_b32 {WORD}, {USUAL:#x}")
    return Probe("\n  ".join(text), sources or (kind,) * 3, **more)


def _roundings() -> list[Probe]:
    probes = []
    for direction in (1, 2, 3):
        for kind, a, b, c, d in (
            ("f16", "v2", "v4", "v6", "v8"),
            ("f32", "v2", "v4", "v6", "v8"),
            ("f64", "v[2:3]", "v[4:5]", "v[6:7]", "v[8:9]"),
        ):
            # The other field has another direction.
            other = direction % 3 + 1
            value = USUAL | (direction | other << 2 if kind == "f32" else direction << 2 | other)
            for name, operands in (
                *((f"v_{name}_{kind}", f"{a}, {b}") for name in ("add", "mul")),
                (f"v_fma_{kind}", f"{a}, {b}, {c}"),
                *((f"v_{name}_{kind}", f"{a}, {b}") for name in ("sub", "subrev", "fmac")),
                *((f"v_{name}_{kind}", f"{a}, {b}, {c}") for name in ("mad",)),
                *((f"v_{name}_{kind}", f"{a}, {b}") for name in ("mac", "max")),
            ):
                if kind == "f64" and name.startswith(("v_sub", "v_mad", "v_mac")):
                    continue
                one = f"{name} {d}, {operands}"
                probes.append(_under(value, kind, one, result=kind, about=name))
            if kind != "f64":
                pair = f"v_pk_{{}}_{kind} v[8:9], v[2:3], v[4:5]"
                third = ", v[6:7]"
                if kind == "f16":
                    pair, third = "v_pk_{}_f16 v8, v2, v4", ", v6"
                for name, more in (("add", ""), ("mul", ""), ("fma", third)):
                    packed = f"2{kind}"
                    one = pair.format(name) + more
                    about = f"v_pk_{name}_{kind}"
                    probes.append(_under(value, kind, one, result=packed, about=about))
        for to, of, a, kind in (
            *(("f16", "f32", "v2", "f32"), ("f16", "u16", "v2", "16"), ("f16", "i16", "v2", "16")),
            *(("f32", "i32", "v2", "32"), ("f32", "u32", "v2", "32")),
            *(("f32", "f64", "v[2:3]", "f64"), ("f32", "f16", "v2", "f16")),
        ):
            other = direction % 3 + 1
            single = to == "f32" and of != "f64"
            value = USUAL | (direction | other << 2 if single else direction << 2 | other)
            one = f"v_cvt_{to}_{of} v8, {a}"
            probes.append(_under(value, kind, one, result=to, about=one.split()[0]))
    return probes


def _denormals() -> list[Probe]:
    probes = []
    for field in (0, 1, 2):
        for kind, shift, names in (
            ("f32", 4, ("add", "mul", "fma", "max")),
            ("f16", 6, ("add", "mul", "fma", "max")),
            ("f64", 6, ("add", "mul", "fma", "max")),
        ):
            a, b, c, d = ("v2", "v4", "v6", "v8")
            if kind == "f64":
                a, b, c, d = ("v[2:3]", "v[4:5]", "v[6:7]", "v[8:9]")
            value = USUAL & ~(3 << shift) | field << shift
            for name in names:
                more = f", {c}" * (name == "fma")
                one = f"v_{name}_{kind} {d}, {a}, {b}{more}"
                about = f"v_{name}_{kind}"
                probes.append(_under(value, kind, one, result=kind, tininess=True, about=about))
            # f16's preserve denormals in any MODE.
            exponent = "i16" if kind == "f16" else "i32"
            for name, to in ((f"v_frexp_mant_{kind}", d), (f"v_frexp_exp_{exponent}_{kind}", "v8")):
                result = kind if "mant" in name else "b64"
                one = f"{name} {to}, {a}"
                more = {"result": result, "signalling": "mant" in name, "about": name}
                probes.append(_under(value, kind, one, **more))
    return probes


def _modifiers() -> list[Probe]:
    """They only apply if denormal results and IEEE mode are off. Whether a denormal is flushed
    before it is scaled is unspecified, so there are none."""
    probes = []
    for value in (USUAL, 0x1F0, 0x300, 0x100, 0x150):
        for kind, edges in (("f32", "exact32"), ("f16", "exact16"), ("f64", "tame64")):
            a, b, d = ("v2", "v4", "v8") if kind != "f64" else ("v[2:3]", "v[4:5]", "v[8:9]")
            for name, modifier in (
                *(("add", "mul:2"), ("mul", "div:2"), ("max", "mul:4"), ("mul", "mul:2")),
                ("add", "clamp div:2"),
            ):
                one = f"v_{name}_{kind} {d}, {a}, {b} {modifier}"
                more = {"result": kind, "about": f"v_{name}_{kind}"}
                probes.append(_under(value, edges, one, **more))
    return probes


def _clamps() -> list[Probe]:
    """Without DX10_CLAMP NaN is preserved."""
    probes = []
    for kind in ("f32", "f16"):
        for name in ("v_add", "v_max", *(("v_pk_add",) if kind == "f16" else ())):
            one = f"{name}_{kind} v8, v2, v4 clamp"
            result = kind if name != "v_pk_add" else "2f16"
            more = {"result": result, "about": f"{name}_{kind}"}
            probes.append(_under(USUAL & ~0x100, kind, one, **more))
    return probes


def _overflows() -> list[Probe]:
    """FP16_OVFL in every rounding mode: f16 results that overflow."""
    field, probes = "hwreg(HW_REG_MODE, {}, {})", []
    for direction in range(4):
        on = (
            f"s_setreg_imm32_b32 {field.format(2, 2)}, {direction}",
            f"s_setreg_imm32_b32 {field.format(23, 1)}, 1",
        )
        off = (on[0][:-1] + "0", on[1][:-1] + "0")
        rows = [
            *((f"v_{name}_f16 v8, v2, v4", "f16", "f16") for name in ("add", "sub", "mul")),
            ("v_fma_f16 v8, v2, v4, v6", "f16", "f16"),
            ("v_pk_fma_f16 v8, v2, v4, v6", "f16", "2f16"),
            ("v_pk_add_f16 v8, v2, v4", "f16", "2f16"),
            *((f"v_cvt_f16_{kind} v8, v2", kind, "f16") for kind in ("f32", "u16", "i16")),
        ]
        if direction == 0:
            rows += [("v_ldexp_f16 v8, v2, v4", "f16", "f16"), ("v_rcp_f16 v8, v2", "f16", "f16")]
        for one, kind, result in rows:
            lines = "\n  ".join((*on, one, *off))
            sources = ("16" if kind[1:] == "16" and kind[0] != "f" else kind,) * 3
            probes.append(Probe(lines, sources, result=result, about=one.split()[0]))
    return probes


def _registers() -> list[Probe]:
    """A per-wave MODE, set from a register: f32 rounding and denormals; and instructions that read
    it."""
    part = "hwreg(HW_REG_MODE, {}, {})"
    probes = []
    for first, size, name, shift in ((0, 2, "f32", 20), (2, 2, "f64", 9), (4, 2, "f32", 3)):
        pair = "v8, v2, v4" if name == "f32" else "v[8:9], v[2:3], v[4:5]"
        lines = (
            f"s_lshr_b32 s28, s20, {shift}",
            f"s_setreg_b32 {part.format(first, size)}, s28",
            f"v_add_{name} {pair}",
            f"s_getreg_b32 s16, {WORD}",
            f"s_getreg_b32 s17, {part.format(1, 5)}",
        )
        more = {"about": "s_setreg_b32", "tininess": first == 4, "result": name}
        probes.append(_under(USUAL, name, *lines, **more))
    for first, size in ((0, 10), (4, 1), (9, 1), (8, 2), (2, 7)):
        lines = (f"s_setreg_b32 {WORD}, s24", f"s_getreg_b32 s16, {part.format(first, size)}")
        probes.append(_under(USUAL, "32", *lines, about="s_getreg_b32"))
    for first, size in ((29, 3), (30, 1), (31, 1)):  # which have no effect
        lines = (
            f"s_setreg_b32 {part.format(29, 3)}, s24",
            *(f"s_getreg_b32 s16, {part.format(first, size)}", f"s_getreg_b32 s17, {WORD}"),
            f"s_setreg_imm32_b32 {part.format(29, 3)}, 0",
        )
        probes.append(_under(USUAL, "32", *lines, about="s_getreg_b32"))
    return probes


def _indexing() -> list[Probe]:
    """Register numbers increased by up to 3; checks M0 afterwards, for any M0 and index."""
    numbers = [f"v_mov_b32 v{30 + k}, v{2 + k}" for k in range(6)]
    probes = []
    for name, which in (("on", ", gpr_idx(SRC0)"), ("on", ", gpr_idx(SRC1,DST)"), ("idx", "")):
        set_index = f"s_set_gpr_idx_{name} s22{which}"
        lines = ("s_mov_b32 m0, s23", set_index, "s_mov_b32 s16, m0", "s_set_gpr_idx_off")
        probes.append(Probe("\n  ".join(lines), ("32", "32"), about=f"s_set_gpr_idx_{name}"))
    lines = (lines[0], "s_set_gpr_idx_mode gpr_idx(SRC0,DST)", *lines[2:])
    probes.append(Probe("\n  ".join(lines), ("32", "32"), about="s_set_gpr_idx_mode"))
    for which in ("SRC0", "DST", "SRC0,DST", ""):
        for index in ("s28", "2"):
            lines = (
                *(
                    "s_mov_b32 m0, s25",
                    "s_and_b32 s28, s24, 3",
                    *numbers,
                    f"s_set_gpr_idx_on {index}, gpr_idx({which})",
                ),
                *("v_mov_b32 v32, v30", "v_mov_b32 v31, s24", "s_set_gpr_idx_off"),
                *("v_xor_b32 v8, v31, v32", "v_mov_b32 v9, v33", "s_mov_b32 s16, m0"),
                *(f"s_getreg_b32 s17, {WORD}", "v_add_u32 v9, v9, v34"),
            )
            probes.append(Probe("\n  ".join(lines), ("32", "32", "32"), about="s_set_gpr_idx_on"))
    lines = (
        *(
            "s_mov_b32 m0, s25",
            "s_and_b32 s28, s24, 3",
            *numbers,
            "s_set_gpr_idx_on 1, gpr_idx(SRC0)",
        ),
        *("v_mov_b32 v9, v30", "s_set_gpr_idx_idx s28", "v_mov_b32 v8, v30"),
        *("s_set_gpr_idx_mode gpr_idx(DST)", "v_mov_b32 v32, v30", "s_set_gpr_idx_off"),
        *("v_xor_b32 v8, v8, v32", "v_xor_b32 v8, v8, v34", "s_mov_b32 s16, m0"),
    )
    probes.append(Probe("\n  ".join(lines), ("32", "32", "32"), about="s_set_gpr_idx_idx"))
    return probes
