"""The handlers that multiply matrices, and the rows of all matrix instructions.

An instruction consists of several steps (built by `lower_matrix`), which pass matrices through a
workspace that each thread has (`CTX.matrix`):

    fly_matrix_lanes       moves a register between lanes: cbsz, abid, blgp, and A of 4 × 4 matrices
    fly_matrix_flip        changes bits of a register: signs
    fly_matrix_dense_BITS  expands a sparse A with zeros
    fly_matrix_indices_N   gfx1250: the indices of the lane's own elements, for that
    fly_matrix_widen_…     converts C of 16 bits to f32; `narrow` is the inverse for D
    fly_matrix_add_saturating  D = C + D
    fly_unpack_FORMAT.…    A or B from registers to the workspace, as numbers, ordered by k
    fly_matrix_scale.…     applies block scales to unpacked numbers
    fly_matrix_MODEL.…     multiplies and adds: C and the workspace to D

The workspace orders A and B by k: the numbers of one k are contiguous, for all rows (or columns) of
all blocks. No step depends on EXEC.

The multiply handlers process tiles, which a descriptor among the constants lists: `wide` tiles are
16 × 16, with one element of A at a time for 16 columns of B; `quad` tiles are four rows of four
4 × 4 matrices, with 16 elements of A for 16 of B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from fly_run.emulator import state
from fly_run.emulator.irgen import Value, void
from fly_run.emulator.isa import matrix
from fly_run.emulator.semantics.base.emit import ROW, Handler, halves, interleave
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.matrix.arithmetic import Term, flush, sum_flushing, sum_truncating
from fly_run.emulator.semantics.matrix.formats import CHUNK
from fly_run.emulator.semantics.matrix.measured import RESULTS, sum_complements, sum_pairs
from fly_run.emulator.semantics.matrix.operands import repeat, vector, workspace


class Blocks(NamedTuple):
    """A model that works by blocks: the number of products in a block, and the function that adds
    them to C. `flushes`: CDNA2's model, which needs no exponents and reads a subnormal C as +0."""

    length: int
    add: Callable[[list[Term], Value], Value]
    flushes: bool = False


# Models by the element type of their sums, and block models.
CHAINS = {"fma_f32": "float", "fma_f64": "double", "mul_i32": "i32"}
BLOCKS = {
    "ftz2": Blocks(2, sum_flushing, flushes=True),
    "ftz4": Blocks(4, sum_flushing, flushes=True),
    "tr4": Blocks(4, partial(sum_truncating, grouped=False)),
    "tr8": Blocks(8, partial(sum_truncating, grouped=False)),
    "gtr16": Blocks(16, partial(sum_truncating, grouped=True)),
    **{f"complements_{to}": Blocks(2, partial(sum_complements, result=to)) for to in RESULTS},
    **{f"pairs_{to}": Blocks(4, partial(sum_pairs, result=to)) for to in RESULTS},
}
QUAD_MODELS = (*CHAINS, "ftz2", "ftz4", "tr4")  # used by 4 × 4 matrices
TILE_ROWS = {"wide": 16, "quad": 4}

# A descriptor of 64-bit words, with offsets and strides in bytes: the number of k, or blocks of k;
# the stride along k; the number of tiles; the rows of a tile of D, and those of C.
TURNS, K_STEP, TILES, D_ROWS, C_ROWS, HEADER = 0, 1, 2, 3, 19, 35
TILE_WORDS = 4  # per tile: its offsets in A, B, D and C


def operations() -> Iterator[Operation]:
    """Yields the instructions of all targets, a row for each shape that a mnemonic has on some
    target, and the multiply steps."""
    for mnemonic, shape, sets in matrix.instructions():
        meaning = f"@{'_'.join(sets)}"
        form = "wmma" if shape.wave else "matrix"
        yield Operation(mnemonic + meaning, form, traits=frozenset(sets), detail=shape)
    for kind in TILE_ROWS:
        for model, element in CHAINS.items():
            body = _chain(kind, element)
            yield Operation(f"fly_matrix_{model}.{kind}", "custom", body=body)
        for model, blocks in BLOCKS.items():
            if kind == "wide" or model in QUAD_MODELS:
                body = _by_blocks(kind, blocks)
                yield Operation(f"fly_matrix_{model}.{kind}", "custom", body=body)


class Tile(NamedTuple):
    """Pointers to a tile's first elements and to the offsets of its rows, the number of iterations
    along k, and the stride along k."""

    a: Value
    b: Value
    d: Value
    c: Value
    rows: Value
    turns: Value
    k_step: Value


def _row_of_d(t: Tile, rows: Value) -> Value:
    """Returns a pointer to the row of D whose offset is at `rows`."""
    return t.d.at(rows.load("i64"))


def _row_of_c(t: Tile, rows: Value) -> Value:
    return t.c.at(rows.at(8 * (C_ROWS - D_ROWS)).load("i64"))


def _over_tiles(h: Handler, body: Callable[[Tile], None]) -> None:
    """Loops over tiles. Operand 0 is D, operand 1 C, operand 2 the descriptor."""
    d, c, words = (h.operand(number) for number in range(3))
    b = workspace(h).at(state.MATRIX_B)
    a = workspace(h)

    def word(number: int) -> Value:
        return words.at(8 * number).load("i64")

    turns, k_step, tiles = (word(number) for number in (TURNS, K_STEP, TILES))
    rows = words.at(8 * D_ROWS)

    def one(now: list[Value]) -> list[Value]:
        (entry,) = now
        offsets = [entry.at(8 * number).load("i64") for number in range(TILE_WORDS)]
        a_at, b_at, d_at, c_at = (
            base.at(offset) for base, offset in zip((a, b, d, c), offsets, strict=True)
        )
        body(Tile(a_at, b_at, d_at, c_at, rows, turns, k_step))
        return [entry.at(8 * TILE_WORDS)]

    repeat(h, tiles, [words.at(8 * HEADER)], one)


def _load_sum(place: Value, element: str) -> Value:
    if element != "double":
        return vector(place, element)
    return interleave(vector(place, "i32"), vector(place.at(ROW), "i32")).bits("double")


def _store_sum(place: Value, value: Value) -> None:
    if value.element != "double":
        place.store(value, align=4)
        return
    for number, half in enumerate(halves(value.bits("i64"))):
        place.at(ROW * number).store(half, align=4)


def _row_step(kind: str, width: int) -> int:
    """Returns the stride in bytes between rows of A, for elements of `width` bytes."""
    return width if kind == "wide" else state.MATRIX_ROW


def _factor(row: Value, kind: str, element: str) -> Value:
    """Loads A's factor for 16 results: one element for all, or one for each."""
    return row.load(element).splat(CHUNK) if kind == "wide" else vector(row, element)


def _chain(kind: str, element: str) -> Callable[[Handler], None]:
    """A chain of fused (or integer) multiply-adds along k, for all rows of a tile at once."""
    width = 8 if element == "double" else 4

    def multiply_add(a: Value, b: Value, total: Value) -> Value:
        if element == "i32":
            return a * b + total
        return a.function.intrinsic("llvm.fma", a, b, total)

    def run(h: Handler) -> None:
        def tile(t: Tile) -> None:
            entries = [t.rows.at(8 * number) for number in range(TILE_ROWS[kind])]

            def step(now: list[Value]) -> list[Value]:
                a, b, *sums = now
                column = vector(b, element)
                rows = [a.at(_row_step(kind, width) * n) for n in range(TILE_ROWS[kind])]
                following = [
                    multiply_add(_factor(row, kind, element), column, total)
                    for row, total in zip(rows, sums, strict=True)
                ]
                return [a.at(t.k_step), b.at(t.k_step), *following]

            start = [_load_sum(_row_of_c(t, entry), element) for entry in entries]
            _, _, *sums = repeat(h, t.turns, [t.a, t.b, *start], step)
            for entry, total in zip(entries, sums, strict=True):
                _store_sum(_row_of_d(t, entry), total)

        _over_tiles(h, tile)

    return run


def _by_blocks(kind: str, blocks: Blocks) -> Callable[[Handler], None]:
    """Row by row, one block of products after the other."""

    def run(h: Handler) -> None:
        def tile(t: Tile) -> None:
            def row(now: list[Value]) -> list[Value]:
                entry, a_row = now

                def block(now: list[Value]) -> list[Value]:
                    a, b, total = now
                    terms = []
                    for _ in range(blocks.length):
                        terms.append(_term(kind, blocks, a, b))
                        a, b = a.at(t.k_step), b.at(t.k_step)
                    return [a, b, blocks.add(terms, total)]

                c = _load_sum(_row_of_c(t, entry), "float")
                if blocks.flushes:
                    c = flush(c, signed=False)
                *_, total = repeat(h, t.turns, [a_row, t.b, c], block)
                _store_sum(_row_of_d(t, entry), total)
                return [entry.at(8), a_row.at(_row_step(kind, 4))]

            void(repeat(h, h.constant("i64", TILE_ROWS[kind]), [t.rows, t.a], row))

        _over_tiles(h, tile)

    return run


def _term(kind: str, blocks: Blocks, a: Value, b: Value) -> Term:
    first, second = _factor(a, kind, "float"), vector(b, "float")
    if blocks.flushes:
        return Term(first, second)
    exponents = a.at(state.MATRIX_PLANE), b.at(state.MATRIX_PLANE)
    return Term(first, second, _factor(exponents[0], kind, "i32"), vector(exponents[1], "i32"))
