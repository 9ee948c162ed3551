"""Transposed loads of gfx12 in waves of 32 lanes, all but those of 16 and 8 bits from memory only
on gfx1250: lanes load parts of the rows of a matrix, and get parts of its
columns, as WMMA wants them.

    16 bits   each 8 lanes: element j of lane d is element d of lane j
    8 bits    each 16: element j is element d mod 8 of lane 8 (j div 4) + 4 (d div 8) + j mod 4
    6 bits    all lanes: element j is element d mod 16 of lane 8 (j div 4) + 4 (d div 16) + j mod 4
    4 bits    all lanes: element j is element d mod 16 of lane 16 (j div 8) + 8 (d div 16) + j mod 8

Source: rocjitsu's shared/ds_transpose.h; Triton's products, which load transposed operands so,
confirm 16 and 8 bits, and so do published measurements on gfx1201 (both) and gfx1250 (16 bits).
EXEC does not disable sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import ROW, Handler
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.vector.lanes import Body

# width → registers of a lane
REGISTERS = {16: 4, 8: 2, 6: 3, 4: 2}


def operations() -> Iterator[Operation]:
    for width in REGISTERS:
        yield Operation(f"fly_transpose_columns_b{width}", "custom", body=_transpose(width))


def source(width: int, lane: Value, element: int) -> tuple[Value, Value]:
    """Returns the lane (i64) and the number of the element that element `element` of a lane is."""
    if width == 16:
        return (lane & ~7) + element, lane & 7
    if width == 8:
        first = (lane & ~15) + 8 * (element // 4) + element % 4
        return first + ((lane.lshr(3) & 1) << 2), lane & 7
    if width == 6:
        first = lane.lshr(4) << 2
        return first + 8 * (element // 4) + element % 4, lane & 15
    first = lane.lshr(4) << 3
    return first + 16 * (element // 8) + element % 8, lane & 15


def _transpose(width: int) -> Body:
    """Operand 0: the result's registers, operand 1: those loaded, which are temporaries."""
    registers = REGISTERS[width]
    count = 32 * registers // width
    mask = (1 << width) - 1

    def run(h: Handler) -> None:
        def make(lane: Value) -> None:
            words: list[Value] = [h.constant("i32", 0)] * registers
            for number in range(count):
                origin, element = source(width, lane, number)
                bit = element * width
                word, shift = bit.lshr(5), (bit & 31).trunc("i32")
                place = h.operand(1).at((word * ROW) + (origin << 2))
                value = place.load("i32").lshr(shift)
                if width == 6:
                    # The field may extend into the next register.
                    last = word.compare("eq", registers - 1)
                    further = last.select(place, place.at(ROW)).load("i32")
                    carried = (further << 1) << (31 - shift)
                    value = value | carried
                value = value & mask
                first, start = divmod(number * width, 32)
                words[first] = words[first] | (value << start)
                if start + width > 32:
                    words[first + 1] = words[first + 1] | value.lshr(32 - start)
            for number, word_value in enumerate(words):
                h.operand(0).at(number * ROW).at(lane << 2).store(word_value)

        h.for_lanes(h.exec_mask(), make)

    return run
