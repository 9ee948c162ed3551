"""The tables of docs/types.md: the promotion table, and the pairs that differ from other tools.

`python tests/fly_trace/values/type_tables.py` writes them into the page. FLYDSL is what FlyDSL
0.4.2's `_common_numeric_type_for_op` returns for an addition, TORCH what torch 2.13's
`promote_types` does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fly_trace.values.dtypes import DTYPES
from fly_trace.values.promotion import OPERATIONS_TEXT, TYPES, TYPES_TEXT

PAGE = Path(__file__).parents[3] / "docs" / "types.md"

FLYDSL = """
      bool i8   i16  i32  i64  i128 u8   u16  u32  u64  u128 f16  bf16 f32  f64
 bool i32  i32  i32  i32  i64  i128 i32  i32  u32  u64  u128 f32  f32  f32  f64
 i8   i32  i8   i16  i32  i64  i128 u8   u16  u32  u64  u128 f16  bf16 f32  f64
 i16  i32  i16  i16  i32  i64  i128 i16  u16  u32  u64  u128 f16  bf16 f32  f64
 i32  i32  i32  i32  i32  i64  i128 i32  i32  u32  u64  u128 f32  f32  f32  f64
 i64  i64  i64  i64  i64  i64  i128 i64  i64  i64  u64  u128 f64  f64  f64  f64
 i128 i128 i128 i128 i128 i128 i128 i128 i128 i128 i128 u128 f64  f64  f64  f64
 u8   i32  u8   i16  i32  i64  i128 u8   u16  u32  u64  u128 f16  bf16 f32  f64
 u16  i32  u16  u16  i32  i64  i128 u16  u16  u32  u64  u128 f16  bf16 f32  f64
 u32  u32  u32  u32  u32  i64  i128 u32  u32  u32  u64  u128 f32  f32  f32  f64
 u64  u64  u64  u64  u64  u64  i128 u64  u64  u64  u64  u128 f64  f64  f64  f64
 u128 u128 u128 u128 u128 u128 u128 u128 u128 u128 u128 u128 f64  f64  f64  f64
 f16  f32  f16  f16  f32  f64  f64  f16  f16  f32  f64  f64  f16  f32  f32  f64
 bf16 f32  bf16 bf16 f32  f64  f64  bf16 bf16 f32  f64  f64  f32  bf16 f32  f64
 f32  f32  f32  f32  f32  f64  f64  f32  f32  f32  f64  f64  f32  f32  f32  f64
 f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
TORCH = """
      bool i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
 bool bool i8   i16  i32  i64  u8   ---- ---- ---- f16  bf16 f32  f64
 i8   i8   i8   i16  i32  i64  i16  ---- ---- ---- f16  bf16 f32  f64
 i16  i16  i16  i16  i32  i64  i16  ---- ---- ---- f16  bf16 f32  f64
 i32  i32  i32  i32  i32  i64  i32  ---- ---- ---- f16  bf16 f32  f64
 i64  i64  i64  i64  i64  i64  i64  ---- ---- ---- f16  bf16 f32  f64
 u8   u8   i16  i16  i32  i64  u8   ---- ---- ---- f16  bf16 f32  f64
 u16  ---- ---- ---- ---- ---- ---- u16  ---- ---- f16  bf16 f32  f64
 u32  ---- ---- ---- ---- ---- ---- ---- u32  ---- f16  bf16 f32  f64
 u64  ---- ---- ---- ---- ---- ---- ---- ---- u64  f16  bf16 f32  f64
 f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
 f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
 f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
REASONS = {
    "sign": "an unsigned type lacks the negative numbers",
    "refused": "no type of at most 64 bits (128 with one of 128) represents all values of both",
    "bool": "a bool is a 0 or 1 of the other type, as a Python number is",
    "range": "65535 is infinite in f16",
    "wide": "extents are i64, and f64 is slow on most GPUs: it is never implied. No value is"
    " infinite in f32. (torch never implies f64 either.)",
}


def table(text: str) -> dict[tuple[str, str], str]:
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {
        (row, column): cell
        for row, *cells in rows
        for column, cell in zip(head, cells, strict=True)
    }


def numpys(a: str, b: str) -> str:
    """NumPy's type of two typed values, or an empty cell where it lacks one of them."""
    long = {"i": "int", "u": "uint", "f": "float"}
    if any(name in ("bf16", "i128", "u128") for name in (a, b)):
        return ""
    first, second = (n if n == "bool" else long[n[0]] + n[1:] for n in (a, b))
    found = str(np.result_type(first, second))
    return next(n for n in DTYPES if found in (n, long.get(n[0], "") + n[1:]))


def reason(a: str, b: str) -> str:
    """Why a pair differs from FlyDSL: a key of REASONS."""
    if "bool" in (a, b):
        return "bool"
    if TYPES[DTYPES[a], DTYPES[b]] is None:
        return "refused"
    if not DTYPES[b].is_float:
        return "sign"
    return "range" if (a, b) == ("u16", "f16") else "wide"


def differences() -> str:
    """A row for each pair that differs from FlyDSL."""
    flydsl, torch = table(FLYDSL), table(TORCH)
    lines = ["| | here | FlyDSL | NumPy | torch | |", "|---|---|---|---|---|---|"]
    names = list(DTYPES)
    for at, a in enumerate(names):
        for b in names[at:]:
            found = TYPES[DTYPES[a], DTYPES[b]]
            here = "refused" if found is None else found.name
            if here != flydsl[a, b] and (a, b) != ("bool", "bool"):
                others = f"{flydsl[a, b]} | {numpys(a, b)} | {torch.get((a, b), '')}"
                lines.append(f"| {a}, {b} | {here} | {others} | {REASONS[reason(a, b)]} |")
    return "\n".join(lines) + "\n"


def sections() -> dict[str, str]:
    """The generated parts of the page, by their names in it."""
    return {
        "types": f"```text\n{TYPES_TEXT.strip(chr(10))}\n```\n",
        "operations": f"```text\n{OPERATIONS_TEXT.strip(chr(10))}\n```\n",
        "differences": differences(),
    }


def page(text: str) -> str:
    """The page with its generated parts."""
    for name, made in sections().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, rest = text.split(begin)
        text = before + begin + made + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
