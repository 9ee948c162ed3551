"""Matrix products of a warp (mma.sync), on the host.

Lanes hand over their registers of A and B, and each adds up its own sums, one product after
another: a GPU's order is not documented.

Source: PTX ISA 8.8, "Matrix Fragments for mma.m16n8k8" and the sections after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from fly_cpu.operations import conversions
from fly_cpu.operations.matrices import TYPES

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
    size, load = TYPES.get(kind, (1, "  %v = load i8, ptr %p\n  %f = sext i8 %v to i32\n"))
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
    return {name: _warp_product(name) for name in _PRODUCTS}
