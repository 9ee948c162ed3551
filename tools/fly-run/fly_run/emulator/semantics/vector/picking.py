"""Reads of other lanes, sixteen lanes at a time: DPP, ds_swizzle, ds_bpermute, v_permlane16 and 64.

LLVM makes one permutation of sixteen lanes of `_permute`, for processors that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.base.operation import SINCE_GFX11, Operation

Body = Callable[[Handler], None]
CHUNK = 16
BOUND, INACTIVE = 1, 2  # bits of the extra word: bound_ctrl, fi


def operations() -> Iterator[Operation]:
    for name, body in CUSTOM.items():
        yield Operation(name, "custom", body=body, short=True)
    body, traits = _backward_permute(True), frozenset({"gfx12"})
    yield Operation("ds_bpermute_fi_b32", "custom", body=body, short=True, traits=traits)
    # In waves of 32 lanes it does nothing.
    yield Operation("v_permlane64_b32", "custom", body=_swap_halves, traits=SINCE_GFX11)


def _permute(values: Value, lanes: Value) -> Value:
    """Returns for each of 16 lanes the value of the lane with the number `lanes`, below 16."""
    f, kind = values.function, values.type
    result = "poison"
    for lane in range(CHUNK):
        number = f.value("i32", 0, f"extractelement {kind} {lanes.name}, i32 {lane}")
        one = f.value("i32", 0, f"extractelement {kind} {values.name}, i32 {number.name}")
        text = f"insertelement {kind} {result}, i32 {one.name}, i32 {lane}"
        made = f.value("i32", CHUNK, text)
        result = made.name
    return made


def _chunks(h: Handler) -> Sequence[int]:
    """Returns the first lanes of a wave's chunks."""
    return range(0, h.lanes, CHUNK)


def _load(h: Handler, row: Value, first: int) -> Value:
    return load_row(row, h.constant("i64", first), CHUNK)


def _lane_numbers(h: Handler, first: int) -> Value:
    return h.vector("i32", range(first, first + CHUNK))


class _Row:
    """A row whose lanes are read: all of them are loaded at once, before any result is stored.
    `mask` (i64) has those that may be."""

    def __init__(self, h: Handler, row: Value, mask: Value):
        self._parts = [_load(h, row, first) for first in _chunks(h)]
        self._halves = [part.trunc("i32").splat(CHUNK) for part in (mask, mask.lshr(32))]

    def at(self, lanes: Value) -> Value:
        """Returns the values of lanes, which must exist."""
        places = lanes & (CHUNK - 1)
        found = _permute(self._parts[0], places)
        for number, part in enumerate(self._parts[1:], start=1):
            here = lanes.lshr(4).compare("eq", number)
            found = here.select(_permute(part, places), found)
        return found

    def permits(self, lanes: Value) -> Value:
        """Returns whether the mask has the lanes, an i1 each."""
        word = self._halves[0]
        if len(self._parts) * CHUNK > 32:
            word = lanes.compare("ult", 32).select(word, self._halves[1])
        return (word.lshr(lanes & 31) & 1).compare("ne", 0)


def _store(h: Handler, results: Sequence[Value]) -> None:
    """Writes the chunks to operand 0 under EXEC."""
    mask = h.exec_mask()
    for first, value in zip(_chunks(h), results, strict=True):
        active = mask.lshr(first).trunc(f"i{CHUNK}").cast("i1", CHUNK)
        store_row(h.operand(0), h.constant("i64", first), value, active)


def _by_table(h: Handler, row: _Row) -> tuple[list[Value], Value]:
    """Reads a row by a row of lane numbers, operand 2, where -1 is no lane; 0 if there is no lane
    or the mask does not have it. Returns the chunks and the mask of lanes that have read."""
    valid, results = h.constant("i64", 0), []
    for first in _chunks(h):
        # The row is among the constants, which are aligned to 8 bytes.
        lanes = h.operand(2).at(4 * first).load("i32", CHUNK, align=8)
        good = lanes.compare("sge", 0) & row.permits(lanes)
        results.append(good.select(row.at(lanes), 0))
        valid = valid | (good.cast(f"i{CHUNK}", 0).zext("i64") << first)
    return results, valid


def _dpp(rows: int) -> Body:
    """Data parallel primitive: puts the permuted source, of one or two rows, into operand 0 (a
    temporary) and narrows EXEC to the lanes that the instruction writes. The immediate is the mask
    of row_mask and bank_mask. The extra word has bit 0, bound_ctrl: lanes without a source read 0;
    and bit 1, fi: the source lane may be inactive."""

    def run(h: Handler) -> None:
        old = h.exec_mask()
        h.wave.at(state.SAVED_EXEC).store(old)
        inactive = (h.extra() & INACTIVE).compare("ne", 0)
        sources = inactive.select(old.like(-1), old)
        valid = old
        for number in range(rows):
            source = _Row(h, h.operand(1).at(number * ROW), sources)
            results, valid = _by_table(h, source)
            for first, value in zip(_chunks(h), results, strict=True):
                place = h.operand(0).at(number * ROW)
                store_row(place, h.constant("i64", first), value, None)
        bound = (h.extra() & BOUND).compare("ne", 0)
        writes = bound.select(valid.like(-1), valid)
        h.wave.at(state.EXEC).store(old & writes & h.immediate())

    return run


def _swizzle(h: Handler) -> None:
    """ds_swizzle: the encoder has expanded the pattern to a row of lane numbers."""
    _store(h, _by_table(h, _Row(h, h.operand(1), h.exec_mask()))[0])


def _backward_permute(inactive: bool) -> Body:
    """ds_bpermute: each lane reads the lane that it selects, within its own group of lanes, whose
    size less 1 is the extra word; 0 from an inactive one, unless `inactive` lanes are read like
    others (ds_bpermute_fi)."""

    def run(h: Handler) -> None:
        row = _Row(h, h.operand(2), h.exec_mask())
        inside = h.extra().splat(CHUNK)
        results = []
        for first in _chunks(h):
            address = _load(h, h.operand(1), first) + h.immediate().trunc("i32")
            lanes = (address.lshr(2) & inside) | (_lane_numbers(h, first) & ~inside)
            value = row.at(lanes)
            results.append(value if inactive else row.permits(lanes).select(value, 0))
        _store(h, results)

    return run


def _permute_rows(other: int, varies: bool) -> Body:
    """v_permlane16, v_permlanex16 (RDNA3 and RDNA4 ISA manuals). Operands: the result, the source,
    and the lanes to read: four bits for each lane of a row of 16 in two scalars, or (`varies`) the
    low four bits of each lane of a row. `other` is or'ed to the row's first lane: 16 selects the
    other row of the pair. If the source lane is inactive, a lane keeps its value, or reads 0 if
    bound_ctrl is set."""

    def run(h: Handler) -> None:
        row = _Row(h, h.operand(1), h.exec_mask())
        bound = (h.extra() & BOUND).compare("ne", 0)
        any_lane = (h.extra() & INACTIVE).compare("ne", 0)
        results = []
        for first in _chunks(h):
            if varies:
                places = _load(h, h.operand(2), first)
            else:
                low, high = (h.operand(n).load("i32").splat(CHUNK) for n in (2, 3))
                upper = h.vector("i1", (lane >= CHUNK // 2 for lane in range(CHUNK)))
                steps = h.vector("i32", (4 * (lane % 8) for lane in range(CHUNK)))
                places = upper.select(high, low).lshr(steps)
            lanes = (places & (CHUNK - 1)) | (first ^ other)
            valid = row.permits(lanes) | any_lane.splat(CHUNK)
            value = valid.select(row.at(lanes), 0)
            written = valid | bound.splat(CHUNK)
            results.append(written.select(value, _load(h, h.operand(0), first)))
        _store(h, results)

    return run


def _swap_halves(h: Handler) -> None:
    """v_permlane64: each lane reads the one of the other half, active or not (RDNA3 and RDNA4 ISA
    manuals)."""
    parts = [_load(h, h.operand(1), first) for first in _chunks(h)]
    middle = len(parts) // 2
    _store(h, [*parts[middle:], *parts[:middle]])


CUSTOM: dict[str, Body] = {
    "fly_dpp": _dpp(1),
    "fly_dpp_64": _dpp(2),
    "ds_bpermute_b32": _backward_permute(False),
    "ds_swizzle_b32": _swizzle,
    "v_permlane16_b32": _permute_rows(0, False),
    "v_permlane16_var_b32": _permute_rows(0, True),
    "v_permlanex16_b32": _permute_rows(CHUNK, False),
    "v_permlanex16_var_b32": _permute_rows(CHUNK, True),
}
