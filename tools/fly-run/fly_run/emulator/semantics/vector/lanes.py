"""Lane moves and relative register addressing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import LANES, ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.memory.emit import starts
from fly_run.emulator.semantics.memory.pairs import read_pair, read_pairs

Body = Callable[[Handler], None]


def operations() -> Iterator[Operation]:
    for name, body in CUSTOM.items():
        yield Operation(name, "custom", body=body, short=body in (read_pair, read_pairs))


def element(row: Value, lane: Value) -> Value:
    """Returns a pointer to one lane of a row."""
    return row.at(lane << 2)


def _scalar_lane(h: Handler, number: int) -> Value:
    return (h.operand(number).load("i32") & (LANES - 1)).zext("i64")


def _read_lane(h: Handler) -> None:
    h.operand(0).store(element(h.operand(1), _scalar_lane(h, 2)).load("i32"))


def _write_lane(h: Handler) -> None:
    value = h.operand(1).load("i32")
    element(h.operand(0), _scalar_lane(h, 2)).store(value)


def _read_first_lane(h: Handler) -> None:
    """Reads lane 0 if no lane is active: cttz of 0 is 64."""
    mask = h.exec_mask()
    lane = h.intrinsic("llvm.cttz", mask, h.constant("i1", 0), result=mask) & 63
    h.operand(0).store(element(h.operand(1), lane).load("i32"))


def write_result(h: Handler, source: Value) -> None:
    """Copies a row to operand 0 under EXEC."""
    zero = h.constant("i64", 0)
    mask = h.exec_mask().cast("i1", LANES)
    store_row(h.operand(0), zero, load_row(source, zero, LANES), mask)


def _clear(h: Handler, row: Value) -> None:
    row.store(h.constant("i32", 0, LANES), align=64)


def scratch_row(h: Handler) -> Value:
    """Returns a row for use within a single handler."""
    return h.wave.at(state.TEMP + (state.TEMP_ROWS - 1) * ROW)


def _target_lane(h: Handler, lane: Value) -> Value:
    """Returns the lane that `lane` selects, within its own group of lanes, whose size less 1 is the
    extra word."""
    address = element(h.operand(1), lane).load("i32") + h.immediate().trunc("i32")
    inside = h.extra()
    return (address.lshr(2) & inside).zext("i64") | (lane & ~inside.zext("i64"))


def _forward_permute(h: Handler) -> None:
    """ds_permute: each lane writes to the lane that it selects; the highest writer wins, and a lane
    that is not written gets 0."""
    result = scratch_row(h)
    _clear(h, result)

    def send(lane: Value) -> None:
        value = element(h.operand(2), lane).load("i32")
        element(result, _target_lane(h, lane)).store(value)

    h.for_lanes(h.exec_mask(), send)
    write_result(h, result)


def _restore_exec(h: Handler) -> None:
    h.wave.at(state.EXEC).store(h.wave.at(state.SAVED_EXEC).load("i64"))


def _swap_halves(size: int) -> Callable[[Handler], None]:
    """v_permlane16_swap, v_permlane32_swap: swaps odd rows of `size` lanes of the first register
    with the even rows of the second, under EXEC. The extra word has bit 0, bound_ctrl: it is about
    inactive lanes, where what it does is not known."""

    def run(h: Handler) -> None:
        bound = (h.extra() & 1).compare("ne", 0)
        partly = h.exec_mask().compare("ne", -1)
        h.when(bound & partly, lambda: h.fault("inactive lanes"))

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
    """v_mov_b32 under s_set_gpr_idx_on: M0 7:0 is added to the source's register number (extra bit
    0), to the result's (bit 3), or to both."""
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
    """s_set_gpr_idx_on, s_set_gpr_idx_idx: M0 7:0 is the index; the encoder knows the mode, which
    is stored in M0 15:12 as in hardware."""
    m0 = h.wave.at(state.M0)
    index = h.operand(0).load("i32") & 0xFF
    mode = h.extra()
    m0.store((m0.load("i32") & ~0xF0FF) | index | (mode << 12))


def _set_index_mode_only(h: Handler) -> None:
    """s_set_gpr_idx_mode: stores the mode in M0 15:12 as in hardware."""
    m0 = h.wave.at(state.M0)
    m0.store((m0.load("i32") & ~0xF000) | (h.extra() << 12))


def _set_index(h: Handler) -> None:
    """s_set_gpr_idx_idx: M0 7:0."""
    m0 = h.wave.at(state.M0)
    m0.store((m0.load("i32") & ~0xFF) | (h.operand(0).load("i32") & 0xFF))


def _move_relative(relative: int, kind: str) -> Callable[[Handler], None]:
    """s_movrels, s_movreld: M0 is added to the register number of the source (operand 1) or of the
    result (operand 0). The extra word is the offset of the last place."""

    def run(h: Handler) -> None:
        offset = h.op.at(state.OP_OPERANDS + 4 * relative).load("i32").zext("i64")
        moved = offset + (h.wave.at(state.M0).load("i32").zext("i64") << 2)
        beyond = moved.compare("ugt", h.extra().zext("i64"))
        h.when(beyond, lambda: h.fault("register index"))
        places = [h.operand(0), h.operand(1)]
        places[relative] = h.wave.at(moved)
        places[0].store(places[1].load(kind))

    return run


def _transpose(width: int, count: int) -> Callable[[Handler], None]:
    """ds_read_tr: the data read by 16 lanes are a matrix with rows of 16 elements of `width` bits;
    a lane gets `count` elements of its own column, one from each row. Operand 1 has the rows that
    were read, operand 0 is the result."""

    def run(h: Handler) -> None:
        per_row = 16 // count  # lanes per row of the matrix

        def fetch(lane: Value) -> None:
            block, column = lane & 48, lane & 15
            holder = column.lshr(count.bit_length() - 1)
            start = (column & (count - 1)) * width
            dword, inside = start.lshr(5), (start & 31).trunc("i32")
            result: list[Value | None] = [None] * (width * count // 32)
            for row in range(count):
                source = element(h.operand(1).at(dword * ROW), block + row * per_row + holder)
                value = source.load("i32").lshr(inside)
                if 32 % width:
                    # A field may extend into the next register. The last one never does, but it can
                    # be loaded, because rows follow it.
                    after = source.at(ROW).load("i32")
                    rest = (inside.like(32) - inside) & 31
                    more = inside.compare("ugt", 32 - width).select(after << rest, 0)
                    value = value | more
                value = value & ((1 << width) - 1)
                at, shift = divmod(row * width, 32)
                for place, part in ((at, value << shift), (at + 1, value.lshr(32 - shift or 31))):
                    if place == at or shift + width > 32:
                        old = result[place]
                        result[place] = part if old is None else old | part
            for number, word in enumerate(result):
                assert word is not None
                element(h.operand(0).at(number * ROW), lane).store(word)

        h.for_lanes(h.exec_mask(), fetch)

    return run


def _append(subtract: bool) -> Callable[[Handler], None]:
    """ds_append, ds_consume: adds or subtracts the number of active lanes to or from a counter in
    LDS, at M0 plus the offset; each active lane gets the old value. Like other atomics they require
    alignment, and do nothing without active lanes."""

    def run(h: Handler) -> None:
        mask = h.exec_mask()
        address = h.wave.at(state.M0).load("i32") + h.immediate().trunc("i32")

        def refuse(kind: str) -> None:
            h.wave.at(state.FAULT_LANE).store(h.constant("i32", 0))
            h.wave.at(state.FAULT_SIZE).store(h.constant("i32", 4))
            h.wave.at(state.FAULT_ADDRESS).store(address.zext("i64"))
            h.fault(kind)

        def change() -> None:
            size = h.wave.at(state.LDS_SIZE).load("i64")
            inside = address.zext("i64").compare("ult", starts(h, size, 4))
            h.when(~inside, lambda: refuse("lds"))
            h.when((address & 3).compare("ne", 0), lambda: refuse("misaligned"))
            place = h.wave.at(state.LDS_BASE).load("ptr").at(address)
            old = place.load("i32", align=1)
            count = h.intrinsic("llvm.ctpop", mask).trunc("i32")
            place.store(old - count if subtract else old + count, align=1)
            zero = h.constant("i64", 0)
            store_row(h.operand(0), zero, old.splat(LANES), mask.cast("i1", LANES))

        h.when(mask.compare("ne", 0), change)

    return run


def _lane_address(h: Handler) -> None:
    """Computes implicit addresses: M0 & immediate + lane · extra."""
    base = h.wave.at(state.M0).load("i32") & h.immediate().trunc("i32")
    lanes = h.vector("i32", range(LANES))
    address = base.splat(LANES) + lanes * h.extra().splat(LANES)
    store_row(h.operand(0), h.constant("i64", 0), address, None)


CUSTOM: dict[str, Callable[[Handler], None]] = {
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_readfirstlane_b32": _read_first_lane,
    "ds_permute_b32": _forward_permute,
    "v_permlane16_swap_b32": _swap_halves(16),
    "v_permlane32_swap_b32": _swap_halves(32),
    "s_set_gpr_idx_on": _set_index_mode,
    "fly_restore_exec": _restore_exec,
    "fly_indexed_move": _indexed_move,
    "fly_read_pair": read_pair,
    "fly_read_pairs": read_pairs,
    "s_set_gpr_idx_mode": _set_index_mode_only,
    "s_set_gpr_idx_idx": _set_index,
    "s_movrels_b32": _move_relative(1, "i32"),
    "s_movrels_b64": _move_relative(1, "i64"),
    "s_movreld_b32": _move_relative(0, "i32"),
    "s_movreld_b64": _move_relative(0, "i64"),
    "fly_transpose_b16": _transpose(16, 4),
    "fly_transpose_b8": _transpose(8, 8),
    "fly_transpose_b4": _transpose(4, 16),
    "fly_transpose_b6": _transpose(6, 16),
    "fly_lane_address": _lane_address,
    "ds_append": _append(False),
    "ds_consume": _append(True),
}
