"""Matrix instructions of a warp group, on the host.

Operands of wgmma lie in shared memory, as its descriptors say. Each thread computes its own sums,
when the instruction is issued. Products are added in f32 one after another: a GPU's order is not
documented, and it adds those of 8-bit floats with fewer bits.

Sources: PTX ISA 8.8, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Register
Fragments and Shared Memory Matrix Layouts".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fly_cpu.operations import conversions

_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.f32\.(\w+)\.(\w+)"
    r" \{[^}]*\}, \$\d+, \$\d+, 1, 1, 1(?:, ([01]), ([01]))?;"
)
_FROM_REGISTERS = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(\w+)\.(\w+)"
    r" \{[^}]*\}, \{[^}]*\}, \$\d+, 1, 1, 1, ([01]);"
)
_WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+);")
# Type → bytes, and the load of an element at %p as a float.
TYPES = {
    "bf16": (2, "  %v = load bfloat, ptr %p\n  %f = fpext bfloat %v to float\n"),
    "f16": (2, "  %v = load half, ptr %p\n  %f = fpext half %v to float\n"),
    # The lower 13 bits of the fraction are not read.
    "tf32": (
        4,
        "  %v = load i32, ptr %p\n  %t = and i32 %v, -8192\n  %f = bitcast i32 %t to float\n",
    ),
    **{
        name: (
            1,
            f"""  %v = load i8, ptr %p
  %w = zext i8 %v to i16
  %h = call half @fly.wide.{name}(i16 %w)
  %f = fpext half %h to float
""",
        )
        for name in ("e4m3", "e5m2")
    },
}

_LIBRARY = """
; Where an element of an operand is in shared memory, by its descriptor. %size is in bytes, %across
; tells whether the operand is contiguous across K.
define internal i64 @fly.operand(i64 %descriptor, i64 %mn, i64 %k, i64 %size, i1 %across, i32 %site)
    nounwind {
entry:
  %start.16 = and i64 %descriptor, 16383
  %start = shl i64 %start.16, 4
  %d.1 = lshr i64 %descriptor, 16
  %leading.16 = and i64 %d.1, 16383
  %leading = shl i64 %leading.16, 4
  %d.2 = lshr i64 %descriptor, 32
  %stride.16 = and i64 %d.2, 16383
  %stride = shl i64 %stride.16, 4
  %mode = lshr i64 %descriptor, 62
  %swizzled = icmp ne i64 %mode, 0
  ; 1, 2, 3: rows of 128, 64 and 32 bytes
  %less = sub i64 %mode, 1
  %shift = select i1 %swizzled, i64 %less, i64 0
  %long = lshr i64 128, %shift
  %row = select i1 %swizzled, i64 %long, i64 16
  %below = sub i64 %row, 1
  %mn.8 = urem i64 %mn, 8
  %mn.group = udiv i64 %mn, 8
  %k.8 = urem i64 %k, 8
  %k.group = udiv i64 %k, 8
  br i1 %across, label %by.mn, label %by.k
by.k:
  %k.bytes = mul i64 %k, %size
  %k.inside = and i64 %k.bytes, %below
  %k.columns = udiv i64 %k.bytes, %row
  %k.step = select i1 %swizzled, i64 %row, i64 %leading
  %k.far = mul i64 %k.columns, %k.step
  %k.down = mul i64 %mn.8, %row
  %k.groups = mul i64 %mn.group, %stride
  %k.1 = add i64 %k.inside, %k.far
  %k.2 = add i64 %k.down, %k.groups
  %k.offset = add i64 %k.1, %k.2
  br label %both
by.mn:
  %m.bytes = mul i64 %mn, %size
  %m.inside = and i64 %m.bytes, %below
  %m.columns = udiv i64 %m.bytes, %row
  %m.far = mul i64 %m.columns, %leading
  %m.down = mul i64 %k.8, %row
  %m.groups = mul i64 %k.group, %stride
  %m.1 = add i64 %m.inside, %m.far
  %m.2 = add i64 %m.down, %m.groups
  %m.offset = add i64 %m.1, %m.2
  br label %both
both:
  %offset = phi i64 [ %k.offset, %by.k ], [ %m.offset, %by.mn ]
  %plain = add i64 %start, %offset
  %moved = lshr i64 %plain, 3
  %mask = and i64 %below, -16
  %bits = and i64 %moved, %mask
  %there = xor i64 %plain, %bits
  %address = call i64 @fly.shared_at(i64 %there, i64 %size, i32 %site)
  call void @fly.strict.product(i64 %address, i64 %size, i32 %site)
  ret i64 %address
}
"""


def library() -> str:
    """What the functions call, besides the runtime and the module's `fly.shared_at`."""
    return _LIBRARY


def _load(kind: str, letter: str) -> str:
    """A function that loads an element of an operand as a float."""
    size, load = TYPES[kind]
    given = "i64 %d, i64 %mn, i64 %k, i32 %site"
    return f"""define internal float @fly.operand.{kind}.{letter}({given}) nounwind {{
  %at = call i64 @fly.operand(i64 %d, i64 %mn, i64 %k, i64 {size}, i1 {letter}, i32 %site)
  %p = inttoptr i64 %at to ptr
{load}  ret float %f
}}
"""


def wgmma(asm: str, operands: Sequence[str], result: str, prefix: str, site: int):
    """The lines in place of wgmma's assembly, and the functions that they call, by name; None for
    another text. `operands` are values: two descriptors, then the sums."""
    text = " ".join(asm.split())
    if match := _WAIT.fullmatch(text):
        count = len(operands)
        kind = _struct(count)
        waits = [
            f"call void @fly.strict.products(i32 {match[1]})",
            f"call void @fly.warp_group(i32 {site})",
        ]
        return [*waits, *_made(result, kind, list(operands), prefix)], {}
    functions: dict[str, str] = {}
    if match := _WGMMA.fullmatch(text):
        n, k, a, b, *flags = match.groups()
        letters = ["true" if flag == "1" else "false" for flag in flags]
        name = f"fly.wgmma.n{n}.k{k}.{a}.{b}.{letters[0]}.{letters[1]}"
        functions[f"fly.operand.{a}.{letters[0]}"] = _load(a, letters[0])
        rows, given, first = _rows_in_shared(a, letters[0], int(k)), "i64 %da, i64 %db", 2
        passed = f"i64 {operands[0]}, i64 {operands[1]}"
        letter = letters[1]
    elif match := _FROM_REGISTERS.fullmatch(text):
        n, a, b, flag = match.groups()
        k, letter = "16", "true" if flag == "1" else "false"
        name = f"fly.wgmma.registers.n{n}.{a}.{b}.{letter}"
        rows, given, first = _rows_in_registers(a), "i32 %r0, i32 %r1, i32 %r2, i32 %r3, i64 %db", 5
        words = ", ".join(f"i32 {value}" for value in operands[:4])
        passed = f"{words}, i64 {operands[4]}"
    else:
        return None
    functions[f"fly.operand.{b}.{letter}"] = _load(b, letter)
    for kind in {a, b} & {"e4m3", "e5m2"}:
        functions[f"fly.wide.{kind}"] = conversions.widening(kind, f"fly.wide.{kind}")
    functions[name] = _product(name, given, int(n), int(k), rows, (b, letter))
    count = int(n) // 2
    vector, lines = f"<{count} x float>", []
    before = "poison"
    for index, value in enumerate(operands[first:]):
        after = f"{prefix}v{index}"
        lines.append(f"{after} = insertelement {vector} {before}, float {value}, i32 {index}")
        before = after
    lines.append(f"{prefix}r = call {vector} @{name}({passed}, {vector} {before}, i32 {site})")
    values = []
    for index in range(count):
        values.append(f"{prefix}e{index}")
        lines.append(f"{values[-1]} = extractelement {vector} {prefix}r, i32 {index}")
    return [*lines, *_made(result, _struct(count), values, prefix)], functions


def _rows_in_shared(kind: str, across: str, k: int) -> str:
    """Reads this thread's two rows of A, a value of K after another, from shared memory."""
    load = f"call float @fly.operand.{kind}.{across}(i64 %da, i64"
    return f"""  br label %read
read:
  %r = phi i64 [ 0, %entry ], [ %r.next, %read ]
  %a0 = {load} %row, i64 %r, i32 %site)
  %a1 = {load} %row.8, i64 %r, i32 %site)
  %r.2 = shl i64 %r, 1
  %a0.at = getelementptr float, ptr %rows, i64 %r.2
  store float %a0, ptr %a0.at
  %a1.at = getelementptr i8, ptr %a0.at, i64 4
  store float %a1, ptr %a1.at
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, {k}
  br i1 %r.more, label %read, label %ready
ready:
  br label %columns
"""


def _rows_in_registers(kind: str) -> str:
    """Gathers this thread's two rows of A from the four threads that have them: a register has two
    values of K, those of the second row are 8 rows below, those of the last two 8 values behind."""
    element = {"bf16": "bfloat", "f16": "half"}[kind]
    text = ""
    for half in range(2):
        text += f"""  %low.{half} = zext i32 %r{2 * half} to i64
  %high.{half} = zext i32 %r{2 * half + 1} to i64
  %up.{half} = shl i64 %high.{half}, 32
  %both.{half} = or i64 %up.{half}, %low.{half}
  call void @fly.meet(i32 -1, i64 %both.{half}, i32 %site)
  %first.{half} = trunc i64 %quad to i32
"""
        for other in range(4):
            name = f"{half}.{other}"
            text += f"""  %from.{name} = add i32 %first.{half}, {other}
  %heard.{name} = call i64 @fly.heard(i32 %from.{name})
  %four.{name} = bitcast i64 %heard.{name} to <4 x {element}>
"""
            for row in range(2):
                for which in range(2):
                    at = 2 * (8 * half + 2 * other + which) + row
                    one = f"{name}.{row}.{which}"
                    place = f"<4 x {element}> %four.{name}, i32 {2 * row + which}"
                    text += f"""  %v.{one} = extractelement {place}
  %f.{one} = fpext {element} %v.{one} to float
  %p.{one} = getelementptr float, ptr %rows, i64 {at}
  store float %f.{one}, ptr %p.{one}
"""
        # No lane may hand over again before all have heard.
        text += "  call void @fly.meet(i32 -1, i64 0, i32 %site)\n"
    return text + "  br label %ready\nready:\n  br label %columns\n"


def _struct(count: int) -> str:
    return f"{{ {', '.join(['float'] * count)} }}"


def _made(result: str, kind: str, values: list[str], prefix: str) -> list[str]:
    """The lines that make a struct of values."""
    lines, before = [], "poison"
    for index, value in enumerate(values):
        after = result if index == len(values) - 1 else f"{prefix}s{index}"
        lines.append(f"{after} = insertvalue {kind} {before}, float {value}, {index}")
        before = after
    return lines


def _product(name: str, given: str, n: int, k: int, rows: str, b: tuple[str, str]) -> str:
    """D += A·B: this thread's sums, of two rows that are 8 apart, and pairs of columns. `rows`
    stores the rows of A to %rows."""
    count = n // 2
    vector = f"<{count} x float>"
    return f"""define internal {vector} @{name}({given}, {vector} %sums, i32 %site)
    noinline nounwind {{
entry:
  %held = alloca [{count} x float], align 64
  %rows = alloca [{2 * k} x float], align 64
  store {vector} %sums, ptr %held, align 64
  %index = load i64, ptr @fly.index
  %thread = and i64 %index, 127
  %warp = lshr i64 %thread, 5
  %lane = and i64 %thread, 31
  %quad = and i64 %lane, 28
  %row.warp = shl i64 %warp, 4
  %row.lane = lshr i64 %lane, 2
  %row = add i64 %row.warp, %row.lane
  %row.8 = add i64 %row, 8
  %column.lane = and i64 %lane, 3
  %column = shl i64 %column.lane, 1
{rows}columns:
  ; pairs of columns: %c is 2 · (pair's group) + which of the two
  %c = phi i64 [ 0, %ready ], [ %c.next, %store ]
  %group = lshr i64 %c, 1
  %which = and i64 %c, 1
  %group.8 = shl i64 %group, 3
  %first = add i64 %group.8, %column
  %own = add i64 %first, %which
  %group.4 = shl i64 %group, 2
  %place.0 = add i64 %group.4, %which
  %s0.at = getelementptr float, ptr %held, i64 %place.0
  %s1.at = getelementptr i8, ptr %s0.at, i64 8
  %s0.first = load float, ptr %s0.at
  %s1.first = load float, ptr %s1.at
  br label %along
along:
  %j = phi i64 [ 0, %columns ], [ %j.next, %along ]
  %s0 = phi float [ %s0.first, %columns ], [ %s0.next, %along ]
  %s1 = phi float [ %s1.first, %columns ], [ %s1.next, %along ]
  %bv = call float @fly.operand.{b[0]}.{b[1]}(i64 %db, i64 %own, i64 %j, i32 %site)
  %j.2 = shl i64 %j, 1
  %x0.at = getelementptr float, ptr %rows, i64 %j.2
  %x0 = load float, ptr %x0.at
  %x1.at = getelementptr i8, ptr %x0.at, i64 4
  %x1 = load float, ptr %x1.at
  %s0.next = call float @llvm.fma.f32(float %x0, float %bv, float %s0)
  %s1.next = call float @llvm.fma.f32(float %x1, float %bv, float %s1)
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, {k}
  br i1 %j.more, label %along, label %store
store:
  store float %s0.next, ptr %s0.at
  store float %s1.next, ptr %s1.at
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, {n // 4}
  br i1 %c.more, label %columns, label %done
done:
  %result = load {vector}, ptr %held, align 64
  ret {vector} %result
}}
"""
