"""Probes of vector ALU instructions that only gfx1250 has."""

from __future__ import annotations

import re

from oracle.probes.loaded import ALL, SOME
from oracle.probes.probe import Probe
from oracle.probes.try_vector import REGISTERS, mixtures
from oracle.vector import cdna5_valu

SMALL = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
# Kinds of operands whose results are not NaN.
SPECIAL = ("oddbrain16", "tiebrain16", "edgebrain16")
TAME = {"f32": "finite32", "f16": "finite16", "bf16": "ragged16"}


def alone() -> list[Probe]:
    return [
        *_packed(),
        *_brain(),
        *_lanes(),
        *_look_ups(),
        *_widened(),
        *_narrowed(),
        *_short(),
        *_duals(),
        *_scalars(),
    ]


# Scalar registers in place of any sources.
THREE = ("v2, v4, v6", "s24, v4, v6", "v2, s26, v6", "v2, v4, s26", "s24, s26, v6", "v2, s26, s24")
THREE = (*THREE, "s24, v4, s26")


def _scalars() -> list[Probe]:
    """Scalars in instructions that have them on gfx1250 only, or whose probes do; 64-bit literals.
    The dot products' probes differ in the signs of bytes, and in saturation."""
    probes = []
    for sources in THREE:
        for bits in (0xA6, 0x59):  # each row of the table once set, once clear
            probes.append(Probe(f"v_bitop3_b16 v8, {sources} bitop3:{bits:#x}", ("32",) * 3))
        for clamp in ("", " clamp"):
            probes.append(Probe(f"v_dot4_u32_u8 v8, {sources}{clamp}", ("32",) * 3))
            for signs in ("", " neg_lo:[1,1,0]", " neg_lo:[1,0,0]", " neg_lo:[0,1,0]"):
                text = f"v_dot4_i32_iu8 v8, {sources}{signs}{clamp}"
                probes.append(Probe(text, ("32",) * 3))
    for sources in ("v2, v4", "s24, v4", "v2, s26"):
        for name in ("v_pk_lshlrev_b16", "v_pk_lshrrev_b16", "v_pk_sub_i16"):
            probes.append(Probe(f"{name} v8, {sources}", ("32",) * 2))
    literal = "0x3ff123456789abcd"
    for first in ("v[2:3]", "s[24:25]"):
        for text in (
            f"v_fmamk_f64 v[8:9], {first}, {literal}, v[4:5]",
            f"v_fmaak_f64 v[8:9], {first}, v[4:5], {literal}",
        ):
            probes.append(Probe(text, ("tame64",) * 2, "f64"))
    return probes


def _packed() -> list[Probe]:
    probes = []
    forms = ["", " op_sel:[1,0,1]", " op_sel_hi:[0,1,0]", " op_sel:[0,1,1] op_sel_hi:[1,0,0]"]
    for name, (kind, _) in cdna5_valu.PAIRED.items():
        kinds, result = (kind,) * 3, "2f16" if kind == "f16" else "b64"
        more = [" neg_lo:[1,0,1]", " neg_hi:[0,1,1]", " clamp"] if kind == "f16" else []
        texts = [", ".join(("s24", *REGISTERS[32][1:]))]
        texts += [f"{', '.join(REGISTERS[32])}{form}" for form in forms + more]
        mixed = mixtures(("f16" if kind == "f16" else "32",) * 3, list(REGISTERS[32]))
        texts += [", ".join(chosen) for chosen in mixed]
        probes += [Probe(f"{name} v8, {text}", kinds, result) for text in texts]
    return probes


def _brain() -> list[Probe]:
    probes = []
    for name in cdna5_valu.BRAIN:
        positive = any(part in name for part in ("log", "sqrt", "rsq"))
        turns = "sin" in name or "cos" in name
        kinds = ("brainturn16" if turns else "tamebrain16",)
        if positive:  # NaN of negative numbers
            probes.append(Probe(f"{name}_e64 v8, v2", ("oddbrain16",), "2bf16"))
        for source in ("|v2|",) if positive else ("v2", "-v2", "-|v2|", "s24"):
            probes.append(Probe(f"{name}_e64 v8, {source}", kinds))
            if not turns:
                probes.append(Probe(f"{name}_e64 v8, {source}", ("oddbrain16",), "2bf16"))
            if source[0] == "v":
                probes.append(Probe(f"{name}_e64 v8, {source} op_sel:[1,0]", kinds))
                probes.append(Probe(f"{name}_e64 v8, {source} op_sel:[0,1]", kinds))
                probes.append(Probe(f"{name}_e64 v8, {source} clamp", kinds))
    forms = ["", " op_sel:[1,0,1]", " op_sel_hi:[0,1,0]", " neg_lo:[1,0,1]", " neg_hi:[0,1,1]"]
    forms.append(" clamp")
    for name in cdna5_valu.BRAIN_PAIRS:
        count = 3 if "fma" in name else 2
        for form in forms:
            if count == 2:
                form = re.sub(r",\d\]", "]", form)
            text = f"{name} v8, {', '.join(REGISTERS[32][:count])}{form}"
            probes += [Probe(text, (kind,) * count) for kind in ("ragged16", "tamebrain16")]
            # Infinities, NaN, sums and products of 2^128 and more, and those in the middle.
            probes += [Probe(text, (k,) * count, "2bf16") for k in SPECIAL]
        probes.append(
            Probe(f"{name} v8, s24, {', '.join(REGISTERS[32][1:count])}", ("ragged16",) * count)
        )
    return probes


def _lanes() -> list[Probe]:
    probes = []
    for name in cdna5_valu.MOVES:
        for selector in (0, 1, 3, 8, 21):
            for size in (1, 2, 4, 8, 16, 32):
                text = f"s_mov_b32 s40, {selector}\n  s_mov_b32 s41, {size}"
                text = f"{text}\n  {name} v8, v2, s40, s41"
                probes.append(Probe(text, ("32",), about=name))
    name = "v_permlane_idx_gen_b32"
    for size in (1, 2, 4, 8, 16, 32):
        probes.append(Probe(f"s_mov_b32 s41, {size}\n  {name} v8, v2, s41", ("32",), about=name))
    return probes


def _look_ups() -> list[Probe]:
    probes = []
    for name, count, texts in (
        ("v_perm_pk16_b4_u4", 2, ("v2, v4, v[6:7]", "s24, v4, v[6:7]", "v2, s26, v[6:7]")),
        ("v_perm_pk16_b6_u4", 3, ("v2, v[4:5], v[6:7]", "s24, v[4:5], v[6:7]")),
        ("v_perm_pk16_b8_u4", 4, ("v[2:3], v[4:5], v[6:7]", "s[24:25], v[4:5], v[6:7]")),
    ):
        target = "v[8:9]" if count == 2 else f"v[40:{39 + count}]"
        for text in texts:
            for back in _backs(count) if count > 2 else ((),):
                lines = (f"{name} {target}, {text}", *back)
                if count > 2:  # what inactive lanes keep is seen too
                    old = (f"v_mov_b32 v{40 + k}, v8" for k in range(count))
                    lines = (ALL, *old, SOME, *lines[:1], ALL, *back)
                probes.append(Probe("\n  ".join(lines), ("64", "64", "64"), about=name))
    return probes


def _backs(count: int) -> list[tuple[str, str]]:
    """Copies each pair of results to the record."""
    return [
        (f"v_mov_b32 v8, v{40 + k}", f"v_mov_b32 v9, v{40 + min(k + 1, count - 1)}")
        for k in range(0, count, 2)
    ]


def _widened() -> list[Probe]:
    probes = []
    for small, bits in SMALL.items():
        count = 16 if bits == 6 else 8
        words = count * bits // 32
        sources = {1: "v2", 2: "v[2:3]", 3: "v[2:4]"}[words]
        picks = (0, 1, 2, 4, 6, 10, 13, 14) if bits == 8 else (0, 2, 4, 6)
        for kind in ("f32", "f16", "bf16"):
            name = f"v_cvt_scale_pk{count}_{kind}_{small}"
            results = count if kind == "f32" else count // 2
            for pick in picks:
                scale = "v_and_b32 v20, 0x07070707, v6\n  v_add_nc_u32 v20, 0x7a7a7a7a, v20"
                select = f" scale_sel:{pick}" if pick else ""
                one = f"{name} v[40:{39 + results}], {sources}, v20{select}"
                backs = _backs(results) if not pick else _backs(results)[:1]
                for back in backs:
                    lines = ("s_mov_b32 exec_lo, -1", scale, "s_mov_b32 exec_lo, s20", one, *back)
                    probes.append(Probe("\n  ".join(lines), ("64", "64", "64"), about=name))
    return probes


def _narrowed() -> list[Probe]:
    probes = []
    for small, bits in SMALL.items():
        count = 16 if bits == 6 else 8
        words = count * bits // 32
        for kind in ("f32", "f16", "bf16"):
            registers = count if kind == "f32" else count // 2
            moves = []
            for k in range(registers):
                moves.append(f"v_mov_b32 v{60 + k}, v{(2, 4)[k % 2]}")
                if kind == "f32":  # other exponents
                    moves.append(f"v_ldexp_f32 v{60 + k}, v{60 + k}, {k // 2 - 3}")
                elif k >= 2:
                    moves.append(f"v_alignbit_b32 v{60 + k}, v{60 + k}, v{62 - k % 2}, 16")
            for noise in ("", "sr_"):
                name = f"v_cvt_scalef32_{noise}pk{count}_{small}_{kind}"
                target = f"v[40:{39 + words}]" if words > 1 else "v40"
                seed = "v7, " if noise else ""
                one = f"{name} {target}, v[60:{59 + registers}], {seed}v6"
                kinds = (TAME[kind], TAME[kind], "scale32")
                backs = _backs(words) if words > 1 else [("v_mov_b32 v8, v40",)]
                for back in backs:
                    lines = (*moves, one, *back)
                    probes.append(Probe("\n  ".join(lines), kinds, about=name))
    return probes


def _short() -> list[Probe]:
    probes = []
    for small in ("fp8", "bf8"):
        for source in ("v2", "s24"):
            for select in ("", " op_sel:[0,1]"):
                text = f"v_cvt_pk_{small}_f16 v8, {source}{select}"
                probes.append(Probe(text, ("finite16",)))
        for select in ("", " op_sel:[1,0]"):
            probes.append(Probe(f"v_cvt_pk_f16_{small}_e64 v8, v2{select}", ("16",), "2f16"))
        for byte in range(4):
            select = f" byte_sel:{byte}" if byte else ""
            probes.append(Probe(f"v_cvt_f16_{small}_e64 v8, v2{select}", ("32",), "2f16"))
            for source in ("v2", "-v2", "|v2|"):
                text = f"v_cvt_sr_{small}_f16 v8, {source}, v4{select}"
                probes.append(Probe(text, ("finite16", "32")))
    return probes


# New halves of VOPD, and forms with signs and masks of their own: first, second half; kind of the
# operands, and of the results.
DUALS = (
    *(
        (first, second, "finite32", "b64")
        for first, second in (
            *(
                (f"{name} v8, v2, v4", "mov_b32 v9, v3")
                for name in ("sub_nc_u32", "lshrrev_b32", "ashrrev_i32", "lshlrev_b32")
            ),
            *(
                ("mov_b32 v8, v2", f"{name} v9, v3, v5")
                for name in ("sub_nc_u32", "lshrrev_b32", "ashrrev_i32", "min_i32", "max_i32")
            ),
            *(
                ("mov_b32 v8, v2", f"bitop2_b32 v9, {sources} bitop3:{table}")
                for table in ("0x54", "0x14", "0x40", "0x41", "0x11", "0x4")
                for sources in ("v3, v5", "s24, v5", "31, v5")
            ),
            ("add_nc_u32 v8, v2, v4", "mov_b32 v9, v3"),
            ("mov_b32 v8, v9", "bitop2_b32 v9, v8, v5 bitop3:0x54"),
            ("cndmask_b32 v8, v2, v4, s22", "mov_b32 v9, v3"),
            ("cndmask_b32 v8, -v2, v4, s22", "cndmask_b32 v9, v3, -v5, s16"),
            ("mov_b32 v8, v2", "cndmask_b32 v9, -v3, v5, vcc_lo"),
        )
    ),
    *(
        (first, second, "f32", "2f32")
        for first, second in (
            ("fma_f32 v8, v2, v4, v6", "mul_f32 v9, v3, v5"),
            ("fma_f32 v8, -v2, v4, -v6", "mul_f32 v9, v3, -v5"),
            ("fma_f32 v8, s24, v4, v6", "fma_f32 v9, v3, -v5, v7"),
            ("add_f32 v8, -v2, v4", "sub_f32 v9, -v3, v5"),
            ("fmac_f32 v8, -v2, v4", "fmac_f32 v9, v3, -v5"),
            ("fma_f32 v8, v9, v2, v4", "fma_f32 v9, v8, v3, v5"),
        )
    ),
)
DOUBLES = ("add_f64 {0}", "mul_f64 {0}", "max_num_f64 {0}", "min_num_f64 {0}", "fma_f64 {0}, {1}")


def _duals() -> list[Probe]:
    probes = []
    for first, second, kind, result in DUALS:
        text = f"v_dual_{first} :: v_dual_{second}"
        probes.append(Probe(text, (kind,) * 3, result))
    for form in DOUBLES:
        for sources, last in (("v[2:3], v[4:5]", "v[6:7]"), ("-v[2:3], v[4:5]", "-v[6:7]")):
            name, _, rest = form.format(sources, last).partition(" ")
            line = f"v_dual_{name} v[8:9], {rest} :: v_dual_mov_b32 v40, v5"
            # Either half's result.
            probes.append(Probe(line, ("tame64",) * 3, "f64"))
            back = "v_mov_b32 v8, v40\n  v_mov_b32 v9, v40"
            probes.append(Probe(f"{line}\n  {back}", ("tame64",) * 3, about=name))
    return probes
