"""Words made of bit fields, some known at compile time and some only at run time."""

from __future__ import annotations

from collections.abc import Iterable

from fly_common.record import record
from fly_dialect.bindings import ir

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder


@record
class Field:
    """`width` bits starting at bit `offset`: a number, or the low bits of an i32 or i64."""

    offset: int
    width: int
    value: int | ir.Value


def words(builder: Builder, count: int, fields: Iterable[Field]) -> ir.Value:
    """Returns a vector of `count` i32 holding the fields, which don't overlap; other bits are 0."""
    known, pieces = [0] * count, [[] for _ in range(count)]
    for field in fields:
        for index in range(field.offset // 32, (field.offset + field.width - 1) // 32 + 1):
            if isinstance(field.value, int):
                bits = (field.value & (1 << field.width) - 1) << field.offset
                known[index] |= bits >> 32 * index & 0xFFFFFFFF
            else:
                pieces[index].append(_piece(builder, field, field.value, index))
    values = [_word(builder, *both) for both in zip(known, pieces, strict=True)]
    type_ = ir.VectorType.get([count], pointers.integer(32))
    return builder.value("vector.from_elements", type_, values)


def _word(builder: Builder, known: int, pieces: list[ir.Value]) -> ir.Value:
    if not known and pieces:
        word, *pieces = pieces
    else:
        word = builder.constant(known - (known >> 31 << 32), 32)
    for piece in pieces:
        word = builder.value("arith.ori", word.type, [word, piece])
    return word


def _piece(builder: Builder, field: Field, value: ir.Value, index: int) -> ir.Value:
    """Returns the part of a field in word `index`: its bits from `start` on, shifted by `shift`."""
    held = pointers.width(value.type)
    start, shift = max(0, 32 * index - field.offset), max(0, field.offset - 32 * index)
    count = min(field.width - start, 32 - shift)
    if start:
        amount = builder.constant(start, held)
        value = builder.value("arith.shrui", value.type, [value, amount])
    if held > 32:
        value = builder.value("arith.trunci", pointers.integer(32), [value])
    # Mask the bits above the field that the shift would leave in the word.
    if count + shift < 32 and held - start > count:
        mask = builder.constant((1 << count) - 1, 32)
        value = builder.value("arith.andi", value.type, [value, mask])
    if shift:
        value = builder.value("arith.shli", value.type, [value, builder.constant(shift, 32)])
    return value
