"""Probes of vector ALU instructions: every form in the oracle's tables, as assembly text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from oracle.probes.probe import Probe
from oracle.vector import packed as packed_table
from oracle.vector import saturated, valu

REGISTERS = {64: ("v[2:3]", "v[4:5]", "v[6:7]"), 32: ("v2", "v4", "v6")}
SCALARS = {64: ("s[24:25]", "s[26:27]"), 32: ("s24", "s26")}

# Tolerance in ULP of correctly rounded results: the manuals guarantee 1 for most.
ULP = dict.fromkeys(("exp", "log", "sin", "cos", "rcp", "rsq", "sqrt"), 1)
LITERAL = ("madmk", "madak", "fmamk", "fmaak")


def width(kind: str) -> int:
    return 64 if kind.endswith("64") else 32


def result_kind(name: str, kind: str) -> str:
    if name.startswith(("v_cvt_pkrtz", "v_cvt_pk_rtz", "v_cvt_pk_f16", "v_pack_b32_f16")):
        return "2f16"
    return kind


def mixtures(sources: tuple[str, ...], regs: list[str]) -> Iterator[list[str]]:
    """Yields the sources with a scalar register or a constant in each set of places, except none
    and the first alone. An instruction allows one scalar register; constants fill the other
    places."""
    for chosen in product((False, True), repeat=len(sources)):
        if not any(chosen[1:]):
            continue
        first = chosen.index(True)
        yield [
            regs[k]
            if not scalar
            else SCALARS[width(kind)][min(k, 1)]
            if k == first
            else ("2.0", "-0.5")[k % 2]
            if kind[0] == "f"
            else ("5", "-3")[k % 2]
            for k, (kind, scalar) in enumerate(zip(sources, chosen, strict=True))
        ]


def vector(table: dict[str, valu.Op] = valu.VALU) -> list[Probe]:
    """VOP1, VOP2 and VOP3 from the table, in each form that an encoding has."""
    probes = []
    for name, op in table.items():
        base = name[2:].split("_")[0]
        kind = result_kind(name, op.result)
        target = "v8" if width(op.result) == 32 else "v[8:9]"
        sources = op.sources[:-1] if op.tied else op.sources
        regs = [REGISTERS[width(kind_)][k] for k, kind_ in enumerate(sources)]
        # The accumulator of a result is an operand like others.
        words = width(op.result) // 32 if op.tied else 0
        before = "".join(f"v_mov_b32 v{8 + k}, v{6 + k}\n  " for k in range(words))
        make = {
            "sources": op.sources,
            "result": kind if kind[0] in "f2" else "b64",
            "ulp": ULP.get(base, 0),
            # A product with zero leaves DX9's addend unchanged, including a signalling NaN. So do
            # the coordinates of cube maps.
            "signalling": base == "frexp" or base.startswith("cube") or "fma_dx9" in name,
        }
        if base in ("sin", "cos"):  # the manual's domain is ±256 turns
            make["sources"] = (f"tame{op.result[1:]}",)
        if base in LITERAL:
            at = 1 if base.endswith("mk") else 2
            # For f16 the values that probe.TRIPLES have there.
            literal = ("0x6156", "0x08cc")[at - 1] if op.result == "f16" else "0x40490fdb"
            regs[at] = literal
            for first in (regs[0], SCALARS[32][0], "2.0"):
                probes.append(Probe(f"{name} {target}, {', '.join([first, *regs[1:]])}", **make))
            continue
        if "accvgpr" in name:
            continue
        suffixes = ["_e32", "_e64"] if len(sources) < 3 else [""]
        for suffix in suffixes:
            probes.append(Probe(f"{before}{name}{suffix} {target}, {', '.join(regs)}", **make))
        first = SCALARS[width(sources[0])][0]
        probes.append(Probe(f"{before}{name} {target}, {', '.join([first, *regs[1:]])}", **make))
        reals = ("1.0", "0.15915494") if sources[0] in ("i16", "u16") else ()
        for constant in ("1", "-16", "64", *reals):
            probes.append(
                Probe(f"{before}{name} {target}, {', '.join([constant, *regs[1:]])}", **make)
            )
        for mixed in mixtures(sources, regs):
            probes.append(Probe(f"{before}{name} {target}, {', '.join(mixed)}", **make))
        if op.sources[0][0] == "f":
            turn = "0.15915494309189532" if op.sources[0] == "f64" else "0.15915494"
            for constant in ("0.5", "-4.0", turn, "0x40490fdb"):
                probes.append(
                    Probe(f"{before}{name} {target}, {', '.join([constant, *regs[1:]])}", **make)
                )
            signs = ["-{}", "|{}|", "-|{}|"]
            floats_ = [kind_[0] == "f" for kind_ in sources]
            for turn in range(3):
                modified = [
                    signs[(k + turn) % 3].format(r) if f else r
                    for k, (r, f) in enumerate(zip(regs, floats_, strict=True))
                ]
                suffix = "_e64" if len(sources) < 3 else ""
                probes.append(
                    Probe(f"{before}{name}{suffix} {target}, {', '.join(modified)}", **make)
                )
            if len(sources) == 2:
                modified = [f"-|{first}|", *modified[1:]]
                probes.append(Probe(f"{before}{name}_e64 {target}, {', '.join(modified)}", **make))
        if op.result[0] == "f" or saturated.has(name):
            suffix = "_e64" if len(sources) < 3 else ""
            probes.append(
                Probe(f"{before}{name}{suffix} {target}, {', '.join(regs)} clamp", **make)
            )
        if op.result[0] != "f" and saturated.has(name):
            # Saturating forms have separate handlers.
            for mixed in ([first, *regs[1:]], *mixtures(sources, regs)):
                probes.append(
                    Probe(f"{before}{name}{suffix} {target}, {', '.join(mixed)} clamp", **make)
                )
        if op.keeps_high and op.result.endswith("16"):
            for select in ("[1,0,0,0]", "[0,1,1,1]", "[1,1,1,1]"):
                bits = select.strip("[]").split(",")
                # A 32-bit source has no halves to select from.
                halves = zip(bits, sources, strict=False)
                bits[: len(sources)] = [b if k.endswith("16") else "0" for b, k in halves]
                chosen = ",".join([*bits[: len(sources)], bits[3]])
                probes.append(
                    Probe(
                        f"{before}{name} {target}, {', '.join(regs)} op_sel:[{chosen}]",
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
            if "class" not in name:  # the modifier is about exceptions
                probes.append(Probe(f"{name}_e64 s[16:17], {a}, {b} clamp", op.sources))
            first = SCALARS[width(op.sources[0])][0]
            for mixed in ([first, b], *mixtures(op.sources, [a, b])):
                probes.append(Probe(f"{name}_e64 s[16:17], {', '.join(mixed)}", op.sources))
        elif "cmpx" not in name:
            probes.append(
                Probe(f"{name}_e64 s[16:17], {a}, {SCALARS[width(op.sources[1])][1]}", op.sources)
            )
            scalar = SCALARS[width(op.sources[0])][0]
            for left, right in ((scalar, b), (scalar, "5")):
                probes.append(Probe(f"{name}_e64 s[16:17], {left}, {right}", op.sources))
    return probes


def masks() -> list[Probe]:
    """Instructions that read or write a lane mask besides their result."""
    probes = [
        Probe("v_cndmask_b32_e32 v8, v2, v4, vcc", ("32", "32")),
        *(
            Probe(f"v_cndmask_b32_e64 v8, {mixed}, s[22:23]", ("32", "32"))
            for mixed in ("v2, v4", "v2, -3", "5, v4", "5, -3")
        ),
        Probe("v_cndmask_b32_e64 v8, -v2, |v4|, s[22:23]", ("f32", "f32"), "b64"),
    ]
    for name in ("v_mad_u64_u32", "v_mad_i64_i32"):
        registers = ["v2", "v4", "v[6:7]"]
        kinds = ("u32", "u32", "u64")
        for mixed in (registers, ["s24", *registers[1:]], *mixtures(kinds, registers)):
            text = f"{name} v[8:9], s[16:17], {', '.join(mixed)}"
            probes += [Probe(text + form, ("32", "32", "64")) for form in ("", " clamp")]
    for name, (_, takes, _) in valu.CARRY.items():
        carry = ", vcc" if takes else ""
        probes.append(
            Probe(f"{name}_e32 v8, vcc, v2, v4{carry}\n  s_mov_b64 s[16:17], vcc", ("32", "32"))
        )
        carry = ", s[22:23]" if takes else ""
        text = f"{name}_e64 v8, s[16:17], v2, v4{carry}"
        probes += [Probe(text + form, ("32", "32")) for form in ("", " clamp")]
        # The mask is the only scalar register allowed.
        for mixed in (
            ("v2, -3", "5, v4", "5, 5") if takes else ("v2, s26", "s24, v4", "s24, -3", "s24, 0")
        ):
            text = f"{name}_e64 v8, s[16:17], {mixed}{carry}"
            probes += [Probe(text + form, ("32", "32")) for form in ("", " clamp")]
    for kind, registers in (("f32", ("v2", "v4", "v6")), ("f64", ("v[2:3]", "v[4:5]", "v[6:7]"))):
        target = "v8" if kind == "f32" else "v[8:9]"
        a, b, _ = registers
        # As LLVM uses it: S0 is the denominator or the numerator.
        for s0 in (a, b):
            probes.append(
                Probe(
                    f"v_div_scale_{kind} {target}, vcc, {s0}, {a}, {b}\n  s_mov_b64 s[16:17], vcc",
                    (kind, kind),
                    kind,
                )
            )
        for constants in product((False, True), repeat=3):
            mixed = [
                constant if chosen else register
                for register, constant, chosen in zip(
                    registers, ("2.0", "-0.5", "4.0"), constants, strict=True
                )
            ]
            text = f"v_div_fmas_{kind} {target}, {', '.join(mixed)}"
            probes.append(Probe(text, (kind, kind, kind), kind))
        a_scalar, b_scalar = SCALARS[width(kind)]
        for mixed in (
            *((a_scalar, a_scalar, b), (b, a, b_scalar), (a, a, a_scalar), (a, a_scalar, a)),
            *(("2.0", a, b), ("2.0", a, "2.0"), (a, "2.0", "-0.5"), ("2.0", "2.0", "-0.5")),
            *((a_scalar, "2.0", a_scalar), ("2.0", "2.0", b), (b_scalar, a, b_scalar)),
        ):
            text = f"v_div_scale_{kind} {target}, vcc, {', '.join(mixed)}"
            probes.append(Probe(f"{text}\n  s_mov_b64 s[16:17], vcc", (kind, kind), kind))
    return probes


def packed() -> list[Probe]:
    probes = []
    for name, (kind, plain) in packed_table.PAIRED_16.items():
        count = len(packed_table.SINGLE[plain].sources)
        regs = ", ".join(REGISTERS[32][:count])
        result = "2f16" if kind == "f16" else "b64"
        forms = ["", " op_sel:[1,0,1]", " op_sel_hi:[0,1,0]", " op_sel:[0,1,1] op_sel_hi:[1,0,0]"]
        if kind == "f16":
            forms += [" neg_lo:[1,0,1]", " neg_hi:[0,1,1]", " clamp"]
        forms += SATURATED.get(name, ())
        for form in forms:
            probes.append(Probe(f"{name} v8, {regs}{_trim(form, count)}", (kind,) * count, result))
        registers = list(REGISTERS[32][:count])
        first = ["s24", *registers[1:]]
        for mixed in (first, *mixtures(("f16" if kind == "f16" else "32",) * count, registers)):
            for form in ("", *SATURATED.get(name, ())):
                text = f"{name} v8, {', '.join(mixed)}{form}"
                probes.append(Probe(text, (kind,) * count, result))
        for form in ("1.0", "1.0 op_sel_hi:[1,0,1]", "-4.0 op_sel:[0,1,0]"):
            constant, _, modifier = form.partition(" ")
            operands = ", ".join(("v2", constant, "v6")[:count])
            text = f"{name} v8, {operands}{_trim(modifier and ' ' + modifier, count)}"
            probes.append(Probe(text, (kind,) * count, result))
    for name, plain in packed_table.PAIRED_32.items():
        count = len(valu.VALU[plain].sources) if plain else 2
        regs = ", ".join(REGISTERS[64][:count])
        forms = ["", " op_sel:[1,0,1] op_sel_hi:[0,1,0]", " op_sel:[0,1,0]", " op_sel:[1,1,0]"]
        if plain:
            forms.append(" neg_lo:[1,0,1] neg_hi:[0,1,0]")
        for form in forms:
            probes.append(
                Probe(
                    f"{name} v[8:9], {regs}{_trim(form, count)}",
                    ("f64",) * count,  # both dwords of it are compared
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
    for name in packed_table.DOTS:
        if "c_" in name:
            probes.append(Probe(f"{name}_e32 v8, v2, v4", ("32", "32")))
            for mixed in ("v2, v4 clamp", "s24, v4", "v2, s26", "v2, s26 clamp", "s24, -3"):
                probes.append(Probe(f"{name}_e64 v8, {mixed}", ("32", "32")))
        else:
            for mixed in (REGISTERS[32], *scalar_mixtures(list(REGISTERS[32]))):
                for form in ("", " clamp"):
                    text = f"{name} v8, {', '.join(mixed)}{form}"
                    probes.append(Probe(text, ("32", "32", "32")))
    return probes


# The packed integer instructions that saturate.
SATURATED = dict.fromkeys(
    [f"v_pk_{name}_{kind}16" for name in ("add", "sub", "mad", "min", "max") for kind in "iu"],
    (" clamp",),
)


def scalar_mixtures(registers: list[str]) -> list[list[str]]:
    """Returns 32-bit sources with a scalar register or a constant in each set of places, except
    none."""
    return [["s24", *registers[1:]], *mixtures(("32",) * len(registers), registers)]


def _trim(form: str, count: int) -> str:
    if count == 3:
        return form
    return " ".join(
        part if ":" not in part else part.rsplit(",", 1)[0] + "]" for part in form.split(" ")
    )
