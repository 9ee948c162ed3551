"""LLVM's intrinsics for NVIDIA as functions in LLVM IR, by name without `llvm.nvvm.`.

Approximations (`ex2.approx`, …) are the host's functions, which are more exact; their results
differ from a GPU's. Subnormal operands and results of `.ftz` forms are 0.

Sources: PTX ISA 8.8, "Instruction Set"; LLVM's IntrinsicsNVVM.td.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from fly_cpu.operations import asynchronous, conversions, matrix_copies, warp, warp_products
from fly_cpu.state import expanded

_REGISTERS = {
    **{f"tid.{axis}": f"load i32, ptr @fly.{axis}" for axis in "xyz"},
    **{f"ctaid.{axis}": f"load i32, ptr $ctaid_{axis}" for axis in "xyz"},
    **{f"ntid.{axis}": f"load i32, ptr $block_{axis}" for axis in "xyz"},
    **{f"nctaid.{axis}": f"load i32, ptr $grid_{axis}" for axis in "xyz"},
    "cluster.ctarank": "load i32, ptr $rank",
    "warpsize": "add i32 0, 32",
    "smid": "add i32 0, 0",
    "nsmid": "add i32 0, 1",
    "gridid": "load i32, ptr $number",
}
# From the blocks of a cluster, %blocks: along an axis, or in all. A block without one is its own.
_CLUSTERS = {
    **{f"clusterid.{axis}": (axis, f"udiv i32 %own.ctaid_{axis}, %blocks") for axis in "xyz"},
    **{f"nclusterid.{axis}": (axis, f"udiv i32 %own.grid_{axis}, %blocks") for axis in "xyz"},
    **{f"cluster.ctaid.{axis}": (axis, f"urem i32 %own.ctaid_{axis}, %blocks") for axis in "xyz"},
    **{f"cluster.nctaid.{axis}": (axis, "add i32 %blocks, 0") for axis in "xyz"},
    "cluster.nctarank": ("", "add i32 %blocks, 0"),
}
_COMPUTED = {  # from the number of the thread in the block, %index
    "laneid": ("i32", "  %result = and i32 %index, 31\n"),
    "warpid": ("i32", "  %result = lshr i32 %index, 5\n"),
    "lanemask.eq": ("i32", "  %lane = and i32 %index, 31\n  %result = shl i32 1, %lane\n"),
    "lanemask.lt": (
        "i32",
        "  %lane = and i32 %index, 31\n  %own = shl i32 1, %lane\n  %result = sub i32 %own, 1\n",
    ),
    "lanemask.le": (
        "i32",
        "  %lane = and i32 %index, 31\n  %own = shl i32 2, %lane\n  %result = sub i32 %own, 1\n",
    ),
    "lanemask.ge": ("i32", "  %lane = and i32 %index, 31\n  %result = shl i32 -1, %lane\n"),
    "lanemask.gt": ("i32", "  %lane = and i32 %index, 31\n  %result = shl i32 -2, %lane\n"),
}
_FLOATS = {"f": "float", "d": "double", "f16": "half", "bf16": "bfloat"}
_PAIRS = {"f16x2": "half", "bf16x2": "bfloat"}


def _one(name: str, result: str, types: str, body: str) -> tuple[str, str]:
    """A function of parameters %a, %b, …; the body defines %result, unless there is none."""
    kinds = types.split("; ") if types else []
    given = ", ".join(f"{kind} %{letter}" for kind, letter in zip(kinds, "abcdef", strict=False))
    end = "  ret void\n" if result == "void" else f"  ret {result} %result\n"
    head = f"define internal {result} @fly.nvvm.{name}({given}) alwaysinline nounwind {{\n"
    return name, f"{head}{expanded(body.strip(chr(10)))}\n{end}}}\n"


def _special_registers() -> Iterator[tuple[str, str]]:
    start = "read.ptx.sreg."
    for name, value in _REGISTERS.items():
        yield _one(start + name, "i32", "", f"  %result = {value}")
    for name, (axis, value) in _CLUSTERS.items():
        said = f"$cluster_{axis}" if axis else "$cluster"
        body = f"  %said = load i32, ptr {said}\n"
        body += "  %blocks = call i32 @llvm.umax.i32(i32 %said, i32 1)\n"
        if own := re.search(r"%own\.(\w+)", value):
            body += f"  {own[0]} = load i32, ptr ${own[1]}\n"
        yield _one(start + name, "i32", "", f"{body}  %result = {value}")
    index = "  %wide = load i64, ptr @fly.index\n  %index = trunc i64 %wide to i32\n"
    for name, (kind, body) in _COMPUTED.items():
        yield _one(start + name, kind, "", index + body)
    warps = """  %threads = load i32, ptr $threads
  %more = add i32 %threads, 31
  %result = lshr i32 %more, 5"""
    yield _one(f"{start}nwarpid", "i32", "", warps)
    clock = "  %{} = call i64 @llvm.readcyclecounter()\n"
    yield _one(f"{start}clock64", "i64", "", clock.format("result"))
    for name in ("clock", "clock_lo"):
        body = clock.format("wide") + "  %result = trunc i64 %wide to i32"
        yield _one(start + name, "i32", "", body)
    time = """  %time = alloca [2 x i64]
  %told = call i32 @clock_gettime(i32 0, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %result = add i64 %whole, %rest"""
    yield _one(f"{start}globaltimer", "i64", "", time)


def _order() -> Iterator[tuple[str, str]]:
    names = [f"membar.{scope}" for scope in ("cta", "gl", "sys")]
    names += [f"fence.{order}.cluster" for order in ("acq_rel", "sc")]
    for name in names:
        yield _one(name, "void", "", "  fence seq_cst")
    # Launches are complete when the next one begins.
    for name in ("wait", "launch.dependents"):
        yield _one(f"griddepcontrol.{name}", "void", "", "")
    yield _one("nanosleep", "void", "i32", "  call void @fly.tire()")
    yield _one("exit", "void", "", "  call void @fly.end()")


def _flushed(kind: str, value: str, to: str) -> str:
    """%to is the value, or a zero of its sign for a subnormal one."""
    name = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}[kind]
    return (
        f"  {to}.tiny = call i1 @llvm.is.fpclass.{name}({kind} {value}, i32 144)\n"
        f"  {to}.zero = call {kind} @llvm.copysign.{name}({kind} 0.0, {kind} {value})\n"
        f"  {to} = select i1 {to}.tiny, {kind} {to}.zero, {kind} {value}\n"
    )


def _mangled(kind: str) -> str:
    known = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}
    if kind.startswith("<2 x "):
        return "v2" + known[kind[5:-1]]
    return known[kind]


def _arithmetic(name: str, kind: str, operands: int, body: str, ftz: bool) -> tuple[str, str]:
    """`body` computes %r from %x, %y, %z."""
    text = ""
    for letter, operand in zip("xyz"[:operands], "abc", strict=False):
        if ftz:
            text += _flushed(kind, f"%{operand}", f"%{letter}")
        else:
            text += f"  %{letter} = freeze {kind} %{operand}\n"
    text += body.replace("KIND", kind).replace("NAME", _mangled(kind)).strip("\n") + "\n"
    text += _flushed(kind, "%r", "%result") if ftz else f"  %result = freeze {kind} %r\n"
    return _one(name, kind, "; ".join([kind] * operands), text)


_UNARY = {
    "ex2.approx": "  %r = call KIND @llvm.exp2.NAME(KIND %x)",
    "lg2.approx": "  %r = call KIND @llvm.log2.NAME(KIND %x)",
    "sin.approx": "  %r = call KIND @llvm.sin.NAME(KIND %x)",
    "cos.approx": "  %r = call KIND @llvm.cos.NAME(KIND %x)",
    "rcp.rn": "  %r = fdiv KIND 1.0, %x",
    "rcp.approx": "  %r = fdiv KIND 1.0, %x",
    "sqrt.rn": "  %r = call KIND @llvm.sqrt.NAME(KIND %x)",
    "sqrt.approx": "  %r = call KIND @llvm.sqrt.NAME(KIND %x)",
    "sqrt": "  %r = call KIND @llvm.sqrt.NAME(KIND %x)",
    "rsqrt.approx": "  %s = call KIND @llvm.sqrt.NAME(KIND %x)\n  %r = fdiv KIND 1.0, %s",
    "fabs": "  %r = call KIND @llvm.fabs.NAME(KIND %x)",
    "floor": "  %r = call KIND @llvm.floor.NAME(KIND %x)",
    "ceil": "  %r = call KIND @llvm.ceil.NAME(KIND %x)",
    "trunc": "  %r = call KIND @llvm.trunc.NAME(KIND %x)",
    "round": "  %r = call KIND @llvm.roundeven.NAME(KIND %x)",
    "saturate": "  %h = call KIND @llvm.minnum.NAME(KIND %x, KIND 1.0)\n"
    "  %l = call KIND @llvm.maxnum.NAME(KIND %h, KIND 0.0)\n"
    "  %number = fcmp ord KIND %x, %x\n  %r = select i1 %number, KIND %l, KIND 0.0",
}
_BINARY = {
    "add.rn": "  %r = fadd KIND %x, %y",
    "mul.rn": "  %r = fmul KIND %x, %y",
    "div.rn": "  %r = fdiv KIND %x, %y",
    "div.approx": "  %r = fdiv KIND %x, %y",
    "div.full": "  %r = fdiv KIND %x, %y",
}
_FMA = "  %r = call KIND @llvm.fma.NAME(KIND %x, KIND %y, KIND %z)"
_MIXED = {  # names that order their parts otherwise
    "tanh.approx.f32": ("float", "  %r = call float @llvm.tanh.f32(float %x)"),
    "div.full": ("float", _BINARY["div.full"]),
}


def _mathematics() -> Iterator[tuple[str, str]]:
    for letter in ("f", "d"):
        kind = _FLOATS[letter]
        for ftz, form in ((False, letter), (True, f"ftz.{letter}")):
            for name, body in _UNARY.items():
                yield _arithmetic(f"{name}.{form}", kind, 1, body, ftz)
            for name, body in _BINARY.items():
                yield _arithmetic(f"{name}.{form}", kind, 2, body, ftz)
            yield _arithmetic(f"fma.rn.{form}", kind, 3, _FMA, ftz)
    yield _arithmetic("tanh.approx.f32", "float", 1, _MIXED["tanh.approx.f32"][1], False)
    yield _arithmetic("div.full", "float", 2, _BINARY["div.full"], False)
    yield _arithmetic("div.full.ftz", "float", 2, _BINARY["div.full"], True)
    kinds = {**_FLOATS, **{name: f"<2 x {kind}>" for name, kind in _PAIRS.items()}}
    for form, kind in kinds.items():
        if form not in ("f", "d"):
            yield _arithmetic(f"fma.rn.{form}", kind, 3, _FMA, False)
            yield _arithmetic(f"ex2.approx.{form}", kind, 1, _UNARY["ex2.approx"], False)
        for word, exact, nan in (
            ("fmin", "minimumnum", "minimum"),
            ("fmax", "maximumnum", "maximum"),
        ):
            for middle, function in (("", exact), ("nan.", nan)):
                text = f"  %r = call KIND @llvm.{function}.NAME(KIND %x, KIND %y)"
                yield _arithmetic(f"{word}.{middle}{form}", kind, 2, text, False)
                if form == "f":
                    yield _arithmetic(f"{word}.ftz.{middle}{form}", kind, 2, text, True)


# Names that LLVM forms from the type.
_OVERLOADED = {
    **{
        f"{name}{ftz}.f32": f"{name}{ftz}.f"
        for name in ("fabs", "ex2.approx")
        for ftz in ("", ".ftz")
    },
    "fabs.f64": "fabs.d",
    "ex2.approx.v2f16": "ex2.approx.f16x2",
    "ex2.approx.v2bf16": "ex2.approx.bf16x2",
    "ex2.approx.ftz.bf16": "ex2.approx.bf16",
    "ex2.approx.ftz.v2bf16": "ex2.approx.bf16x2",
}


def _integers() -> Iterator[tuple[str, str]]:
    for name, bits, extend, shift in (
        *(("mulhi.s", 16, "sext", "ashr"), ("mulhi.us", 16, "zext", "lshr")),
        *(("mulhi.i", 32, "sext", "ashr"), ("mulhi.ui", 32, "zext", "lshr")),
        *(("mulhi.ll", 64, "sext", "ashr"), ("mulhi.ull", 64, "zext", "lshr")),
    ):
        kind, wide = f"i{bits}", f"i{2 * bits}"
        yield _one(
            name,
            kind,
            f"{kind}; {kind}",
            f"""  %x = {extend} {kind} %a to {wide}
  %y = {extend} {kind} %b to {wide}
  %product = mul {wide} %x, %y
  %high = {shift} {wide} %product, {bits}
  %result = trunc {wide} %high to {kind}""",
        )
    for name, shift in (("mul24.i", "ashr"), ("mul24.ui", "lshr")):
        parts = [
            f"  %{letter}.up = shl i32 %{letter}, 8\n  %{letter}.24 = {shift} i32 %{letter}.up, 8\n"
            for letter in "ab"
        ]
        yield _one(name, "i32", "i32; i32", "".join(parts) + "  %result = mul i32 %a.24, %b.24")
    yield _one("prmt", "i32", "i32; i32; i32", _prmt())
    for a, extend_a in (("s", "sext"), ("u", "zext")):
        for b, extend_b in (("s", "sext"), ("u", "zext")):
            yield _dot(f"idp4a.{a}.{b}", extend_a, extend_b)
            yield _dot_2(f"idp2a.{a}.{b}", extend_a, extend_b)
    pair = "  %pair = bitcast double %a to i64\n"
    low = "  %result = trunc i64 %pair to i32"
    yield _one("d2i.lo", "i32", "double", pair + low)
    high = "  %high = lshr i64 %pair, 32\n  %result = trunc i64 %high to i32"
    yield _one("d2i.hi", "i32", "double", pair + high)
    both = """  %low = zext i32 %a to i64
  %up = zext i32 %b to i64
  %high = shl i64 %up, 32
  %bits = or i64 %low, %high
  %result = bitcast i64 %bits to double"""
    yield _one("lohi.i2d", "double", "i32; i32", both)


def _prmt() -> str:
    """Four bytes of the eight of %a and %b; bit 3 of a selector repeats the byte's sign."""
    text = """  %low = zext i32 %a to i64
  %up = zext i32 %b to i64
  %high = shl i64 %up, 32
  %bytes = or i64 %low, %high
"""
    last = "0"
    for n in range(4):
        text += f"""  %s{n} = lshr i32 %c, {4 * n}
  %n{n} = and i32 %s{n}, 7
  %b{n} = shl i32 %n{n}, 3
  %w{n} = zext i32 %b{n} to i64
  %v{n} = lshr i64 %bytes, %w{n}
  %t{n} = trunc i64 %v{n} to i8
  %g{n} = ashr i8 %t{n}, 7
  %m{n} = and i32 %s{n}, 8
  %r{n} = icmp ne i32 %m{n}, 0
  %x{n} = select i1 %r{n}, i8 %g{n}, i8 %t{n}
  %z{n} = zext i8 %x{n} to i32
  %p{n} = shl i32 %z{n}, {8 * n}
  %o{n} = or i32 {last}, %p{n}
"""
        last = f"%o{n}"
    return f"{text}  %result = or i32 {last}, 0"


def _dot(name: str, extend_a: str, extend_b: str) -> tuple[str, str]:
    text, last = "", "%c"
    for n in range(4):
        for letter, extend in (("a", extend_a), ("b", extend_b)):
            text += f"""  %{letter}s{n} = lshr i32 %{letter}, {8 * n}
  %{letter}t{n} = trunc i32 %{letter}s{n} to i8
  %{letter}x{n} = {extend} i8 %{letter}t{n} to i32
"""
        text += f"  %p{n} = mul i32 %ax{n}, %bx{n}\n  %sum{n} = add i32 {last}, %p{n}\n"
        last = f"%sum{n}"
    return _one(name, "i32", "i32; i32; i32", f"{text}  %result = add i32 {last}, 0")


def _dot_2(name: str, extend_a: str, extend_b: str) -> tuple[str, str]:
    """Two halves of %a with the lower or upper two bytes of %b."""
    text, last = "  %from = select i1 %c, i32 16, i32 0\n  %half = lshr i32 %b, %from\n", "%d"
    for n in range(2):
        text += f"""  %as{n} = lshr i32 %a, {16 * n}
  %at{n} = trunc i32 %as{n} to i16
  %ax{n} = {extend_a} i16 %at{n} to i32
  %bs{n} = lshr i32 %half, {8 * n}
  %bt{n} = trunc i32 %bs{n} to i8
  %bx{n} = {extend_b} i8 %bt{n} to i32
  %p{n} = mul i32 %ax{n}, %bx{n}
  %sum{n} = add i32 {last}, %p{n}
"""
        last = f"%sum{n}"
    return _one(name, "i32", "i32; i32; i1; i32", f"{text}  %result = add i32 {last}, 0")


@functools.cache
def together() -> dict[str, str]:
    """Those of a warp or a block, which take the number of the place too."""
    return {
        **warp.table(),
        **asynchronous.table(),
        **matrix_copies.table(),
        **warp_products.table(),
    }


@functools.cache
def alone() -> dict[str, str]:
    """Those of one thread."""
    makers = (_special_registers, _order, _mathematics, _integers)
    found = {name: text for maker in makers for name, text in maker()}
    for name, own in _OVERLOADED.items():
        found[name] = found[own].replace(f"@fly.nvvm.{own}(", f"@fly.nvvm.{name}(")
    return {**found, **conversions.table()}
