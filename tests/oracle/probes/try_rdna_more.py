"""Probes of forms that gfx11 and gfx12 have and gfx9 does not: two scalar registers in a vector
instruction, 16-bit scalar floats, and new atomic operations in every address space."""

from __future__ import annotations

from itertools import product

from oracle.memory import rdna_memory
from oracle.probes.loaded import FOLD, registers
from oracle.probes.probe import Probe
from oracle.probes.try_memory import ALL, SOME
from oracle.probes.try_spaces import FLAT, PART, RESOURCE
from oracle.probes.try_vector import REGISTERS, SCALARS, result_kind, width
from oracle.scalar import rdna_salu
from oracle.vector.table import Op

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"


def two_scalars(table: dict[str, Op]) -> list[Probe]:
    """Two of the sources are scalar registers; a third one is a constant."""
    probes = []
    for name, op in table.items():
        sources = op.sources[:-1] if op.tied else op.sources
        if len(sources) < 2 or op.result.endswith("64") or "64" in "".join(sources):
            continue
        if any(part in name for part in ("madmk", "madak", "fmamk", "fmaak", "accvgpr")):
            continue
        kind = result_kind(name, op.result)
        for chosen in product((False, True), repeat=len(sources)):
            if sum(chosen) < 2:
                continue
            scalars = iter((*SCALARS[32], "2.0" if sources[-1][0] == "f" else "-3"))
            operands = [
                next(scalars) if scalar else REGISTERS[width(source)][k]
                for k, (source, scalar) in enumerate(zip(sources, chosen, strict=True))
            ]
            suffix = "_e64" if len(sources) < 3 else ""
            before = "v_mov_b32 v8, v6\n  " if op.tied else ""
            probes.append(
                Probe(
                    f"{before}{name}{suffix} v8, {', '.join(operands)}",
                    op.sources,
                    kind if kind[0] in "f2" else "b64",
                    signalling="fma_dx9" in name,
                )
            )
    return probes


def short_floats() -> list[Probe]:
    """gfx12's scalar arithmetic on f16, and instructions that accumulate into a register."""
    probes = []
    for name in rdna_salu.ARITHMETIC:
        sources = "s24" if name in rdna_salu.ONE_SOURCE else "s24, s26"
        if not name.endswith(("ak", "mk")):  # which f16 lacks
            text = f"s_{name}_f16 s16, {sources}"
            probes.append(Probe(text, ("f16", "f16"), "f16", scalar=True))
    for kind in ("f16", "f32"):
        text = f"s_mov_b32 s16, s44\n  s_fmac_{kind} s16, s24, s26"
        probes.append(Probe(text, (kind,) * 3, kind, scalar=True))
    return probes


def transposed(target: str) -> list[Probe]:
    """gfx12's transposed loads, with all lanes active, which they demand."""
    probes = []
    for name, size in (("b128", 16), ("b64", 8)):
        about = f"global_load_tr_{name}"
        # The beginning and the end of each lane's operands.
        for place in ("v13, s[4:5]", f"v13, s[4:5] offset:{32 - size}"):
            load = f"{about} {registers(30, size)}, {place}"
            fill = [f"v_mov_b32 v{30 + k}, v{4 + k}" for k in range(4)]
            lines = (ALL, *fill, load, WAIT, *FOLD)
            probes.append(Probe("\n  ".join(lines), ("64", "64", "64"), about=about))
    return probes


def atomics(target: str) -> list[Probe]:
    """Accesses through flat and 64-bit addresses and buffers, with and without a result."""
    probes = []
    fill = (ALL, "global_store_dwordx4 v12, v[2:5], s[6:7]", WAIT)
    back = (WAIT, ALL, "global_load_dword v9, v12, s[6:7]", WAIT)
    for name, atomic in rdna_memory.GLOBAL.items():
        if target != "gfx1100" and name in ("csub_u32", "min_f32", "max_f32"):
            continue  # llvm-mc parses them as gfx12's own names
        kind = "tame32" if atomic.kind[0] == "f" or name.startswith("pk") else "32"
        result = "2f32" if atomic.kind[0] == "f" else "b64"
        data = "v[4:5]" if atomic.sources == 2 else "v4"

        def add(*lines: str, about: str, kind: str = kind, result: str = result) -> None:
            text = "\n  ".join((*fill, *lines, *back))
            probes.append(Probe(text, (kind, kind, kind), result, about=about))

        for returns in (False, True):
            head, tail = ("v8, ", " {rtn}") if returns else ("", "")
            for space, last in (("global", ", off"), ("flat", "")):
                about = f"{space}_atomic_{name}"
                text = f"{about} {head}v[16:17], {data}{last}{tail}"
                add(ALL, *FLAT, SOME, text, about=about)
            if name != "csub_u32" or returns:
                about = f"global_atomic_{name}"
                add(SOME, f"{about} {head}v12, {data}, s[6:7]{tail}", about=about)
            for records in ("0x100000", PART):
                resource = [line.format(records=records) for line in RESOURCE]
                about = f"buffer_atomic_{name}"
                text = f"{about} {data}, v12, s[36:39], 0 offen{tail}"
                moved = ("v_mov_b32 v40, v4", "v_mov_b32 v41, v5")
                text = text.replace("v[4:5]", "v[40:41]").replace("v4,", "v40,")
                seen = ("v_mov_b32 v8, v40",) if returns else ()
                add(*moved, *resource, SOME, text, WAIT, *seen, about=about)
    return probes
