"""Matrix instructions of a warp group, and copies of matrices by a warp, on the host.

Operands of wgmma lie in shared memory, as its descriptors say. Each thread computes its own sums,
when the instruction is issued. Products are added in f32 one after another: a GPU's order is not
documented, and it adds those of 8-bit floats with fewer bits.

Sources: PTX ISA 8.8, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Register
Fragments and Shared Memory Matrix Layouts", "ldmatrix", "stmatrix".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fly_cpu import conversions

_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.f32\.(\w+)\.(\w+)"
    r" \{[^}]*\}, \$\d+, \$\d+, 1, 1, 1(?:, ([01]), ([01]))?;"
)
_FROM_REGISTERS = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(\w+)\.(\w+)"
    r" \{[^}]*\}, \{[^}]*\}, \$\d+, 1, 1, 1, ([01]);"
)
_WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned \d+;")
# Type → bytes, and the load of an element at %p as a float.
_TYPES = {
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
  ret i64 %address
}
"""


def library() -> str:
    """What the functions call, besides the runtime and the module's `fly.shared_at`."""
    return _LIBRARY


def _load(kind: str, letter: str) -> str:
    """A function that loads an element of an operand as a float."""
    size, load = _TYPES[kind]
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
    if _WAIT.fullmatch(text):
        count = len(operands)
        kind = _struct(count)
        return _made(result, kind, list(operands), prefix), {}
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


# -- copies of a warp -----------------------------------------------------------------------------
def _address(matrix: int, trans: bool, part: str) -> str:
    """The address of this lane's part of a matrix: %a.NAME. Lanes have handed over those of rows.
    `part` is the number of the half word, of a transposed matrix."""
    name = f"{matrix}{part}"
    if not trans:
        return f"""  %from.{name} = add i32 %row.4, {8 * matrix}
  %base.{name} = call i64 @fly.heard(i32 %from.{name})
  %a.{name} = add i64 %base.{name}, %within
"""
    return f"""  %from.{name} = add i32 %pair, {8 * matrix + int(part)}
  %base.{name} = call i64 @fly.heard(i32 %from.{name})
  %a.{name} = add i64 %base.{name}, %across
"""


_LANE = """  %at = ptrtoint ptr addrspace(3) %p to i64
  call void @fly.meet(i32 -1, i64 %at, i32 %site)
  %index = load i64, ptr @fly.index
  %index.32 = trunc i64 %index to i32
  %lane = and i32 %index.32, 31
  %row.4 = lshr i32 %lane, 2
  %quarter = and i32 %lane, 3
  %quarter.64 = zext i32 %quarter to i64
  %within = shl i64 %quarter.64, 2
  %pair = shl i32 %quarter, 1
  %row.64 = zext i32 %row.4 to i64
  %across = shl i64 %row.64, 1
"""


def _copies() -> Iterator[tuple[str, str]]:
    for count in (1, 2, 4):
        for trans in (False, True):
            dotted = ".trans" if trans else ""
            form = f".sync.aligned.m8n8.x{count}{dotted}.b16.p3"
            yield _load_matrix(f"ldmatrix{form}", count, trans)
            yield _store_matrix(f"stmatrix{form}", count, trans)


def _load_matrix(name: str, count: int, trans: bool) -> tuple[str, str]:
    result = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    body = _LANE
    for m in range(count):
        if trans:
            for part in "01":
                body += _address(m, True, part)
                body += f"""  call void @fly.read(i64 %a.{m}{part}, i64 2, i64 1, i32 %site)
  %q.{m}{part} = inttoptr i64 %a.{m}{part} to ptr
  %h.{m}{part} = load i16, ptr %q.{m}{part}
  %z.{m}{part} = zext i16 %h.{m}{part} to i32
"""
            body += f"  %up.{m} = shl i32 %z.{m}1, 16\n  %w.{m} = or i32 %up.{m}, %z.{m}0\n"
        else:
            body += _address(m, False, "")
            body += f"""  call void @fly.read(i64 %a.{m}, i64 4, i64 3, i32 %site)
  %q.{m} = inttoptr i64 %a.{m} to ptr
  %w.{m} = load i32, ptr %q.{m}
"""
    # No lane may write again before all have read.
    body += "  call void @fly.meet(i32 -1, i64 0, i32 %site)\n"
    if count == 1:
        body += "  ret i32 %w.0"
    else:
        before = "poison"
        for m in range(count):
            body += f"  %s.{m} = insertvalue {result} {before}, i32 %w.{m}, {m}\n"
            before = f"%s.{m}"
        body += f"  ret {result} {before}"
    head = f"define internal {result} @fly.nvvm.{name}(ptr addrspace(3) %p, i32 %site)"
    return name, f"{head} noinline nounwind {{\n{body}\n}}\n"


def _store_matrix(name: str, count: int, trans: bool) -> tuple[str, str]:
    body = _LANE
    for m in range(count):
        if trans:
            body += f"  %up.{m} = lshr i32 %w.{m}, 16\n"
            for part, source in (("0", f"%w.{m}"), ("1", f"%up.{m}")):
                body += _address(m, True, part)
                body += f"""  call void @fly.write(i64 %a.{m}{part}, i64 2, i64 1, i32 %site)
  %q.{m}{part} = inttoptr i64 %a.{m}{part} to ptr
  %h.{m}{part} = trunc i32 {source} to i16
  store i16 %h.{m}{part}, ptr %q.{m}{part}
"""
        else:
            body += _address(m, False, "")
            body += f"""  call void @fly.write(i64 %a.{m}, i64 4, i64 3, i32 %site)
  %q.{m} = inttoptr i64 %a.{m} to ptr
  store i32 %w.{m}, ptr %q.{m}
"""
    given = "".join(f", i32 %w.{m}" for m in range(count))
    head = f"define internal void @fly.nvvm.{name}(ptr addrspace(3) %p{given}, i32 %site)"
    return name, f"{head} noinline nounwind {{\n{body}  ret void\n}}\n"


# -- mma.sync -------------------------------------------------------------------------------------
# The registers that lanes hand over: 4 of A, 2 of B, by thread of the block.
_REGISTERS = "@fly.registers = internal global [1024 x [8 x i32]] zeroinitializer, align 64\n"
# Name → K, the kinds of A and B, the types of a register as the intrinsic takes it, and of sums.
_PRODUCTS = {
    "mma.m16n8k16.row.col.f32.f32": (16, "f16", "f16", "<2 x half>", "float"),
    "mma.m16n8k16.row.col.bf16": (16, "bf16", "bf16", "i32", "float"),
    "mma.m16n8k8.row.col.tf32": (8, "tf32", "tf32", "i32", "float"),
    "mma.m16n8k32.row.col.s8": (32, "s8", "s8", "i32", "i32"),
    **{
        f"mma.m16n8k32.row.col.f32.{a}.{b}.f32": (32, a, b, "i32", "float")
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
    },
}


def _warp_element(kind: str, letter: str, k: int) -> str:
    """A function that reads an element of A or B from the registers of the lane that has it: %line
    is a row of A or a column of B, `letter` "a" or "b"."""
    words = 32 // {"bf16": 16, "f16": 16, "tf32": 32}.get(kind, 8)
    size, load = _TYPES.get(kind, (1, "  %v = load i8, ptr %p\n  %f = sext i8 %v to i32\n"))
    result = "i32" if kind == "s8" else "float"
    register = "  %reg = add i64 %half, 4\n"
    if letter == "a":
        register = """  %below = lshr i64 %line, 3
  %twice = shl i64 %half, 1
  %reg = add i64 %twice, %below
"""
    return f"""define internal {result} @fly.warp.{kind}.{letter}.{k}(i64 %line, i64 %k) nounwind {{
  %index = load i64, ptr @fly.index
  %warp = and i64 %index, -32
  %half = udiv i64 %k, {k // 2}
  %inside = urem i64 %k, {k // 2}
  %quarter = udiv i64 %inside, {words}
  %place = urem i64 %inside, {words}
  %line.8 = and i64 %line, 7
  %line.4 = shl i64 %line.8, 2
  %lane = add i64 %line.4, %quarter
  %thread = add i64 %warp, %lane
{register}  %word = getelementptr [8 x i32], ptr @fly.registers, i64 %thread, i64 %reg
  %offset = mul i64 %place, {size}
  %p = getelementptr i8, ptr %word, i64 %offset
{load}  ret {result} %f
}}
"""


def _warp_product(name: str) -> str:
    """D = A·B + C: two rows, 8 apart, and two columns of this lane."""
    k, a, b, register, kind = _PRODUCTS[name]
    result = f"{{ {', '.join([kind] * 4)} }}"
    given = ", ".join(f"{register} %r{n}" for n in range(6))
    given += "".join(f", {kind} %c{n}" for n in range(4))
    text = f"define internal {result} @fly.nvvm.{name}({given}, i32 %site) noinline nounwind {{\n"
    text += "entry:\n  %index = load i64, ptr @fly.index\n"
    for n in range(6):
        value = f"%r{n}"
        if register != "i32":
            text += f"  %w{n} = bitcast {register} %r{n} to i32\n"
            value = f"%w{n}"
        text += f"""  %at{n} = getelementptr [8 x i32], ptr @fly.registers, i64 %index, i64 {n}
  store i32 {value}, ptr %at{n}
"""
    text += """  call void @fly.meet(i32 -1, i64 0, i32 %site)
  %lane = and i64 %index, 31
  %row = lshr i64 %lane, 2
  %row.8 = add i64 %row, 8
  %quarter = and i64 %lane, 3
  %column = shl i64 %quarter, 1
  %column.1 = add i64 %column, 1
  br label %along
along:
  %j = phi i64 [ 0, %entry ], [ %j.next, %along ]
"""
    for n in range(4):
        text += f"  %s{n} = phi {kind} [ %c{n}, %entry ], [ %t{n}, %along ]\n"
    for letter, source, lines in (("a", a, ("%row", "%row.8")), ("b", b, ("%column", "%column.1"))):
        for n, line in enumerate(lines):
            text += f"  %{letter}{n} = call {kind} @fly.warp.{source}.{letter}.{k}"
            text += f"(i64 {line}, i64 %j)\n"
    for n in range(4):
        x, y = f"%a{n // 2}", f"%b{n % 2}"
        if kind == "float":
            text += f"  %t{n} = call float @llvm.fma.f32(float {x}, float {y}, float %s{n})\n"
        else:
            text += f"  %m{n} = mul i32 {x}, {y}\n  %t{n} = add i32 %m{n}, %s{n}\n"
    text += f"""  %j.next = add i64 %j, 1
  %more = icmp ult i64 %j.next, {k}
  br i1 %more, label %along, label %done
done:
  call void @fly.meet(i32 -1, i64 0, i32 %site)
"""
    before = "poison"
    for n in range(4):
        text += f"  %d{n} = insertvalue {result} {before}, {kind} %t{n}, {n}\n"
        before = f"%d{n}"
    return f"{text}  ret {result} {before}\n}}\n"


def needed(names: Iterable[str]) -> str:
    """What the functions of these intrinsics, without `llvm.nvvm.`, call."""
    parts: dict[str, str] = {}
    for name in names:
        if name in _PRODUCTS:
            k, a, b, *_ = _PRODUCTS[name]
            parts["registers"] = _REGISTERS
            for kind in {a, b} & {"e4m3", "e5m2"}:
                parts[kind] = conversions.widening(kind, f"fly.wide.{kind}")
            parts[f"{a}.a.{k}"] = _warp_element(a, "a", k)
            parts[f"{b}.b.{k}"] = _warp_element(b, "b", k)
    return "".join(parts.values())


def table() -> dict[str, str]:
    """The functions by the intrinsics' names without `llvm.nvvm.`."""
    return dict(_copies()) | {name: _warp_product(name) for name in _PRODUCTS}
