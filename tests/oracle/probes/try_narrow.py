"""Probes of gfx950's matrices of 8, 6 and 4 bits with and without scales, and of its transposed LDS
reads. Nothing is rounded: 8-bit floats have a single exponent, scales are 1 or a half."""

from __future__ import annotations

from itertools import product

from oracle.matrix.matrix_scaled import FORMATS
from oracle.probes.probe import Probe
from oracle.probes.try_matrix import moved, span

# Registers of an operand, and for 8-bit floats the bits to keep and to set.
REGISTERS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
BYTES = {"fp8": ("0x87878787", "0x38383838"), "bf8": ("0x83838383", "0x3c3c3c3c")}
SHAPES = ("16x16x128", "32x32x64")


def _filled(form: str, first: int, source: str) -> list[str]:
    if form not in BYTES:
        return moved(first, REGISTERS[form], source)
    keep, put = BYTES[form]
    more = (f"v_and_b32 {{r}}, {keep}, {{r}}", f"v_or_b32 {{r}}, {put}, {{r}}")
    return moved(first, REGISTERS[form], source, *more)


def _matrix(a: str, b: str, shape: str, selection: str = "", scales: tuple[str, ...] = ()) -> Probe:
    count = 16 if shape.startswith("32") else 4
    name = f"v_mfma_{'scale_' if scales else ''}f32_{shape}_f8f6f4"
    first = span(20, REGISTERS[a])
    second = span(28, REGISTERS[b])
    d = span(36, count)
    behind = ", v56, v57" if scales else ""
    formats = f" cbsz:{FORMATS.index(a)}" * (a != "fp8") + f" blgp:{FORMATS.index(b)}" * (
        b != "fp8"
    )
    one = f"{name} {d}, {first}, {second}, {d}{behind}{selection}{formats}"
    fold = ["v_mov_b32 v8, 0", "v_mov_b32 v9, 0"]
    for r in range(count):
        fold += ["v_alignbit_b32 v8, v8, v8, 5", f"v_xor_b32 v8, v8, v{36 + r}"]
        fold += [f"v_add_u32 v9, v9, v{36 + r}"] * (r % 3 == 0)
    lines = [
        *("s_mov_b64 exec, -1", *_filled(a, 20, "v2"), *_filled(b, 28, "v4")),
        *(*moved(36, count, "v6", "v_add_f32 {r}, 0x3e000000, {r}"), *scales),
        *("s_mov_b64 exec, s[20:21]", "s_nop 7", one, "s_nop 7", "s_nop 7", "s_nop 7"),
        *("s_mov_b64 exec, -1", *fold),
    ]
    return Probe("\n  ".join(lines), ("32", "32", "exact32"), about=name)


SCALES = (
    *("v_and_b32 v56, 0x01010101, v18", "v_or_b32 v56, 0x7e7e7e7e, v56"),
    *("v_and_b32 v57, 0x01010101, v19", "v_or_b32 v57, 0x7e7e7e7e, v57"),
)
# One of A's scales is NaN, and one of B's is the largest possible.
ODD_SCALES = (
    *("v_mov_b32 v56, 0x7f7f7f7f", "v_mov_b32 v57, 0x7f7f7f7f"),
    *("s_nop 1", "v_writelane_b32 v56, -1, 21", "s_nop 1"),
)


def narrow_matrices() -> list[Probe]:
    probes = []
    for number, (a, b) in enumerate(product(FORMATS, FORMATS)):
        shape = SHAPES[number % 2]
        low, high = [(number >> k & 1, number >> k + 1 & 1) for k in (0, 2)]
        selection = f" op_sel:[{low[0]},{low[1]},0] op_sel_hi:[{high[0]},{high[1]},0]"
        probes.append(_matrix(a, b, shape, selection, SCALES))
        if number % 3 == 0:
            probes.append(_matrix(a, b, SHAPES[1 - number % 2]))
    for shape in SHAPES:
        probes.append(_matrix("fp8", "fp8", shape, " op_sel_hi:[0,0,0]", SCALES))
        probes.append(_matrix("fp4", "fp8", shape, " op_sel_hi:[0,0,0]", ODD_SCALES))
    return probes


def transposed() -> list[Probe]:
    """Transposed reads of all lanes' operands in LDS; EXEC is all ones. A lane's address is that of
    its own 16 bytes, or of another lane's."""
    fill = (
        "s_mov_b64 exec, -1",
        "ds_write_b128 v14, v[2:5]",
        "ds_write_b128 v14, v[4:7] offset:1024",
    )
    wait = "s_waitcnt lgkmcnt(0)"
    probes = []
    for name, size in (("b64_tr_b16", 8), ("b64_tr_b8", 8), ("b64_tr_b4", 8), ("b96_tr_b6", 12)):
        target = "v[8:9]" if size == 8 else "v[30:32]"
        after = () if size == 8 else ("v_xor_b32 v8, v30, v31", "v_sub_u32 v9, v31, v32")
        for address in (
            ("v_mov_b32 v16, v14",),
            (f"v_lshrrev_b32 v16, 4, v14\n  v_mul_u32_u24 v16, {size if size == 8 else 16}, v16",),
            ("v_xor_b32 v16, 0x150, v14",),
        ):
            for offset in (0, 16):
                read = f"ds_read_{name} {target}, v16 offset:{offset}"
                lines = (*fill, *address, wait, read, wait, *after)
                probes.append(
                    Probe("\n  ".join(lines), ("64", "64", "64"), about=f"ds_read_{name}")
                )
    return probes
