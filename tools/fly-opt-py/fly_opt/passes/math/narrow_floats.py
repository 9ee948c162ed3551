"""Conversions between f32 and floats of 8 bits or fewer, by instructions of the target.

An instruction converts a group: as many elements as fill whole words. A vector is split into
groups, and the last group is padded. E8M0 is the exponent of an f32 and needs no instruction. A
backend has a table of its formats (`Format`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_target.target import Target

from fly_opt.ir import pointers, vectors
from fly_opt.ir.builder import Builder
from fly_opt.passes.base import refuse


@record
class Format:
    """The conversion of a format: its name in the instructions and the elements of a group.
    `widen` converts a group's words to as many vectors of f32 as `count` elements need; `narrow`
    converts a vector of f32, of which the first `count` elements matter, to words."""

    name: str
    group: int
    widen: Callable[[Builder, Format, ir.Value, int], list[ir.Value]]
    narrow: Callable[[Builder, Format, ir.Value, int], list[ir.Value]]


def floats(count: int) -> ir.VectorType:
    return ir.VectorType.get([count], ir.F32Type.get())


SCALE = "f8E8M0FNU"


def element(type_: ir.Type) -> str:
    return str(type_.element_type if isinstance(type_, ir.VectorType) else type_)


def is_conversion(op: ir.Operation) -> bool:
    """Returns whether this arith.extf or arith.truncf is from or to a float of at most 8 bits."""
    return any(_is_narrow(element(value.type)) for value in (op.operands[0], op.results[0]))


def _is_narrow(name: str) -> bool:
    return name.startswith(("f8E", "f6E", "f4E"))


def convert(op: ir.Operation, target: Target | None, formats: Mapping[str, Format]) -> None:
    """Replaces a conversion by instructions of `target`. InputError if it has none."""
    widens = op.name == "arith.extf"
    value, wanted = op.operands[0], op.results[0].type
    narrow, wide = (value.type, wanted) if widens else (wanted, value.type)
    name = element(narrow)
    builder = Builder()
    builder.alone(op)
    # Convert f16 and bf16 by way of f32, which represents them exactly: they are rounded once. An
    # f64 is rounded to f32 first.
    through = _like(wide, ir.F32Type.get())
    if not widens and wide != through:
        value = _betweenfloats(builder, value, through)
    if name == SCALE:
        made = _exponent_widened(builder, value) if widens else _exponent(builder, value)
    else:
        if target is None or name not in target.narrow_floats:
            what = target.name if target else "a module without a target"
            known = target.narrow_floats if target else ()
            raise refuse(
                op,
                f"{what} has no conversion between {name} and f32",
                f"supported conversions: {', '.join(known) or 'none'}",
            )
        form = formats[name]
        if widens:
            made = _widened(builder, form, value, through)
        else:
            made = _narrowed(builder, form, value, narrow)
    if widens and wide != through:
        made = _betweenfloats(builder, made, wide)
    op.results[0].replace_all_uses_with(made)
    op.erase()


def _widened(builder: Builder, form: Format, value: ir.Value, wanted: ir.Type) -> ir.Value:
    values = _as_vector(builder, value)
    type_ = _vector(values)
    count, bits = type_.shape[0], pointers.width(type_.element_type)
    whole = -(-count // form.group) * form.group
    codes = builder.value("arith.bitcast", _integers(count, bits), [values])
    codes = _resized(builder, codes, whole)
    result = vectors.poison(builder, floats(whole))
    for start in range(0, whole, form.group):
        words = _cast(builder, _part(builder, codes, start, form.group), form.group * bits // 32)
        for piece in form.widen(builder, form, words, min(count - start, form.group)):
            result = vectors.insert(builder, piece, result, start)
            start += _vector(piece).shape[0]
    return _as(builder, _resized(builder, result, count), wanted)


def _narrowed(builder: Builder, form: Format, value: ir.Value, wanted: ir.Type) -> ir.Value:
    values = _as_vector(builder, value)
    count = _vector(values).shape[0]
    type_ = wanted.element_type if isinstance(wanted, ir.VectorType) else wanted
    whole = -(-count // form.group) * form.group
    values = _resized(builder, values, whole)
    codes = vectors.poison(builder, _integers(whole, pointers.width(type_)))
    for start in range(0, whole, form.group):
        part = _part(builder, values, start, form.group)
        for words in form.narrow(builder, form, part, min(count - start, form.group)):
            piece = _as_vector(builder, words)
            piece = vectors.bitcast(builder, piece, _integers(form.group, pointers.width(type_)))
            codes = vectors.insert(builder, piece, codes, start)
    codes = _resized(builder, codes, count)
    narrow = builder.value("arith.bitcast", ir.VectorType.get([count], type_), [codes])
    return _as(builder, narrow, wanted)


def _exponent_widened(builder: Builder, value: ir.Value) -> ir.Value:
    """Converts E8M0 to f32: its bits are the exponent; 0 is 2**-127, a subnormal; 255 is NaN."""
    codes = _convert(builder, "arith.bitcast", value, pointers.integer(8))
    codes = _convert(builder, "arith.extui", codes, pointers.integer(32))
    made = _with(builder, "arith.shli", codes, 23)
    for code, bits in ((0x00, 0x00400000), (0xFF, 0x7FC00000)):
        hit = _equal(builder, codes, code)
        operands = [hit, _splat(builder, codes.type, bits), made]
        made = builder.value("arith.select", codes.type, operands)
    return _convert(builder, "arith.bitcast", made, ir.F32Type.get())


def _exponent(builder: Builder, value: ir.Value) -> ir.Value:
    """Converts f32 to E8M0: the power of two at or below the magnitude; NaN for inf and NaN."""
    bits = _convert(builder, "arith.bitcast", value, pointers.integer(32))
    moved = _with(builder, "arith.shrui", bits, 23)
    codes = _convert(builder, "arith.trunci", moved, pointers.integer(8))
    return _convert(builder, "arith.bitcast", codes, ir.Type.parse(SCALE))


# -- vectors of any length -------------------------------------------------------------------------


def _vector(value: ir.Value) -> ir.VectorType:
    return ir.VectorType(value.type)


def _integers(count: int, bits: int) -> ir.VectorType:
    return ir.VectorType.get([count], pointers.integer(bits))


def _as_vector(builder: Builder, value: ir.Value) -> ir.Value:
    if isinstance(value.type, ir.VectorType):
        return value
    return builder.value("vector.from_elements", ir.VectorType.get([1], value.type), [value])


def _as(builder: Builder, vector: ir.Value, wanted: ir.Type) -> ir.Value:
    """Returns the element of a one-element vector if a scalar is wanted."""
    if isinstance(wanted, ir.VectorType):
        return vector
    return vectors.extract(builder, vector, 0, None)


def _resized(builder: Builder, vector: ir.Value, count: int) -> ir.Value:
    """Returns the first `count` elements, padded by repeating the last one."""
    held = _vector(vector).shape[0]
    if held == count:
        return vector
    return shuffled(builder, vector, [min(index, held - 1) for index in range(count)])


def shuffled(builder: Builder, vector: ir.Value, places: Sequence[int]) -> ir.Value:
    type_ = ir.VectorType.get([len(places)], _vector(vector).element_type)
    attributes = {"mask": ir.DenseI64ArrayAttr.get(list(places))}
    return builder.value("vector.shuffle", type_, [vector, vector], attributes)


def _part(builder: Builder, vector: ir.Value, start: int, count: int) -> ir.Value:
    if _vector(vector).shape[0] == count:
        return vector
    return vectors.extract(builder, vector, start, count)


def _cast(builder: Builder, codes: ir.Value, words: int) -> ir.Value:
    """Casts a group's encodings to words: one i32, or a vector."""
    value = vectors.bitcast(builder, codes, ir.VectorType.get([words], pointers.integer(32)))
    return value if words > 1 else vectors.extract(builder, value, 0, None)


def _like(type_: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


def _convert(builder: Builder, name: str, value: ir.Value, element: ir.Type) -> ir.Value:
    return builder.value(name, _like(value.type, element), [value])


def _betweenfloats(builder: Builder, value: ir.Value, wanted: ir.Type) -> ir.Value:
    """Converts between types of 16, 32 or 64 bits."""
    sizes = [pointers.width(type_) for type_ in (value.type, wanted)]
    name = "arith.extf" if sizes[0] < sizes[1] else "arith.truncf"
    return builder.value(name, wanted, [value])


def _splat(builder: Builder, type_: ir.Type, number: int) -> ir.Value:
    if not isinstance(type_, ir.VectorType):
        return builder.constant(number, pointers.width(type_))
    element = ir.IntegerAttr.get(type_.element_type, number)
    return builder.constant_of(ir.DenseElementsAttr.get_splat(type_, element))


def _with(builder: Builder, name: str, value: ir.Value, number: int) -> ir.Value:
    return builder.value(name, value.type, [value, _splat(builder, value.type, number)])


def _equal(builder: Builder, value: ir.Value, number: int) -> ir.Value:
    predicate = {"predicate": ir.IntegerAttr.get(pointers.integer(64), 0)}
    operands = [value, _splat(builder, value.type, number)]
    return builder.value("arith.cmpi", _like(value.type, pointers.integer(1)), operands, predicate)
