"""Probes of conversions from and to floats of 8, 6 and 4 bits, and of dot products of floats."""

from __future__ import annotations

from oracle.probes.probe import Probe
from oracle.probes.try_memory import ALL, SOME
from oracle.probes.try_vector import scalar_mixtures

# A value, a random number and a scale; one scalar register, and constants.
MIXED_STOCHASTIC = (
    *((text, "32", "scale32") for text in ("s24, v4, v6", "v2, s26, v6", "s24, 5, v6")),
    *((text, "32", "scale32") for text in ("s24, v4, 4.0", "s24, -3, 4.0")),
    *((text, "scale32", "32") for text in ("v2, v6, s26", "v2, -3, s26")),
)
WIDE = ("f32", "f16", "bf16")


def small() -> list[Probe]:
    return [*_plain(), *_scaled(), *_scaled_32(), *dots()]


def _plain() -> list[Probe]:
    probes = []
    for t in ("fp8", "bf8"):
        for source in ("v2", "s24"):
            probes.append(Probe(f"v_cvt_f32_{t}_e32 v8, {source}", ("32",), "f32"))
        probes.append(Probe(f"v_cvt_pk_f32_{t}_e32 v[8:9], v2", ("32",), "2f32"))
        for k in range(4):
            probes.append(Probe(f"v_cvt_f32_{t}_sdwa v8, v2 src0_sel:BYTE_{k}", ("32",), "f32"))
        for k in range(2):
            probes.append(
                Probe(f"v_cvt_pk_f32_{t}_sdwa v[8:9], v2 src0_sel:WORD_{k}", ("32",), "2f32")
            )
        for select in ("", " op_sel:[0,0,1]"):
            probes.append(
                Probe(f"v_cvt_pk_{t}_f32 v8, v2, v4{select}", ("small32", "small32"), "b64")
            )
        probes.append(Probe(f"v_cvt_pk_{t}_f32 v8, -v2, |v4|", ("f32", "f32"), "b64"))
        for mixed in ("s24, 1.0", "s24, v4", "v2, s26"):
            probes.append(Probe(f"v_cvt_pk_{t}_f32 v8, {mixed}", ("f32", "f32"), "b64"))
        for select in ("", " op_sel:[0,0,1,0]", " op_sel:[0,0,0,1]", " op_sel:[0,0,1,1]"):
            probes.append(Probe(f"v_cvt_sr_{t}_f32 v8, v2, v4{select}", ("tame32", "32"), "b64"))
        for mixed in ("s24, v4", "v2, s26", "s24, 0x89abcdef", "s24, -3", "2.0, s26"):
            probes.append(Probe(f"v_cvt_sr_{t}_f32 v8, {mixed}", ("tame32", "32"), "b64"))
    return probes


def _scaled() -> list[Probe]:
    probes = []

    def add(name: str, arguments: str, select: str, *kinds: str, result: str = "b64") -> None:
        select = f" op_sel:{select}" if select else ""
        probes.append(Probe(f"v_cvt_scalef32_{name} {arguments}{select}", kinds, result))

    for wide in WIDE:
        pair = "v[8:9]" if wide == "f32" else "v8"
        source = "v[2:3]" if wide == "f32" else "v2"
        two = "v2, v4, " if wide == "f32" else "v2, "
        scale = "v6" if wide == "f32" else "v4"
        kind = "finite32" if wide == "f32" else "finite16" if wide == "f16" else "brain16"
        floats = (kind, kind, "scale32") if wide == "f32" else (kind, "scale32")
        result = {"f32": "2f32", "f16": "2f16", "bf16": "b64"}[wide]
        for t in ("fp8", "bf8"):
            for select in ("", "[1,0,0]"):
                add(f"pk_{wide}_{t}", f"{pair}, v2, v4", select, "32", "scale32", result=result)
            for select in ("", "[0,0,0,1]") if wide == "f32" else ("", "[0,0,1]"):
                add(f"pk_{t}_{wide}", f"v8, {two}{scale}", select, *floats)
            # The scale may also be scalar, and so may the value and the random number.
            if wide == "f32":
                for mixed in ("v2, v4, s26", "s24, v4, v6", "s24, 1.0, v6", "s24, -2.0, 4.0"):
                    add(f"pk_{t}_{wide}", f"v8, {mixed}", "", *floats)
                for mixed, *kinds in MIXED_STOCHASTIC:
                    add(f"sr_{t}_{wide}", f"v8, {mixed}", "", "tame32", *kinds)
            for mixed in ("v2, s26", "s24, v4", "s24, 4.0"):
                add(f"pk_{wide}_{t}", f"{pair}, {mixed}", "", "32", "scale32", result=result)
            for select in ("", "[0,0,1,0]", "[0,0,0,1]", "[0,0,1,1]"):
                tame = {"f32": "tame32", "f16": "finite16", "bf16": "brain16"}[wide]
                add(f"sr_{t}_{wide}", "v8, v2, v4, v6", select, tame, "32", "scale32")
            if wide == "bf16":
                continue
            for select in ("", "[1,0,0]", "[0,1,0]", "[1,1,0]"):
                kind8 = "2f16" if wide == "f16" else "f32"
                add(f"{wide}_{t}", "v8, v2, v4", select, "32", "scale32", result=kind8)
            if wide == "f16":
                add(f"{wide}_{t}", "v8, v2, v4", "[1,0,1]", "32", "scale32", result="2f16")
        for select in ("", "[1,0,0]", "[0,1,0]", "[1,1,0]"):
            add(f"pk_{wide}_fp4", f"{pair}, v2, v4", select, "32", "scale32", result=result)
        for select in ("", "[0,0,1,0]", "[0,0,0,1]", "[0,0,1,1]"):
            add(f"pk_fp4_{wide}", f"v8, {two}{scale}", select, *floats)
            if wide == "f32":
                for mixed in ("v2, v4, s26", "s24, v4, v6", "s24, 1.0, 4.0"):
                    add(f"pk_fp4_{wide}", f"v8, {mixed}", select, *floats)
            kinds = ("f64", "32", "scale32") if wide == "f32" else (kind, "32", "scale32")
            if wide != "f32":
                add(f"sr_pk_fp4_{wide}", f"v8, {source}, v4, v6", select, *kinds)
                for mixed in ("s26, v6", "v4, 2.0", "s26, 0.5", "5, 2.0"):
                    add(f"sr_pk_fp4_{wide}", f"v8, {source}, {mixed}", select, *kinds)
    for select in ("", "[0,0,0,1]"):
        lines = "v_mov_b32 v40, v2\n  v_mov_b32 v41, v4"
        probes.append(
            Probe(
                f"{lines}\n  v_cvt_scalef32_sr_pk_fp4_f32 v8, v[40:41], v5, v6"
                + (f" op_sel:{select}" if select else ""),
                ("tame32", "tame32", "scale32"),
            )
        )
    return probes


def _scaled_32() -> list[Probe]:
    """32 values computed from the operands: each register of the source differs from the others."""
    probes = []

    def add(kind: str, lines: list[str], convert: str) -> None:
        kinds, name = (kind, kind, "scale32"), convert.split()[0]
        probes.append(Probe("\n  ".join(lines), kinds, about=name))

    def narrow(kind: str, values: list[str], convert: str) -> None:
        """Also compares the registers of inactive lanes afterwards."""
        back = ["v_xor_b32 v8, v40, v41", "v_xor_b32 v9, v42, v43"]
        back += ["v_add_u32 v8, v8, v44", "v_add_u32 v9, v9, v45"]
        old = [f"v_mov_b32 v{40 + k}, v19" for k in range(6)]
        add(kind, [ALL, *values, *old, SOME, convert, ALL, *back], convert)

    for t in ("fp6", "bf6"):
        fill = [f"v_alignbit_b32 v{40 + k}, v2, v4, {5 * k + 1}" for k in range(6)]
        for wide in WIDE:
            count = 32 if wide == "f32" else 16
            take = [f"v_xor_b32 v8, v8, v{46 + k}" for k in range(0, count, 3)]
            take += [f"v_add_u32 v9, v9, v{46 + k}" for k in range(count)]
            last = 45 + count
            old = [f"v_mov_b32 v{46 + k}, v18" for k in range(count)]
            name = f"v_cvt_scalef32_pk32_{wide}_{t}"
            for scale in ("v6", "s26"):
                convert = f"{name} v[46:{last}], v[40:45], {scale}"
                kinds = ("32", "scale32" if scale == "s26" else "32", "scale32")
                lines = [ALL, *fill, *old, SOME, convert, ALL, *take]
                probes.append(Probe("\n  ".join(lines), kinds, about=name))
            values = [
                f"v_ldexp_f32 v{46 + k}, v{(2, 4)[k % 2]}, {k // 2 - 8}"
                if wide == "f32"
                else f"v_pk_mul_f16 v{46 + k}, v2, v4 op_sel_hi:[{k % 2},{k // 2 % 2}]"
                if wide == "f16"
                else f"v_xor_b32 v{46 + k}, {'0x8000' if k % 2 else '0x80008000'}, v{(2, 4)[k % 2]}"
                for k in range(count)
            ]
            kind = {"f32": "finite32", "f16": "finite16", "bf16": "brain16"}[wide]
            if wide == "f32":
                convert = f"v_cvt_scalef32_2xpk16_{t}_f32 v[40:45], v[46:61], v[62:77], v6"
            else:
                convert = f"v_cvt_scalef32_pk32_{t}_{wide} v[40:45], v[46:{last}], v6"
            narrow(kind, values, convert)
            convert = convert.replace(", v6", ", 4.0")
            narrow(kind, values, convert)
            # The stochastic form, with a seed from both operands' bits.
            for seed, scale in (("v18", "v6"), ("s24", "v6"), ("v18", "2.0"), ("s24", "0.5")):
                operands = f"v[40:45], v[46:{last}], {seed}, {scale}"
                convert = f"v_cvt_scalef32_sr_pk32_{t}_{wide} {operands}"
                narrow(kind, values, convert)
    return probes


def dots() -> list[Probe]:
    """V_DOT2_F32, on operands for which nothing is rounded."""
    probes = []
    for t, kind in (("f16", "exact16"), ("bf16", "brain16")):
        name = f"v_dot2_f32_{t}"
        forms = ["", " neg_lo:[1,0,0]", " neg_hi:[0,1,0]", " op_sel:[1,0,0]"]
        for form in [*forms, " op_sel_hi:[0,1,1]"]:
            probes.append(Probe(f"{name} v8, v2, v4, v6{form}", (kind, kind, "exact32"), "f32"))
        probes.append(
            Probe(
                f"v_mov_b32 v8, v6\n  v_dot2c_f32_{t}_e32 v8, v2, v4",
                (kind, kind, "exact32"),
                "f32",
            )
        )
        for mixed in ("s24, v4", "v2, s26", "s24, s24"):
            text = f"v_mov_b32 v8, v6\n  v_dot2c_f32_{t}_e64 v8, {mixed}"
            probes.append(Probe(text, (kind, kind, "exact32"), "f32"))
        for *factors, addend in scalar_mixtures(["v2", "v4", "v6"]):
            # Factors have two 16-bit floats, the addend is an f32: uses constants that fit.
            mixed = [one if one[0] in "vs" else "-2.0" for one in factors]
            mixed.append(addend if addend[0] == "v" else "2.0")
            text = f"{name} v8, {', '.join(mixed)}"
            probes.append(Probe(text, (kind, kind, "exact32"), "f32"))
    return probes
