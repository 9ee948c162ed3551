"""Handlers of matrix instructions. An instruction is several steps (`lower_matrix` puts them
together), which hand matrices on through a workspace that each thread has (`CTX.matrix`):

    fly_matrix_lanes       moves a register between lanes: cbsz, abid, blgp, and A of 4 × 4 matrices
    fly_matrix_flip        changes bits of a register: signs
    fly_matrix_dense_BITS  writes out a sparse A's zeros
    fly_matrix_widen_…     C of 16 bits as f32; and `narrow` for D
    fly_matrix_add_saturating  D = C + D
    fly_unpack_FORMAT.…    A or B from registers to the workspace, as numbers, k by k
    fly_matrix_scale.…     block scales onto what was unpacked
    fly_matrix_MODEL.…     multiplies and adds: C and the workspace to D

A and B lie k by k in the workspace: the numbers of one k are side by side, those of all rows (or
columns) of all blocks. No step looks at EXEC.

The multiplying handlers work on tiles, which a descriptor among the constants lists: `wide` ones
are 16 × 16, with one element of A at a time for 16 columns of B; `quad` ones are four rows of four
4 × 4 matrices, with 16 elements of A for 16 of B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fly_run.emulator import matrix, state
from fly_run.emulator.irgen import Value, void
from fly_run.emulator.semantics import matrix_formats
from fly_run.emulator.semantics.emit import LANES, ROW, Handler, halves, interleave
from fly_run.emulator.semantics.matrix_arithmetic import (
    Term,
    block_sum,
    first_accumulator,
)
from fly_run.emulator.semantics.matrix_formats import CHUNK, FORMATS, extract
from fly_run.emulator.semantics.operation import Operation

FLAVOURS = {
    "value": tuple(FORMATS),
    "flushed": ("f16", "bf16"),
    "parts": tuple(name for name, form in FORMATS.items() if form.exponent),
}
# Models by the element type of their sums, and those that work block by block: how long a block is.
CHAINS = {"fma_f32": "float", "fma_f64": "double", "mul_i32": "i32"}
BLOCKS = {"ftz2": 2, "ftz4": 4, "tr4": 4, "tr8": 8, "gtr16": 16}
QUAD_MODELS = (*CHAINS, "ftz2", "ftz4", "tr4")  # those that 4 × 4 matrices need
TILE_ROWS = {"wide": 16, "quad": 4}

# A descriptor: words of 64 bits, offsets and distances in bytes.
K, K_STEP, A_STEP, TILES, D_STEPS, C_STEPS, HEADER = 0, 1, 2, 3, 4, 8, 12
TILE_WORDS = 4  # for each tile then: its places in A, B, D and C
SCALE_BLOCK = 32  # elements along k that share a scale


def operations() -> Iterator[Operation]:
    """The steps, and the instructions of all targets: a mnemonic has a row for each shape that it
    means somewhere."""
    for mnemonic, shape, targets in matrix.instructions():
        meaning = f"@{'_'.join(targets)}"
        form = "wmma" if shape.wave else "matrix"
        yield Operation(mnemonic + meaning, form, targets=frozenset(targets), detail=shape)
    for flavour, names in FLAVOURS.items():
        for name in names:
            yield Operation(f"fly_unpack_{name}.{flavour}", "custom", body=_unpack(name, flavour))
    for kind in TILE_ROWS:
        for model, element in CHAINS.items():
            body = _chain(kind, element)
            yield Operation(f"fly_matrix_{model}.{kind}", "custom", body=body)
        for model, length in BLOCKS.items():
            if kind == "wide" or model in QUAD_MODELS:
                body = _by_blocks(kind, model.rstrip("0123456789"), length)
                yield Operation(f"fly_matrix_{model}.{kind}", "custom", body=body)
    yield Operation("fly_matrix_lanes", "custom", body=_move_lanes)
    yield Operation("fly_matrix_flip", "custom", body=_flip)
    yield Operation("fly_matrix_add_saturating", "custom", body=_add_saturating)
    for element in ("f16", "bf16"):
        yield Operation(f"fly_matrix_widen_{element}", "custom", body=_widen(element))
        yield Operation(f"fly_matrix_narrow_{element}", "custom", body=_narrow(element))
    for bits in (4, 8, 16):
        yield Operation(f"fly_matrix_dense_{bits}", "custom", body=_write_out(bits))
    for flavour in ("value", "parts"):
        yield Operation(f"fly_matrix_scale.{flavour}", "custom", body=_scale(flavour))


def _workspace(h: Handler) -> Value:
    return h.wave.at(state.CONTEXT).load("ptr").at(state.CTX.matrix).load("ptr")


def _raw(h: Handler, number: int) -> Value:
    """An operand's number itself, an i64: no place in the wave state."""
    return h.op.at(state.OP_OPERANDS + 4 * number).load("i32").zext("i64")


def _vector(pointer: Value, element: str) -> Value:
    return pointer.load(element, CHUNK, align=4)


def _count(f: Handler, times: Value, pointers: list[Value], body: Callable) -> list[Value]:
    """Runs `body(pointers)`, which returns the next ones, `times` times, at least once."""

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        left, *now = carried
        left = left - 1
        return [left, *body(now)], left.compare("ne", 0)

    return f.loop([times, *pointers], turn)[1:]


# -- operands --------------------------------------------------------------------------------------


def _unpack(name: str, flavour: str) -> Callable[[Handler], None]:
    """Operand 0 is the first register, operand 1 the place in the workspace. The immediate has four
    16-bit places, one for each 16 lanes: of their first element. The extra word has the distance of
    consecutive elements in its low half, and how many units of registers there are in its high
    half."""
    form = FORMATS[name]

    def run(h: Handler) -> None:
        target = _workspace(h).at(_raw(h, 1))
        step = (h.extra() & 0xFFFF).zext("i64")
        units = h.extra().lshr(16).zext("i64")

        def chunk(carried: list[Value]) -> tuple[list[Value], Value]:
            rows, places = carried
            place = target.at(places & 0xFFFF)

            def unit(now: list[Value]) -> list[Value]:
                source, place = now
                words = [_vector(source.at(ROW * word), "i32") for word in range(form.words)]
                for number in range(form.elements):
                    _put(extract(words, number, form), place)
                    place = place.at(step)
                return [source.at(ROW * form.words), place]

            _count(h, units, [rows, place], unit)
            after = rows.at(4 * CHUNK)
            return [after, places.lshr(16)], after.compare("ne", end)

        def _put(raw: Value, place: Value) -> None:
            if flavour == "parts":
                significand, exponent = matrix_formats.parts(raw, name)
                place.store(significand, align=4)
                place.at(state.MATRIX_PLANE).store(exponent, align=4)
            else:
                place.store(getattr(matrix_formats, flavour)(raw, name), align=4)

        first = h.operand(0)
        end = first.at(ROW)
        h.loop([first, h.immediate()], chunk)

    return run


def _move_lanes(h: Handler) -> None:
    """Operand 0 becomes operand 1 with each lane's value from the lane that operand 2 tells."""
    target, source, lanes = (h.operand(number) for number in range(3))

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (at,) = carried
        lane = lanes.at(at).load("i32").zext("i64")
        target.at(at).store(source.at(lane << 2).load("i32"))
        after = at + 4
        return [after], after.compare("ult", ROW)

    h.loop([h.constant("i64", 0)], turn)


def _flip(h: Handler) -> None:
    """Operand 0 becomes operand 1: bits are kept by the immediate's upper half, then changed by its
    lower one."""
    keep, flip = h.immediate().lshr(32).trunc("i32"), h.immediate().trunc("i32")
    value = _row(h, 1) & keep.splat(LANES)
    h.operand(0).store(value ^ flip.splat(LANES), align=4)


def _row(h: Handler, number: int) -> Value:
    return h.operand(number).load("i32", LANES, align=4)


def _widen(element: str) -> Callable[[Handler], None]:
    """Operand 0 becomes the f32 of the 16-bit floats in operand 1 that begin at the bit that the
    immediate tells."""

    def run(h: Handler) -> None:
        raw = _row(h, 1).lshr(h.immediate().trunc("i32").splat(LANES)) & 0xFFFF
        h.operand(0).store(matrix_formats.value(raw, element), align=4)

    return run


def _narrow(element: str) -> Callable[[Handler], None]:
    """The f32 of operand 1, rounded to 16 bits, go to operand 0 at the bit that the immediate
    tells; its other half stays."""

    def run(h: Handler) -> None:
        value = _row(h, 1).bits("float")
        if element == "f16":
            raw = value.convert("fptrunc", "half").bits("i16").zext("i32")
        else:
            bits = value.bits("i32")
            rounded = bits + 0x7FFF + (bits.lshr(16) & 1)
            raw = value.is_nan().select(bits | 0x0040_0000, rounded).lshr(16)
        shift = h.immediate().trunc("i32").splat(LANES)
        mask = raw.like(0xFFFF) << shift
        h.operand(0).store((_row(h, 0) & ~mask) | (raw << shift), align=4)

    return run


def _add_saturating(h: Handler) -> None:
    """Operand 0 = operand 1 + operand 2, i32, held to the type's range."""
    h.operand(0).store(h.intrinsic("llvm.sadd.sat", _row(h, 1), _row(h, 2)), align=4)


def _write_out(bits: int) -> Callable[[Handler], None]:
    """Two registers of operand 0 for each one of operand 1 (the extra word counts them): a sparse
    A's elements among zeros. Of each four places, the first of a pair of elements goes to the one
    that the two low bits of its index tell, the second where the next two do. Operand 2 has the
    indices, from the bit on that the immediate tells."""
    pairs = 16 // bits  # in a register

    def run(h: Handler) -> None:
        target, source, indices = (h.operand(number) for number in range(3))
        shift = h.immediate().trunc("i32")

        def register(now: list[Value]) -> list[Value]:
            source, target, first_bit = now

            def chunk(carried: list[Value]) -> tuple[list[Value], Value]:
                (at,) = carried
                word = _vector(source.at(at), "i32")
                index = _vector(indices.at(at), "i32").lshr(first_bit.splat(CHUNK))
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

        _count(h, h.extra().zext("i64"), [source, target, shift], register)

    return run


def _scale(flavour: str) -> Callable[[Handler], None]:
    """Multiplies what was unpacked at the place that operand 1 tells by E8M0 scales. Operand 0 is
    their register: a lane has the scale of a row and 32 consecutive k, lanes by rows first. The
    immediate tells the scale's bit in a lane's dword, the extra word how many bytes a k takes. A
    scale of 255 is NaN (OCP Microscaling Formats, 5.4.1)."""

    def run(h: Handler) -> None:
        scales, start = h.operand(0), _workspace(h).at(_raw(h, 1))
        shift = h.immediate().trunc("i32").splat(CHUNK)
        step = h.extra().zext("i64")

        def chunk(carried: list[Value]) -> tuple[list[Value], Value]:
            row, column, block = carried
            raw = _vector(row, "i32").lshr(shift) & 0xFF
            not_number = raw.compare("eq", 255)
            nan = raw.like(matrix_formats.NAN).bits("float")
            if flavour == "value":
                # 2^-127 is a subnormal.
                bits = raw.compare("eq", 0).select(0x0040_0000, raw << 23)
                factor = not_number.select(nan, bits.bits("float"))
            else:
                factor = not_number.select(nan, 1.0)
            shifted = not_number.select(matrix_formats.SPECIAL_EXPONENT, raw - 127)

            def one(now: list[Value]) -> list[Value]:
                (place,) = now
                place.store(_vector(place, "float") * factor, align=4)
                if flavour == "parts":
                    exponents = place.at(state.MATRIX_PLANE)
                    exponents.store(_vector(exponents, "i32") + shifted, align=4)
                return [place.at(step)]

            void(_count(h, h.constant("i64", SCALE_BLOCK), [block.at(column)], one))
            # After the last rows of these k, the first rows of the next ones.
            column = column + 4 * CHUNK
            wraps = column.compare("uge", step)
            block = wraps.select(block.at(step * SCALE_BLOCK), block)
            column = wraps.select(0, column)
            after = row.at(4 * CHUNK)
            return [after, column, block], after.compare("ne", end)

        end = scales.at(ROW)
        h.loop([scales, h.constant("i64", 0), start], chunk)

    return run


# -- multiplication ----------------------------------------------------------------------------


class Tile(NamedTuple):
    """Pointers to a tile's first elements, and the distances between them."""

    a: Value
    b: Value
    d: Value
    c: Value
    k: Value
    k_step: Value
    a_step: Value
    d_steps: list[Value]
    c_steps: list[Value]

    def row(self, of: str, number: Value) -> Value:
        """A pointer to row `number` (i64) of C or D: each bit of the number has its distance."""
        base, steps = (self.d, self.d_steps) if of == "d" else (self.c, self.c_steps)
        offset = (number & 1) * steps[0]
        for bit, step in enumerate(steps[1:], 1):
            offset = offset + (number.lshr(bit) & 1) * step
        return base.at(offset)


def _over_tiles(h: Handler, body: Callable[[Tile], None]) -> None:
    """Operand 0 is D, operand 1 C, operand 2 the descriptor."""
    d, c, words = (h.operand(number) for number in range(3))
    b = _workspace(h).at(state.MATRIX_B)
    a = _workspace(h)

    def word(number: int) -> Value:
        return words.at(8 * number).load("i64")

    k, k_step, a_step, tiles = (word(number) for number in (K, K_STEP, A_STEP, TILES))
    steps = [[word(first + bit) for bit in range(4)] for first in (D_STEPS, C_STEPS)]

    def one(now: list[Value]) -> list[Value]:
        (entry,) = now
        offsets = [entry.at(8 * number).load("i64") for number in range(TILE_WORDS)]
        a_at, b_at, d_at, c_at = (
            base.at(offset) for base, offset in zip((a, b, d, c), offsets, strict=True)
        )
        body(Tile(a_at, b_at, d_at, c_at, k, k_step, a_step, steps[0], steps[1]))
        return [entry.at(8 * TILE_WORDS)]

    _count(h, tiles, [words.at(8 * HEADER)], one)


def _load_sum(place: Value, element: str) -> Value:
    if element != "double":
        return _vector(place, element)
    return interleave(_vector(place, "i32"), _vector(place.at(ROW), "i32")).bits("double")


def _store_sum(place: Value, value: Value) -> None:
    if value.element != "double":
        place.store(value, align=4)
        return
    for number, half in enumerate(halves(value.bits("i64"))):
        place.at(ROW * number).store(half, align=4)


def _factor(row: Value, kind: str, element: str) -> Value:
    """A's factor for 16 results: one element for all, or one for each."""
    return row.load(element).splat(CHUNK) if kind == "wide" else _vector(row, element)


def _chain(kind: str, element: str) -> Callable[[Handler], None]:
    """A chain of fused multiply-adds, or of integer ones, along k: all rows of a tile at once."""
    width = 8 if element == "double" else 4

    def multiply_add(a: Value, b: Value, total: Value) -> Value:
        if element == "i32":
            return a * b + total
        return a.function.intrinsic("llvm.fma", a, b, total)

    def run(h: Handler) -> None:
        def tile(t: Tile) -> None:
            numbers = [h.constant("i64", number) for number in range(TILE_ROWS[kind])]

            def step(now: list[Value]) -> list[Value]:
                a, b, *sums = now
                column = _vector(b, element)
                rows = [
                    a.at(width * n if kind == "wide" else t.a_step * n)
                    for n, _ in enumerate(numbers)
                ]
                following = [
                    multiply_add(_factor(row, kind, element), column, total)
                    for row, total in zip(rows, sums, strict=True)
                ]
                return [a.at(t.k_step), b.at(t.k_step), *following]

            start = [_load_sum(t.row("c", number), element) for number in numbers]
            _, _, *sums = _count(h, t.k, [t.a, t.b, *start], step)
            for number, total in zip(numbers, sums, strict=True):
                _store_sum(t.row("d", number), total)

        _over_tiles(h, tile)

    return run


def _by_blocks(kind: str, model: str, length: int) -> Callable[[Handler], None]:
    """Row by row, blocks of `length` products."""

    def run(h: Handler) -> None:
        def tile(t: Tile) -> None:
            def row(now: list[Value]) -> list[Value]:
                number, a_row = now

                def block(now: list[Value]) -> list[Value]:
                    a, b, total = now
                    terms = []
                    for _ in range(length):
                        terms.append(_term(kind, model, a, b))
                        a, b = a.at(t.k_step), b.at(t.k_step)
                    return [a, b, block_sum(model, terms, total)]

                c = first_accumulator(model, _load_sum(t.row("c", number), "float"))
                blocks = h.value("i64", 0, f"udiv i64 {t.k.name}, {length}")
                *_, total = _count(h, blocks, [a_row, t.b, c], block)
                _store_sum(t.row("d", number), total)
                return [number + 1, a_row.at(t.a_step)]

            zero = h.constant("i64", 0)
            void(_count(h, h.constant("i64", TILE_ROWS[kind]), [zero, t.a], row))

        _over_tiles(h, tile)

    return run


def _term(kind: str, model: str, a: Value, b: Value) -> Term:
    first, second = _factor(a, kind, "float"), _vector(b, "float")
    if model == "ftz":
        return Term(first, second)
    exponents = a.at(state.MATRIX_PLANE), b.at(state.MATRIX_PLANE)
    return Term(first, second, _factor(exponents[0], kind, "i32"), _vector(exponents[1], "i32"))


assert LANES == 4 * CHUNK  # the immediate of `fly_unpack` has four places
