"""Scalar ALU: SOP1, SOP2, SOPC, SOPK (CDNA3 ISA manual, section 16.1 to 16.4).

A body gets the handler and the source values; if SCC is written, it returns SCC last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import HALF, Handler
from fly_run.emulator.semantics.base.operation import Operation, scalar

Body = Callable[..., object]


def operations() -> Iterator[Operation]:
    yield from _logic()
    for name, (types, body) in SETS_SCC.items():
        yield scalar(name, types, body, detail="scc", to_exec=name in MOVES)
    for name, (types, body) in KEEPS_SCC.items():
        yield scalar(name, types, body, to_exec=name in MOVES)
    for operator, body in LOGIC.items():
        yield scalar(
            f"s_{operator}_saveexec_b64", "i64 = i64", save_exec(body, "i64"), detail="scc"
        )
    for operator in ("andn1", "andn2"):
        body = write_exec(LOGIC[operator], "i64")
        yield scalar(f"s_{operator}_wrexec_b64", "i64 = i64", body, detail="scc")
    for name, predicate in COMPARISONS.items():
        for sign in "iu":
            full = (
                predicate
                if predicate in ("eq", "ne")
                else ("s" if sign == "i" else "u") + predicate
            )
            yield scalar(f"s_cmp_{name}_{sign}32", "= i32, i32", _compare(full), detail="scc")
            yield scalar(f"s_cmpk_{name}_{sign}32", "= i32, i32", _compare(full), detail="scc")
    for name in ("eq", "lg"):
        yield scalar(f"s_cmp_{name}_u64", "= i64, i64", _compare(COMPARISONS[name]), detail="scc")


# Besides bitwise operators, what compilers write EXEC with in waves of 32 lanes.
MOVES = ("s_not_b32", "s_mov_b32", "s_cselect_b32")
COMPARISONS = {"eq": "eq", "lg": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}

LOGIC: dict[str, Callable[[Value, Value], Value]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    # Only in saveexec: the first source is inverted.
    "andn1": lambda a, b: ~a & b,
    "orn1": lambda a, b: ~a | b,
}


def _logic() -> Iterator[Operation]:
    """Bitwise operators: SCC is whether the result is not zero."""
    for operator, body in LOGIC.items():
        if operator in ("andn1", "orn1"):
            continue
        for width in (32, 64):
            yield scalar(
                f"s_{operator}_b{width}",
                f"i{width} = i{width}, i{width}",
                _nonzero(lambda h, a, b, body=body: body(a, b)),
                detail="scc",
                to_exec=width == 32,
            )


def _nonzero(body: Body) -> Body:
    def with_scc(h: Handler, *values: Value) -> tuple[Value, Value]:
        result = body(h, *values)
        assert isinstance(result, Value)
        return result, result.compare("ne", 0)

    return with_scc


def _compare(predicate: str) -> Body:
    return lambda h, a, b: a.compare(predicate, b)


def save_exec(body: Callable[[Value, Value], Value], element: str) -> Body:
    """D = EXEC; EXEC = S0 op EXEC; SCC = EXEC is not zero. `element`: i64, or i32 in waves of 32
    lanes."""

    def run(h: Handler, source: Value) -> tuple[Value, Value]:
        place = h.wave.at(state.EXEC)
        old = place.load(element)
        new = body(source, old)
        place.store(new.zext("i64") if h.lanes == HALF else new)
        return old, new.compare("ne", 0)

    return run


def write_exec(body: Callable[[Value, Value], Value], element: str) -> Body:
    """EXEC = S0 op EXEC; D = EXEC; SCC = EXEC is not zero."""

    def run(h: Handler, source: Value) -> tuple[Value, Value]:
        place = h.wave.at(state.EXEC)
        new = body(source, place.load(element))
        place.store(new.zext("i64") if h.lanes == HALF else new)
        return new, new.compare("ne", 0)

    return run


def _carry_add(h: Handler, a: Value, b: Value, carry: Value | None = None):
    total = a.zext("i64") + b.zext("i64")
    if carry is not None:
        total = total + carry.zext("i64")
    return total.trunc("i32"), total.lshr(32).compare("ne", 0)


def _borrow_sub(h: Handler, a: Value, b: Value, borrow: Value | None = None):
    total = a.zext("i64") - b.zext("i64")
    if borrow is not None:
        total = total - borrow.zext("i64")
    return total.trunc("i32"), total.compare("slt", 0)


def _signed_add(h: Handler, a: Value, b: Value):
    return _held(a.sext("i64") + b.sext("i64"))


def _signed_sub(h: Handler, a: Value, b: Value):
    return _held(a.sext("i64") - b.sext("i64"))


def _held(total: Value) -> tuple[Value, Value]:
    """Returns a sum's low 32 bits, and whether it overflowed."""
    result = total.trunc("i32")
    return result, result.sext("i64").compare("ne", total)


def _pick(predicate: str) -> Body:
    """Minimum or maximum: SCC tells whether it is the first source. If both are equal it is the
    second, also for `s_max`, where the manuals disagree (docs/emulator.md, "Unspecified
    behavior")."""

    def run(h: Handler, a: Value, b: Value) -> tuple[Value, Value]:
        first = a.compare(predicate, b)
        return first.select(a, b), first

    return run


def _shift(opcode: str, width: int) -> Body:
    def run(h: Handler, a: Value, amount: Value) -> tuple[Value, Value]:
        amount = (amount & (width - 1)).zext(f"i{width}")
        result = a.binary(opcode, amount)
        return result, result.compare("ne", 0)

    return run


def _field(width: int, signed: bool) -> Body:
    """Bit field extract: the second source holds offset 4:0 (5:0) and size 22:16."""

    def run(h: Handler, a: Value, field: Value) -> tuple[Value, Value]:
        element = f"i{width}"
        offset = (field & (width - 1)).zext(element)
        size = (field.lshr(16) & 0x7F).zext(element)
        # A size of the full width or more must not shift by it: it keeps all bits.
        size = size.compare("ugt", width).select(width, size)
        moved = a.ashr(offset) if signed else a.lshr(offset)
        empty = size.compare("eq", 0)
        room = empty.select(0, size.like(width) - size)
        kept = (moved << room).ashr(room) if signed else (moved << room).lshr(room)
        result = empty.select(0, kept)
        return result, result.compare("ne", 0)

    return run


def _shift_add(amount: int) -> Body:
    def run(h: Handler, a: Value, b: Value) -> tuple[Value, Value]:
        total = (a.zext("i64") << amount) + b.zext("i64")
        return total.trunc("i32"), total.lshr(32).compare("ne", 0)

    return run


def _absolute(h: Handler, a: Value):
    result = a.compare("slt", 0).select(-a, a)
    return result, result.compare("ne", 0)


def _absolute_difference(h: Handler, a: Value, b: Value):
    return _absolute(h, a - b)


def _quads(h: Handler, a: Value) -> Value:
    """Returns one bit for each group of four, set if any of the four is."""
    width = 64 if a.element == "i64" else 32
    any_of = a | a.lshr(1)
    any_of = (any_of | any_of.lshr(2)) & int("1" * (width // 4), 16)
    return any_of


def _whole_quad(h: Handler, a: Value):
    result = _quads(h, a) * 15
    return result, result.compare("ne", 0)


def _quad_mask(h: Handler, a: Value):
    """Packs the quads' bits together."""
    packed = _quads(h, a)
    for step in (3, 6, 12, 24) if a.element == "i64" else (3, 6, 12):
        keep = step // 3 * 2
        mask = int(("0" * keep + "1" * keep) * (64 // (2 * keep)), 2)
        packed = (packed | packed.lshr(step)) & mask
    packed = packed & (0xFFFF if a.element == "i64" else 0xFF)
    return packed, packed.compare("ne", 0)


def _count_bits(ones: bool) -> Body:
    def run(h: Handler, a: Value) -> tuple[Value, Value]:
        count = h.intrinsic("llvm.ctpop", a if ones else ~a)
        count = count.trunc("i32")
        return count, count.compare("ne", 0)

    return run


def _find_first(opcode: str, invert: bool = False) -> Body:
    """Returns the number of the first set bit from one end, -1 if there is none."""

    def run(h: Handler, a: Value) -> Value:
        a = ~a if invert else a
        found = h.intrinsic(f"llvm.{opcode}", a, h.constant("i1", 0), result=a).trunc("i32")
        return a.compare("eq", 0).select(-1, found)

    return run


def _find_sign(h: Handler, a: Value) -> Value:
    """Returns how many bits from the top equal the sign bit, -1 if all do."""
    flipped = a.compare("slt", 0).select(~a, a)
    found = h.intrinsic("llvm.ctlz", flipped, h.constant("i1", 0), result=flipped).trunc("i32")
    return flipped.compare("eq", 0).select(-1, found)


def _mask(width: int) -> Body:
    """Returns `size` ones starting at `offset`."""

    def run(h: Handler, size: Value, offset: Value) -> Value:
        size = (size & (width - 1)).zext(f"i{width}")
        offset = (offset & (width - 1)).zext(f"i{width}")
        return ((size.like(1) << size) - 1) << offset

    return run


def _set_bit(value: int) -> Body:
    def run(h: Handler, index: Value, old: Value) -> Value:
        width = 64 if old.element == "i64" else 32
        bit = old.like(1) << (index & (width - 1)).zext(old.element)
        return old | bit if value else old & ~bit

    return run


def _test_bit(value: int) -> Body:
    def run(h: Handler, a: Value, index: Value) -> Value:
        width = 64 if a.element == "i64" else 32
        return (a.lshr((index & (width - 1)).zext(a.element)) & 1).compare("eq", value)

    return run


def _bit_replicate(h: Handler, a: Value) -> Value:
    """Repeats each bit twice."""
    wide = a.zext("i64")
    for step, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        wide = (wide | (wide << step)) & mask
    return wide | (wide << 1)


def _multiply_high(extension: str) -> Body:
    def run(h: Handler, a: Value, b: Value) -> Value:
        product = a.convert(extension, "i64") * b.convert(extension, "i64")
        return product.lshr(32).trunc("i32")

    return run


def _pack(first_high: bool, second_high: bool) -> Body:
    def run(h: Handler, a: Value, b: Value) -> Value:
        low = a.lshr(16) if first_high else a & 0xFFFF
        return low | (b & 0xFFFF0000 if second_high else b << 16)

    return run


SETS_SCC: dict[str, tuple[str, Body]] = {
    "s_add_u32": ("i32 = i32, i32", _carry_add),
    "s_sub_u32": ("i32 = i32, i32", _borrow_sub),
    "s_addc_u32": ("i32 = i32, i32", lambda h, a, b: _carry_add(h, a, b, h.scc())),
    "s_subb_u32": ("i32 = i32, i32", lambda h, a, b: _borrow_sub(h, a, b, h.scc())),
    "s_add_i32": ("i32 = i32, i32", _signed_add),
    "s_sub_i32": ("i32 = i32, i32", _signed_sub),
    "s_addk_i32": ("i32 += i32", lambda h, k, old: _signed_add(h, old, k)),
    "s_min_i32": ("i32 = i32, i32", _pick("slt")),
    "s_min_u32": ("i32 = i32, i32", _pick("ult")),
    "s_max_i32": ("i32 = i32, i32", _pick("sgt")),
    "s_max_u32": ("i32 = i32, i32", _pick("ugt")),
    "s_lshl_b32": ("i32 = i32, i32", _shift("shl", 32)),
    "s_lshl_b64": ("i64 = i64, i32", _shift("shl", 64)),
    "s_lshr_b32": ("i32 = i32, i32", _shift("lshr", 32)),
    "s_lshr_b64": ("i64 = i64, i32", _shift("lshr", 64)),
    "s_ashr_i32": ("i32 = i32, i32", _shift("ashr", 32)),
    "s_ashr_i64": ("i64 = i64, i32", _shift("ashr", 64)),
    "s_bfe_u32": ("i32 = i32, i32", _field(32, False)),
    "s_bfe_i32": ("i32 = i32, i32", _field(32, True)),
    "s_bfe_u64": ("i64 = i64, i32", _field(64, False)),
    "s_bfe_i64": ("i64 = i64, i32", _field(64, True)),
    "s_absdiff_i32": ("i32 = i32, i32", _absolute_difference),
    "s_lshl1_add_u32": ("i32 = i32, i32", _shift_add(1)),
    "s_lshl2_add_u32": ("i32 = i32, i32", _shift_add(2)),
    "s_lshl3_add_u32": ("i32 = i32, i32", _shift_add(3)),
    "s_lshl4_add_u32": ("i32 = i32, i32", _shift_add(4)),
    "s_not_b32": ("i32 = i32", _nonzero(lambda h, a: ~a)),
    "s_not_b64": ("i64 = i64", _nonzero(lambda h, a: ~a)),
    "s_wqm_b32": ("i32 = i32", _whole_quad),
    "s_wqm_b64": ("i64 = i64", _whole_quad),
    "s_quadmask_b32": ("i32 = i32", _quad_mask),
    "s_quadmask_b64": ("i64 = i64", _quad_mask),
    "s_bcnt0_i32_b32": ("i32 = i32", _count_bits(False)),
    "s_bcnt0_i32_b64": ("i32 = i64", _count_bits(False)),
    "s_bcnt1_i32_b32": ("i32 = i32", _count_bits(True)),
    "s_bcnt1_i32_b64": ("i32 = i64", _count_bits(True)),
    "s_abs_i32": ("i32 = i32", _absolute),
    "s_bitcmp0_b32": ("= i32, i32", _test_bit(0)),
    "s_bitcmp1_b32": ("= i32, i32", _test_bit(1)),
    "s_bitcmp0_b64": ("= i64, i32", _test_bit(0)),
    "s_bitcmp1_b64": ("= i64, i32", _test_bit(1)),
}

KEEPS_SCC: dict[str, tuple[str, Body]] = {
    "s_mov_b32": ("i32 = i32", lambda h, a: a),
    "s_mov_b64": ("i64 = i64", lambda h, a: a),
    "s_movk_i32": ("i32 = i32", lambda h, a: a),
    "s_cmov_b32": ("i32 += i32", lambda h, a, old: h.scc().select(a, old)),
    "s_cmov_b64": ("i64 += i64", lambda h, a, old: h.scc().select(a, old)),
    "s_cmovk_i32": ("i32 += i32", lambda h, a, old: h.scc().select(a, old)),
    "s_cselect_b32": ("i32 = i32, i32", lambda h, a, b: h.scc().select(a, b)),
    "s_cselect_b64": ("i64 = i64, i64", lambda h, a, b: h.scc().select(a, b)),
    "s_mul_i32": ("i32 = i32, i32", lambda h, a, b: a * b),
    "s_mulk_i32": ("i32 += i32", lambda h, a, old: a * old),
    "s_mul_hi_u32": ("i32 = i32, i32", _multiply_high("zext")),
    "s_mul_hi_i32": ("i32 = i32, i32", _multiply_high("sext")),
    "s_bfm_b32": ("i32 = i32, i32", _mask(32)),
    "s_bfm_b64": ("i64 = i32, i32", _mask(64)),
    "s_pack_ll_b32_b16": ("i32 = i32, i32", _pack(False, False)),
    "s_pack_lh_b32_b16": ("i32 = i32, i32", _pack(False, True)),
    "s_pack_hh_b32_b16": ("i32 = i32, i32", _pack(True, True)),
    "s_brev_b32": ("i32 = i32", lambda h, a: h.intrinsic("llvm.bitreverse", a)),
    "s_brev_b64": ("i64 = i64", lambda h, a: h.intrinsic("llvm.bitreverse", a)),
    "s_ff0_i32_b32": ("i32 = i32", _find_first("cttz", invert=True)),
    "s_ff0_i32_b64": ("i32 = i64", _find_first("cttz", invert=True)),
    "s_ff1_i32_b32": ("i32 = i32", _find_first("cttz")),
    "s_ff1_i32_b64": ("i32 = i64", _find_first("cttz")),
    "s_flbit_i32_b32": ("i32 = i32", _find_first("ctlz")),
    "s_flbit_i32_b64": ("i32 = i64", _find_first("ctlz")),
    "s_flbit_i32": ("i32 = i32", _find_sign),
    "s_flbit_i32_i64": ("i32 = i64", _find_sign),
    "s_sext_i32_i8": ("i32 = i32", lambda h, a: a.trunc("i8").sext("i32")),
    "s_sext_i32_i16": ("i32 = i32", lambda h, a: a.trunc("i16").sext("i32")),
    "s_bitset0_b32": ("i32 += i32", _set_bit(0)),
    "s_bitset1_b32": ("i32 += i32", _set_bit(1)),
    "s_bitset0_b64": ("i64 += i32", _set_bit(0)),
    "s_bitset1_b64": ("i64 += i32", _set_bit(1)),
    "s_bitreplicate_b64_b32": ("i64 = i32", _bit_replicate),
    # Emitted by the encoder: the number of a lane in a wave of 32.
    "fly_lane_of_32": ("i32 = i32", lambda h, a: a & 31),
    # Emitted by the encoder: the bits of SCC, VCCZ and EXECZ as sources.
    "fly_read_scc": ("i32 =", lambda h: h.scc().zext("i32")),
    "fly_read_vccz": (
        "i32 =",
        lambda h: h.wave.at(state.VCC).load("i64").compare("eq", 0).zext("i32"),
    ),
    "fly_read_execz": ("i32 =", lambda h: h.exec_mask().compare("eq", 0).zext("i32")),
}
