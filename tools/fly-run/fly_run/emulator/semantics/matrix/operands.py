"""Handlers that move matrix operands from registers to the workspace, and results back: the steps
around a multiplication (see `matrix`, which lists them all)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value, void
from fly_run.emulator.semantics.base.emit import LANES, ROW, Handler
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.matrix import formats
from fly_run.emulator.semantics.matrix.formats import CHUNK, FORMATS, extract

FLAVOURS = {
    "value": tuple(FORMATS),
    "flushed": ("f16", "bf16"),
    "parts": tuple(name for name, form in FORMATS.items() if form.exponent),
    "flushed_parts": ("bf16",),
}
SCALE_BLOCK = 32  # elements along k that share a scale
SCALE_FORMATS = ("E8", "E5M3", "E4M3")  # by their number in the extra word of fly_matrix_scale


def operations() -> Iterator[Operation]:
    for flavour, names in FLAVOURS.items():
        for name in names:
            yield Operation(f"fly_unpack_{name}.{flavour}", "custom", body=_unpack(name, flavour))
    yield Operation("fly_matrix_lanes", "custom", body=_move_lanes)
    yield Operation("fly_matrix_flip", "custom", body=_flip)
    yield Operation("fly_matrix_add_saturating", "custom", body=_add_saturating)
    for element in ("f16", "bf16"):
        yield Operation(f"fly_matrix_widen_{element}", "custom", body=_widen(element))
        yield Operation(f"fly_matrix_narrow_{element}", "custom", body=_narrow(element))
    for bits in (4, 8, 16):
        yield Operation(f"fly_matrix_dense_{bits}", "custom", body=_write_out(bits))
    for count in (1, 2):
        yield Operation(f"fly_matrix_indices_{count}", "custom", body=_deal_indices(count))
    for flavour in ("value", "parts"):
        yield Operation(f"fly_matrix_scale.{flavour}", "custom", body=_scale(flavour))


def workspace(h: Handler) -> Value:
    return h.wave.at(state.CONTEXT).load("ptr").at(state.CTX.matrix).load("ptr")


def raw_operand(h: Handler, number: int) -> Value:
    """Returns an operand's number itself, as i64, instead of a place in the wave state."""
    return h.op.at(state.OP_OPERANDS + 4 * number).load("i32").zext("i64")


def vector(pointer: Value, element: str) -> Value:
    return pointer.load(element, CHUNK, align=4)


def repeat(f: Handler, times: Value, pointers: list[Value], body: Callable) -> list[Value]:
    """Runs `body(pointers)`, which returns the next pointers, `times` times, at least once."""

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        done, *now = carried
        done = done + 1
        return [done, *body(now)], done.compare("ne", times)

    return f.loop([times.like(0), *pointers], turn)[1:]


def _unpack(name: str, flavour: str) -> Callable[[Handler], None]:
    """Operand 0 is the first register, operand 1 the place in the workspace, operand 2 words of 64
    bits: the stride between consecutive elements, the number of register units, and for each 16
    lanes the place of their first element. The extra word is the size of these lanes in a row."""
    form = FORMATS[name]

    def run(h: Handler) -> None:
        target = workspace(h).at(raw_operand(h, 1))
        words = h.operand(2)
        step, units = (words.at(8 * number).load("i64") for number in (0, 1))

        def chunk(carried: list[Value]) -> tuple[list[Value], Value]:
            rows, places = carried
            place = target.at(places.load("i64"))

            def unit(now: list[Value]) -> list[Value]:
                source, place = now
                words = [vector(source.at(ROW * word), "i32") for word in range(form.words)]
                for number in range(form.elements):
                    _put(extract(words, number, form), place)
                    place = place.at(step)
                return [source.at(ROW * form.words), place]

            repeat(h, units, [rows, place], unit)
            after = rows.at(4 * CHUNK)
            return [after, places.at(8)], after.compare("ne", end)

        def _put(raw: Value, place: Value) -> None:
            number = getattr(formats, flavour)(raw, name)
            if isinstance(number, tuple):
                number, exponent = number
                place.at(state.MATRIX_PLANE).store(exponent, align=4)
            place.store(number, align=4)

        first = h.operand(0)
        end = first.at(h.extra().zext("i64"))
        h.loop([first, words.at(16)], chunk)

    return run


def _move_lanes(h: Handler) -> None:
    """Sets operand 0 to operand 1 with lanes permuted: operand 2 has the byte offset in the row
    from which each lane reads."""
    target, source, places = (h.operand(number) for number in range(3))

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (at,) = carried
        target.at(at).store(source.at(places.at(at).load("i32")).load("i32"))
        after = at + 4
        return [after], after.compare("ult", ROW)

    h.loop([h.constant("i64", 0)], turn)


def _deal_indices(count: int) -> Callable[[Handler], None]:
    """gfx1250: sets operand 0 to the indices of the lane's own elements of a sparse A, in `count`
    registers. Those of a row's first half along k are in operand 1 of its lane below 16, those of
    the other half in the lane 16 above; elements change the lane after each quarter."""

    def run(h: Handler) -> None:
        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            (lane,) = carried
            upper = lane.lshr(4)
            halves = [h.operand(1).at((lane & 15) + 16 * half << 2) for half in range(2)]
            target = h.operand(0).at(lane << 2)
            if count == 1:
                shift = (upper << 4).trunc("i32")
                first, second = (half.load("i32").lshr(shift) & 0xFFFF for half in halves)
                target.store(first | (second << 16))
            else:
                for number, half in enumerate(halves):
                    target.at(number * ROW).store(half.at(upper * ROW).load("i32"))
            after = lane + 1
            return [after], after.compare("ne", 32)

        h.loop([h.constant("i64", 0)], turn)

    return run


def _flip(h: Handler) -> None:
    """Sets operand 0 to operand 1 with bits masked by the immediate's upper half, then flipped by
    its lower half."""
    keep, flip = h.immediate().lshr(32).trunc("i32"), h.immediate().trunc("i32")
    value = _row(h, 1) & keep.splat(LANES)
    h.operand(0).store(value ^ flip.splat(LANES), align=4)


def _row(h: Handler, number: int) -> Value:
    return h.operand(number).load("i32", LANES, align=4)


def _widen(element: str) -> Callable[[Handler], None]:
    """Sets operand 0 to the f32 of the 16-bit floats in the low halves of operand 1."""

    def run(h: Handler) -> None:
        raw = h.operand(1).load("i32", LANES, align=2)
        h.operand(0).store(formats.value(raw, element), align=4)

    return run


def _narrow(element: str) -> Callable[[Handler], None]:
    """Rounds the f32 of operand 1 to 16 bits, into operand 0 at the bit given by the immediate; the
    other half is preserved."""

    def run(h: Handler) -> None:
        value = _row(h, 1).bits("float")
        if element == "f16":
            raw = value.convert("fptrunc", "half").bits("i16").zext("i32")
        else:
            bits = value.bits("i32")
            rounded = bits + 0x7FFF + (bits.lshr(16) & 1)
            raw = value.is_nan().select(bits, rounded).lshr(16)  # the NaN of a sum is quiet
        shift = h.immediate().trunc("i32").splat(LANES)
        mask = raw.like(0xFFFF) << shift
        h.operand(0).store((_row(h, 0) & ~mask) | (raw << shift), align=4)

    return run


def _add_saturating(h: Handler) -> None:
    """Operand 0 += operand 1, i32, saturating."""
    h.operand(0).store(h.intrinsic("llvm.sadd.sat", _row(h, 0), _row(h, 1)), align=4)


def _write_out(bits: int) -> Callable[[Handler], None]:
    """Expands a sparse A with zeros: two registers of operand 0 for each one of operand 1 (the
    extra word counts them). Of each four places, the first of a pair of elements goes to the one
    given by the two low bits of its index, the second to the one given by the next two. Operand 2
    has the indices, starting at the bit given by the immediate."""
    pairs = 16 // bits  # per register

    def run(h: Handler) -> None:
        target, source, indices = (h.operand(number) for number in range(3))
        shift = h.immediate().trunc("i32")

        def register(now: list[Value]) -> list[Value]:
            source, target, first_bit = now

            def chunk(carried: list[Value]) -> tuple[list[Value], Value]:
                (at,) = carried
                word = vector(source.at(at), "i32")
                index = vector(indices.at(at), "i32").lshr(first_bit.splat(CHUNK))
                dense: list[Value] = []
                for pair in range(pairs):
                    places = [index.lshr(4 * pair + 2 * n) & 3 for n in (0, 1)]
                    values = [word.lshr(bits * (2 * pair + n)) & ((1 << bits) - 1) for n in (0, 1)]
                    for place in range(4):
                        first, second = (
                            where.compare("eq", place).select(value, 0)
                            for where, value in zip(places, values, strict=True)
                        )
                        dense.append(first | second)
                for number in range(2):
                    some = dense[number * len(dense) // 2 :][: len(dense) // 2]
                    packed = some[0]
                    for place, value in enumerate(some[1:], 1):
                        packed = packed | (value << (bits * place))
                    target.at(ROW * number).at(at).store(packed, align=4)
                after = at + 4 * CHUNK
                return [after], after.compare("ult", ROW)

            h.loop([h.constant("i64", 0)], chunk)
            return [source.at(ROW), target.at(2 * ROW), first_bit + 4 * pairs]

        repeat(h, h.extra(), [source, target, shift], register)

    return run


def _scale_parts(h: Handler, raw: Value) -> tuple[Value, Value, Value]:
    """Returns the digits (f32), the power of two (i32) and whether it is NaN, of a scale in the
    format that the extra word names."""
    kind = h.extra().splat(CHUNK)
    one = raw.like(0x3F80_0000).bits("float")
    digits, exponent, nan = one, raw - 127, raw.compare("eq", 255)
    for number, (fraction, bias, mask) in ((1, (3, 15, 0xFF)), (2, (3, 7, 0x7F))):
        size = raw & mask
        field = size.lshr(fraction)
        normal = field.compare("ne", 0)
        whole = (size & 7) + normal.select(raw.like(8), 0)
        value = whole.convert("uitofp", "float") * 0.125
        if number == 2:
            value = (value.bits("i32") | ((raw & 0x80) << 24)).bits("float")
        here = kind.compare("eq", number)
        digits = here.select(value, digits)
        exponent = here.select(normal.select(field, 1) - bias, exponent)
        nan = here.select(size.compare("eq", mask), nan)
    return digits, exponent, nan


def _scale(flavour: str) -> Callable[[Handler], None]:
    """Multiplies unpacked numbers at the place in operand 1 by scales. Operand 0 is the register of
    the scales, offset to the selected byte of a lane's dword: a lane has the scale of a row and
    consecutive k, as many as the immediate says, with lanes ordered by rows first. Operand 2 is the
    size of a k in bytes. The extra word is the scales' format: E8M0, where 255 is NaN (OCP
    Microscaling Formats, 5.4.1), or on gfx1250 E5M3 without a sign, or E4M3."""

    def run(h: Handler) -> None:
        scales, start = h.operand(0), workspace(h).at(raw_operand(h, 1))
        step, length = h.operand(2).load("i64"), h.immediate()

        def chunk(carried: list[Value]) -> tuple[list[Value], Value]:
            row, column, block = carried
            raw = row.load("i32", CHUNK, align=1) & 0xFF
            digits, exponent, not_number = _scale_parts(h, raw)
            nan = raw.like(formats.NAN).bits("float")
            if flavour == "value":
                # Two steps: 2^-127 is a subnormal, which may be flushed.
                half = exponent.ashr(1)
                powers = [((part + 127) << 23).bits("float") for part in (half, exponent - half)]
                factor = digits * powers[0] * powers[1]
            else:
                factor = digits
            factor = not_number.select(nan, factor)
            shifted = not_number.select(formats.SPECIAL_EXPONENT, exponent)

            def one(now: list[Value]) -> list[Value]:
                (place,) = now
                place.store(vector(place, "float") * factor, align=4)
                if flavour == "parts":
                    exponents = place.at(state.MATRIX_PLANE)
                    exponents.store(vector(exponents, "i32") + shifted, align=4)
                return [place.at(step)]

            void(repeat(h, length, [block.at(column)], one))
            # The last rows of these k are followed by the first rows of the next ones.
            column = column + 4 * CHUNK
            wraps = column.compare("uge", step)
            block = wraps.select(block.at(step * length), block)
            column = wraps.select(0, column)
            after = row.at(4 * CHUNK)
            return [after, column, block], after.compare("ne", end)

        end = scales.at(ROW)
        h.loop([scales, h.constant("i64", 0), start], chunk)

    return run
