"""Vector integer ALU: VOP1, VOP2 and VOP3 of 16 and 32 bits (CDNA3 ISA manual, section 16.8).
`wide_integer` has sums and products of 64 bits, `byte_operations` those on bytes.

A body gets a `Lanes` and the operand lanes. `rev` forms swap the first two sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu

Body = Callable[..., object]
Binary = Callable[[Value, Value], Value]


def operations() -> Iterator[Operation]:
    for name, body in BINARY.items():
        yield valu(f"v_{name}", "i32 = i32, i32", lambda k, a, b, body=body: body(a, b))
    for name, body in BINARY_16.items():
        # gfx9's own 16-bit instructions preserve the high half; older ones clear it.
        keeps = name in ("add_i16", "sub_i16")
        run = lambda k, a, b, body=body: body(a, b)  # noqa: E731
        yield valu(f"v_{name}", "i16 = i16, i16", run, keeps_high=keeps)
    for name, (types, body) in OTHERS.items():
        yield valu(name, types, body)
    for name in ("v_accvgpr_read_b32", "v_accvgpr_mov_b32"):  # from accumulation registers only
        yield valu(name, "i32 = i32", lambda k, a: a, kinds=("v",))
    for name, (types, body) in KEEPS_HIGH.items():
        yield valu(name, types, body, keeps_high=True)
    for sign, name in (("s", "i"), ("u", "u")):
        for width in (16, 32):
            types = f"i{width} = i{width}, i{width}, i{width}"
            for kind, body in (("min3", _three(f"{sign}min")), ("max3", _three(f"{sign}max"))):
                yield valu(f"v_{kind}_{name}{width}", types, body, keeps_high=width == 16)
            yield valu(f"v_med3_{name}{width}", types, _median(sign), keeps_high=width == 16)


def minimum(sign: str) -> Binary:
    return lambda a, b: a.function.intrinsic(f"llvm.{sign}min", a, b)


def maximum(sign: str) -> Binary:
    return lambda a, b: a.function.intrinsic(f"llvm.{sign}max", a, b)


def _three(name: str) -> Body:
    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        f = a.function
        return f.intrinsic(f"llvm.{name}", f.intrinsic(f"llvm.{name}", a, b), c)

    return run


def _median(sign: str) -> Body:
    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        low, high = minimum(sign)(a, b), maximum(sign)(a, b)
        return maximum(sign)(low, minimum(sign)(high, c))

    return run


def _amount(value: Value) -> Value:
    """Returns a shift's amount: only the low bits count, as many as the width needs."""
    return value & {"i16": 15, "i32": 31, "i64": 63}[value.element]


def _high(extension: str) -> Binary:
    """Returns the upper half of a product."""
    return lambda a, b: (
        (a.convert(extension, "i64") * b.convert(extension, "i64")).lshr(32).trunc("i32")
    )


def signed24(value: Value) -> Value:
    return (value << 8).ashr(8)


def unsigned24(value: Value) -> Value:
    return value & 0xFFFFFF


def _ones(size: Value) -> Value:
    return (size.like(1) << (size & 31)) - 1


BINARY: dict[str, Binary] = {
    "add_u32": lambda a, b: a + b,
    "sub_u32": lambda a, b: a - b,
    "subrev_u32": lambda a, b: b - a,
    "add_i32": lambda a, b: a + b,
    "sub_i32": lambda a, b: a - b,
    "and_b32": lambda a, b: a & b,
    "or_b32": lambda a, b: a | b,
    "xor_b32": lambda a, b: a ^ b,
    "xnor_b32": lambda a, b: ~(a ^ b),
    "lshlrev_b32": lambda a, b: b << _amount(a),
    "lshrrev_b32": lambda a, b: b.lshr(_amount(a)),
    "ashrrev_i32": lambda a, b: b.ashr(_amount(a)),
    "mul_lo_u32": lambda a, b: a * b,
    "mul_hi_u32": _high("zext"),
    "mul_hi_i32": _high("sext"),
    "mul_i32_i24": lambda a, b: signed24(a) * signed24(b),
    "mul_u32_u24": lambda a, b: unsigned24(a) * unsigned24(b),
    "mul_hi_i32_i24": lambda a, b: _high("sext")(signed24(a), signed24(b)),
    "mul_hi_u32_u24": lambda a, b: _high("zext")(unsigned24(a), unsigned24(b)),
    "min_i32": minimum("s"),
    "min_u32": minimum("u"),
    "max_i32": maximum("s"),
    "max_u32": maximum("u"),
    "bfm_b32": lambda a, b: _ones(a) << (b & 31),
    "bcnt_u32_b32": lambda a, b: a.function.intrinsic("llvm.ctpop", a) + b,
    "cvt_pk_u16_u32": lambda a, b: (
        minimum("u")(a, a.like(0xFFFF)) | (minimum("u")(b, b.like(0xFFFF)) << 16)
    ),
    "cvt_pk_i16_i32": lambda a, b: (_saturate16(a) & 0xFFFF) | (_saturate16(b) << 16),
}


def _saturate16(value: Value) -> Value:
    return maximum("s")(minimum("s")(value, value.like(0x7FFF)), value.like(-0x8000))


BINARY_16: dict[str, Binary] = {
    "add_u16": lambda a, b: a + b,
    "sub_u16": lambda a, b: a - b,
    "subrev_u16": lambda a, b: b - a,
    "mul_lo_u16": lambda a, b: a * b,
    "lshlrev_b16": lambda a, b: b << _amount(a),
    "lshrrev_b16": lambda a, b: b.lshr(_amount(a)),
    "ashrrev_i16": lambda a, b: b.ashr(_amount(a)),
    "min_i16": minimum("s"),
    "min_u16": minimum("u"),
    "max_i16": maximum("s"),
    "max_u16": maximum("u"),
    "add_i16": lambda a, b: a + b,
    "sub_i16": lambda a, b: a - b,
}


def _saturating(opcode: str) -> Body:
    return lambda k, a, b: a.function.intrinsic(f"llvm.{opcode}.sat", a, b)


def swapped(body: Body) -> Body:
    return lambda k, a, b, *rest: body(k, b, a, *rest)


def _extract(signed: bool) -> Body:
    def run(k: Lanes, a: Value, offset: Value, size: Value) -> Value:
        offset, size = offset & 31, size & 31
        empty = size.compare("eq", 0)
        # A field that extends past bit 31 ends there.
        if not signed:
            return a.lshr(offset) & _ones(size)
        room = empty.select(0, size.like(32) - size)
        moved = a.ashr(offset)
        return empty.select(0, (moved << room).ashr(room))

    return run


def _leading(k: Lanes, a: Value) -> Value:
    count = k.handler.intrinsic("llvm.ctlz", a, k.handler.constant("i1", 0), result=a)
    return a.compare("eq", 0).select(-1, count)


def _trailing(k: Lanes, a: Value) -> Value:
    count = k.handler.intrinsic("llvm.cttz", a, k.handler.constant("i1", 0), result=a)
    return a.compare("eq", 0).select(-1, count)


def _lanes_below(half: int) -> Body:
    """v_mbcnt: counts the bits of the mask for lanes below this one."""

    def run(k: Lanes, a: Value, b: Value) -> Value:
        lane = k.lane_numbers() - 32 * half
        # Lanes of the other half count all or none of this half's bits.
        inside = lane.compare("ult", 32)
        some = (lane.like(1) << (lane & 31)) - 1
        whole = lane.compare("slt", 0).select(lane.like(0), lane.like(-1))
        mask = inside.select(some, whole)
        return k.handler.intrinsic("llvm.ctpop", a & mask) + b

    return run


def _truth_table(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    """v_bitop3: bits 7 to 0 of the immediate are the results for (a, b, c) = 111 to 000."""
    table = k.immediate()
    result = None
    for row in range(8):
        wanted = (table.lshr(row) & 1).compare("ne", 0)
        term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        term = term & wanted.select(term.like(-1), term.like(0))
        result = term if result is None else result | term
    assert result is not None
    return result


OTHERS: dict[str, tuple[str, Body]] = {
    "v_mov_b32": ("i32 = i32", lambda k, a: a),
    "v_accvgpr_write_b32": ("i32 = i32", lambda k, a: a),
    "v_not_b32": ("i32 = i32", lambda k, a: ~a),
    "v_bfrev_b32": ("i32 = i32", lambda k, a: k.handler.intrinsic("llvm.bitreverse", a)),
    "v_ffbh_u32": ("i32 = i32", _leading),
    "v_ffbl_b32": ("i32 = i32", _trailing),
    "v_ffbh_i32": ("i32 = i32", lambda k, a: _leading(k, a.compare("slt", 0).select(~a, a))),
    # Integer clamp: the encoder uses these for `clamp`.
    "v_add_u32.clamp": ("i32 = i32, i32", _saturating("uadd")),
    "v_sub_u32.clamp": ("i32 = i32, i32", _saturating("usub")),
    "v_subrev_u32.clamp": ("i32 = i32, i32", swapped(_saturating("usub"))),
    "v_add_i32.clamp": ("i32 = i32, i32", _saturating("sadd")),
    "v_sub_i32.clamp": ("i32 = i32, i32", _saturating("ssub")),
    "v_add_u16.clamp": ("i16 = i16, i16", _saturating("uadd")),
    "v_sub_u16.clamp": ("i16 = i16, i16", _saturating("usub")),
    "v_subrev_u16.clamp": ("i16 = i16, i16", swapped(_saturating("usub"))),
    "v_cndmask_b32": ("i32 = i32, i32, mask", lambda k, a, b, m: m.select(b, a)),
    "v_bfe_u32": ("i32 = i32, i32, i32", _extract(False)),
    "v_bfe_i32": ("i32 = i32, i32, i32", _extract(True)),
    "v_bfi_b32": ("i32 = i32, i32, i32", lambda k, a, b, c: (a & b) | (~a & c)),
    "v_add3_u32": ("i32 = i32, i32, i32", lambda k, a, b, c: a + b + c),
    "v_lshl_add_u32": ("i32 = i32, i32, i32", lambda k, a, b, c: (a << _amount(b)) + c),
    "v_add_lshl_u32": ("i32 = i32, i32, i32", lambda k, a, b, c: (a + b) << _amount(c)),
    "v_lshl_or_b32": ("i32 = i32, i32, i32", lambda k, a, b, c: (a << _amount(b)) | c),
    "v_and_or_b32": ("i32 = i32, i32, i32", lambda k, a, b, c: (a & b) | c),
    "v_or3_b32": ("i32 = i32, i32, i32", lambda k, a, b, c: a | b | c),
    "v_xad_u32": ("i32 = i32, i32, i32", lambda k, a, b, c: (a ^ b) + c),
    "v_bitop3_b32": ("i32 = i32, i32, i32", _truth_table),
    "v_mad_i32_i24": (
        "i32 = i32, i32, i32",
        lambda k, a, b, c: signed24(a) * signed24(b) + c,
    ),
    "v_mad_u32_u24": (
        "i32 = i32, i32, i32",
        lambda k, a, b, c: unsigned24(a) * unsigned24(b) + c,
    ),
    "v_mad_u32_u16": (
        "i32 = i16, i16, i32",
        lambda k, a, b, c: a.zext("i32") * b.zext("i32") + c,
    ),
    "v_mad_i32_i16": (
        "i32 = i16, i16, i32",
        lambda k, a, b, c: a.sext("i32") * b.sext("i32") + c,
    ),
    "v_mbcnt_lo_u32_b32": ("i32 = i32, i32", _lanes_below(0)),
    "v_mbcnt_hi_u32_b32": ("i32 = i32, i32", _lanes_below(1)),
    # gfx9's older encodings clear the high half of the register.
    "v_mad_legacy_u16": ("i16 = i16, i16, i16", lambda k, a, b, c: a * b + c),
    "v_mad_legacy_i16": ("i16 = i16, i16, i16", lambda k, a, b, c: a * b + c),
}

KEEPS_HIGH: dict[str, tuple[str, Body]] = {
    "v_add_i16.clamp": ("i16 = i16, i16", _saturating("sadd")),
    "v_sub_i16.clamp": ("i16 = i16, i16", _saturating("ssub")),
    "v_mad_u16": ("i16 = i16, i16, i16", lambda k, a, b, c: a * b + c),
    "v_mad_i16": ("i16 = i16, i16, i16", lambda k, a, b, c: a * b + c),
    "v_bitop3_b16": ("i16 = i16, i16, i16", _truth_table),
}
