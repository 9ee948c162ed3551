"""Moves between lanes, and relative register addressing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.emit import LANES, ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.emit_memory import read_pair
from fly_run.emulator.semantics.operation import Operation
from fly_run.emulator.targets import CDNA, RDNA

Body = Callable[[Handler], None]


def operations() -> Iterator[Operation]:
    for name, body in CUSTOM.items():
        yield Operation(name, "custom", body=body)
    for name, body in PERMUTATIONS.items():
        yield Operation(f"{name}@wave", "custom", body=body(LANES), targets=CDNA)
        yield Operation(f"{name}@half", "custom", body=body(LANES // 2), targets=RDNA)


def element(row: Value, lane: Value) -> Value:
    """A pointer to one lane of a row."""
    return row.at(lane << 2)


def _scalar_lane(h: Handler, number: int) -> Value:
    return (h.operand(number).load("i32") & (LANES - 1)).zext("i64")


def _read_lane(h: Handler) -> None:
    h.operand(0).store(element(h.operand(1), _scalar_lane(h, 2)).load("i32"))


def _write_lane(h: Handler) -> None:
    value = h.operand(1).load("i32")
    element(h.operand(0), _scalar_lane(h, 2)).store(value)


def _read_first_lane(h: Handler) -> None:
    """Lane 0 where no lane is active."""
    mask = h.exec_mask()
    first = h.intrinsic("llvm.cttz", mask | (1 << 63), h.constant("i1", 0), result=mask)
    lane = mask.compare("eq", 0).select(0, first)
    h.operand(0).store(element(h.operand(1), lane).load("i32"))


def write_result(h: Handler, source: Value) -> None:
    """Copies a row to operand 0 under EXEC."""
    zero = h.constant("i64", 0)
    mask = h.exec_mask().cast("i1", LANES)
    store_row(h.operand(0), zero, load_row(source, zero, LANES), mask)


def _clear(h: Handler, row: Value) -> None:
    row.store(h.constant("i32", 0, LANES), align=64)


def scratch_row(h: Handler) -> Value:
    """A row that only a single handler uses."""
    return h.wave.at(state.TEMP + (state.TEMP_ROWS - 1) * ROW)


def _target_lane(h: Handler, lane: Value, group: int) -> Value:
    """The lane that `lane` names, among the `group` lanes that it belongs to."""
    address = element(h.operand(1), lane).load("i32") + h.immediate().trunc("i32")
    return (address.lshr(2) & (group - 1)).zext("i64") | (lane & -group)


def _backward_permute(group: int) -> Body:
    """ds_bpermute: each lane fetches from the lane that it names; 0 from an inactive one."""

    def run(h: Handler) -> None:
        mask, result = h.exec_mask(), scratch_row(h)

        def fetch(lane: Value) -> None:
            source = _target_lane(h, lane, group)
            active = (mask.lshr(source) & 1).compare("ne", 0)
            value = active.select(element(h.operand(2), source).load("i32"), 0)
            element(result, lane).store(value)

        h.for_lanes(mask, fetch)
        write_result(h, result)

    return run


def _forward_permute(group: int) -> Body:
    """ds_permute: each lane sends to the lane that it names; the highest sender wins, and a lane
    that nobody names gets 0."""

    def run(h: Handler) -> None:
        result = scratch_row(h)
        _clear(h, result)

        def send(lane: Value) -> None:
            value = element(h.operand(2), lane).load("i32")
            element(result, _target_lane(h, lane, group)).store(value)

        h.for_lanes(h.exec_mask(), send)
        write_result(h, result)

    return run


def _fetch_by_table(h: Handler, source: Value, result: Value, mask: Value) -> Value:
    """Fetches row `source` into row `result` by a row of lane numbers, operand 2, where -1 is no
    lane; 0 where there is none or it is not in `mask`. The result is the mask of lanes that
    fetched."""

    def fetch(carried: list[Value]) -> tuple[list[Value], Value]:
        lane, valid = carried
        from_lane = element(h.operand(2), lane).load("i32").sext("i64")
        safe = from_lane & (LANES - 1)
        good = from_lane.compare("sge", 0) & (mask.lshr(safe) & 1).compare("ne", 0)
        value = element(source, safe).load("i32")
        element(result, lane).store(good.select(value, 0))
        after = lane + 1
        return [after, valid | (good.zext("i64") << lane)], after.compare("ult", LANES)

    zero = h.constant("i64", 0)
    return h.loop([zero, zero], fetch)[1]


def _dpp(rows: int) -> Callable[[Handler], None]:
    """Data parallel primitive: puts the moved source, of one or two rows, into operand 0 (a
    temporary) and narrows EXEC to the lanes that the instruction writes. The immediate is the mask
    of row_mask and bank_mask. The extra word has bit 0, bound_ctrl: lanes without a source read 0;
    bit 1, fi: the source may be an inactive lane."""

    def run(h: Handler) -> None:
        old = h.exec_mask()
        h.wave.at(state.SAVED_EXEC).store(old)
        inactive = (h.extra() & 2).compare("ne", 0)
        sources = inactive.select(old.like(-1), old)
        valid = old
        for row in range(rows):
            places = h.operand(1).at(row * ROW), h.operand(0).at(row * ROW)
            valid = _fetch_by_table(h, *places, sources)
        bound = (h.extra() & 1).compare("ne", 0)
        writes = bound.select(valid.like(-1), valid)
        h.wave.at(state.EXEC).store(old & writes & h.immediate())

    return run


def _restore_exec(h: Handler) -> None:
    h.wave.at(state.EXEC).store(h.wave.at(state.SAVED_EXEC).load("i64"))


def _swizzle(h: Handler) -> None:
    """ds_swizzle: the pattern has been worked out into a row of lane numbers."""
    result = scratch_row(h)
    _fetch_by_table(h, h.operand(1), result, h.exec_mask())
    write_result(h, result)


def _swap_halves(size: int) -> Callable[[Handler], None]:
    """v_permlane16_swap, v_permlane32_swap: odd rows of `size` lanes of the first register
    change places with the even rows of the second, under EXEC."""

    def run(h: Handler) -> None:
        def swap(lane: Value) -> None:
            high = (lane & size).compare("ne", 0)

            def exchange() -> None:
                first = element(h.operand(0), lane)
                second = element(h.operand(1), lane ^ size)
                a, b = first.load("i32"), second.load("i32")
                first.store(b)
                second.store(a)

            h.when(high, exchange)

        h.for_lanes(h.exec_mask(), swap)

    return run


def _indexed_move(h: Handler) -> None:
    """v_mov_b32 under s_set_gpr_idx_on: M0 7:0 is added to the source's register number (extra
    bit 0), to the result's (bit 3), or to both."""
    index = (h.wave.at(state.M0).load("i32") & 0xFF).zext("i64") * ROW
    zero = h.constant("i64", 0)
    which = h.extra()
    places = []
    for number, bit in ((0, 8), (1, 1)):
        offset = h.op.at(state.OP_OPERANDS + 4 * number).load("i32").zext("i64")
        moved = (which & bit).compare("ne", 0).select(offset + index, offset)
        limit = h.wave.at(state.VGPR_LIMIT).load("i64")
        relative = (which & bit).compare("ne", 0) & moved.compare("uge", limit)
        h.when(relative, lambda: h.fault("register index"))
        places.append(h.wave.at(moved))
    mask = h.exec_mask().cast("i1", LANES)
    store_row(places[0], zero, load_row(places[1], zero, LANES), mask)


def _set_index_mode(h: Handler) -> None:
    """s_set_gpr_idx_on, s_set_gpr_idx_idx: M0 7:0 is the index; the mode is known to the
    encoder, and is kept in M0 15:12 as the hardware does."""
    m0 = h.wave.at(state.M0)
    index = h.operand(0).load("i32") & 0xFF
    mode = h.extra()
    m0.store((m0.load("i32") & ~0xF0FF) | index | (mode << 12))


# On gfx9 among all 64 lanes; since gfx10 among 32, in waves of either size.
PERMUTATIONS: dict[str, Callable[[int], Body]] = {
    "ds_bpermute_b32": _backward_permute,
    "ds_permute_b32": _forward_permute,
}
CUSTOM: dict[str, Callable[[Handler], None]] = {
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_readfirstlane_b32": _read_first_lane,
    "ds_swizzle_b32": _swizzle,
    "v_permlane16_swap_b32": _swap_halves(16),
    "v_permlane32_swap_b32": _swap_halves(32),
    "s_set_gpr_idx_on": _set_index_mode,
    "fly_dpp": _dpp(1),
    "fly_dpp_64": _dpp(2),
    "fly_restore_exec": _restore_exec,
    "fly_indexed_move": _indexed_move,
    "fly_read_pair": read_pair,
}
