"""Propagates undefined values in steps that move whole registers: lane moves, indexing, selects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.semantics.vector.picking import BOUND, INACTIVE
from fly_run.emulator.strict.accesses import Values
from fly_run.emulator.strict.dataflow import Effect
from fly_run.emulator.strict.undefined.definedness import ALL_32, U64, WIDTHS, ones
from fly_run.emulator.strict.undefined.shadow import Shadow

RELATIVE_READ = "fly_relative_read"

_Move = Callable[[Shadow, Effect, Values, np.ndarray], None]


def _lane_number(effect: Effect, values: Values, number: int) -> int:
    found = values.lanes(effect.reads[number])
    return int(found[0]) % state.LANES if found is not None else 0


def _read_lane(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    row = shadow.read(effect.reads[0])
    first = np.flatnonzero(active)
    lane = int(first[0]) if len(first) else 0
    if effect.operation.mnemonic == "v_readlane_b32":
        lane = _lane_number(effect, values, 1)
    origin = int(shadow.origins[effect.reads[0].offset // 4 + lane])
    shadow.write(effect.writes[0], row[lane : lane + 1], active, origin)


def _write_lane(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    only = np.zeros(state.LANES, bool)
    only[_lane_number(effect, values, 2)] = True
    bits = shadow.read(effect.reads[1])
    shadow.write(effect.writes[0], bits, only, shadow.origin((effect.reads[1],)))


def _by_table(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """Moves lanes by a row of constants; numbers are ignored where no source lane is undefined."""
    source, table = effect.reads[0], effect.reads[1]
    swizzle = effect.operation.mnemonic.startswith("ds_")
    bits = shadow.read(source)
    chosen = np.zeros(state.LANES, U64)
    if bits.any():
        words = [values.word(table.offset + 4 * lane) or 0 for lane in range(state.LANES)]
        numbers = np.array(words, np.uint32).view(np.int32)
        # With fi a DPP move reads lanes that are off like others.
        inactive = not swizzle and bool(effect.step.extra & INACTIVE)
        good = (numbers >= 0) & (active[numbers % state.LANES] | inactive)
        chosen = np.where(good, bits[numbers % state.LANES], U64(0))
    # Lanes that a DPP move does not write are in a temporary, and unused.
    everywhere = np.ones(state.LANES, bool)
    lanes = active if swizzle else everywhere
    origins = shadow.origins_of(source)
    if bits.any():
        origins = origins[numbers % state.LANES]
    shadow.write(effect.writes[0], chosen, lanes, origins)


def _permute(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """ds_permute, ds_bpermute: lane numbers are in registers."""
    where, source = (shadow.read(place) for place in effect.reads)
    addresses = values.lanes(effect.reads[0])
    bits = np.where(where != 0, U64(ALL_32), U64(0))
    if source.any() and addresses is not None:
        lanes, inside = np.arange(state.LANES), effect.step.extra
        number = addresses.astype(np.int64) + effect.step.immediate >> 2
        number = number & inside | lanes & ~inside
        if effect.operation.mnemonic.startswith("ds_bpermute"):
            read = active[number] | (effect.operation.mnemonic == "ds_bpermute_fi_b32")
            bits = bits | np.where(read, source[number], U64(0))
        else:
            sent = np.zeros(state.LANES, U64)
            for lane in np.flatnonzero(active):
                sent[number[lane]] = source[lane]
            bits = bits | sent
    shadow.write(effect.writes[0], bits, active, shadow.origin(effect.reads))


def _rows(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_permlane16, v_permlanex16: a lane of the same row, or of the other row of a pair."""
    old, source, *selects = (shadow.read(place) for place in effect.reads)
    _, row, *chosen = effect.reads
    lanes = np.arange(state.LANES)
    if len(chosen) == 1:
        number = values.lanes(chosen[0])
    else:
        low, high = (values.word(place.offset) or 0 for place in chosen)
        number = np.uint64(high << 32 | low) >> (4 * (lanes & 15)).astype(U64)
    undefined = np.any([bits != 0 for bits in np.broadcast_arrays(*selects)], 0)
    bits = np.where(undefined, U64(ALL_32), U64(0))
    if number is not None:
        other = 16 if effect.operation.mnemonic.startswith("v_permlanex") else 0
        place = ((lanes & ~15) ^ other) | (number & U64(15)).astype(np.int64)
        there = active[place] | bool(effect.step.extra & INACTIVE)
        bits = bits | np.where(there, source[place], U64(0))
        if not effect.step.extra & BOUND:
            bits = np.where(there | undefined, bits, old)
    shadow.write(effect.writes[0], bits, active, shadow.origin((row, *chosen)))


def _swap_halves(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_permlane64: the lane of the other half, active or not."""
    (row,) = effect.reads
    swapped = np.arange(state.LANES) ^ state.LANES // 2
    origins = shadow.origins_of(row)[swapped]
    shadow.write(effect.writes[0], shadow.read(row)[swapped], active, origins)


def _in_groups(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_permlane_bcast, _up, _down, _xor: a lane of the same group."""
    source, *scalars = (shadow.read(place) for place in effect.reads)
    row, *chosen = effect.reads
    selector, given = ((values.word(place.offset) or 0) & 63 for place in chosen)
    size = min(max(given, 1), 32)
    lanes = np.arange(state.LANES)
    first = lanes & -size
    kind = effect.operation.mnemonic.split("_")[2]
    number = {
        "bcast": first + (selector & (size - 1)),
        "up": lanes - selector,
        "down": lanes + selector,
        "xor": lanes ^ selector,
    }[kind]
    inside = (number >= first) & (number < first + size)
    bits = source[np.where(inside, number, lanes)]
    if any(bits_of.any() for bits_of in scalars):
        bits = np.full(state.LANES, U64(ALL_32))
    shadow.write(effect.writes[0], bits, active, shadow.origin((row, *chosen)))


def _from_lanes(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """Each lane reads a word at an offset in the row, which may be inside another lane's."""
    source = shadow.read(effect.reads[0])
    place = effect.step.operands[2]
    words = [values.word(place + 4 * lane) or 0 for lane in range(state.LANES)]
    number = np.array(words, np.int64) // 4 % state.LANES
    bits = np.where(source[number] != 0, U64(ALL_32), U64(0))
    every = np.ones(state.LANES, bool)
    shadow.write(effect.writes[0], bits, every, shadow.origin(effect.reads[:1]))


def _relative(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """A move with relative register numbers, whose places are resolved."""
    source, index = effect.reads
    lanes = np.ones(state.LANES, bool) if effect.operation.mnemonic == RELATIVE_READ else active
    bits, origins = shadow.read(source), shadow.origins_of(source)
    if shadow.read(index).any():
        bits, origins = np.array([ones(32 * source.count)], U64), shadow.origin((index,))
    shadow.write(effect.writes[0], bits, lanes, origins)


def _swap(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_permlane16_swap, v_permlane32_swap."""
    size = 16 if "16" in effect.operation.mnemonic else 32
    first, second = (shadow.bits[shadow.row(place.offset)] for place in effect.writes)
    lanes = np.flatnonzero(active & (np.arange(state.LANES) & size != 0))
    first[lanes], second[lanes ^ size] = second[lanes ^ size], first[lanes].copy()


def _nothing(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    for place in effect.writes:
        shadow.write(place, np.zeros(1, U64), active, 0)


def _cselect(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """s_cselect, s_cmov: SCC selects the source."""
    *sources, scc = effect.reads
    place = effect.writes[0]
    bits = [shadow.read(source) for source in sources]
    if shadow.read(scc).any():
        undefined = np.array([ones(WIDTHS[place.element])], U64)
        shadow.write(place, undefined, active, shadow.origin((scc,)))
        return
    chosen = 0 if values.scc else 1
    shadow.write(place, bits[chosen], active, shadow.origin((sources[chosen],)))


_MOVES: dict[str, _Move] = {
    "v_readlane_b32": _read_lane,
    "v_readfirstlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "ds_swizzle_b32": _by_table,
    "fly_dpp": _by_table,
    "fly_dpp_64": _by_table,
    "ds_bpermute_b32": _permute,
    "ds_bpermute_fi_b32": _permute,
    "ds_permute_b32": _permute,
    "v_permlane16_swap_b32": _swap,
    "v_permlane32_swap_b32": _swap,
    "v_permlane64_b32": _swap_halves,
    **{f"v_permlane{kind}_b32": _rows for kind in ("16", "x16", "16_var", "x16_var")},
    **{f"v_permlane_{kind}_b32": _in_groups for kind in ("bcast", "up", "down", "xor")},
    "fly_matrix_lanes": _from_lanes,
    **{f"s_movrel{end}_b{width}": _relative for end in "sd" for width in (32, 64)},
    **dict.fromkeys(("s_movrelsd_2_b32", RELATIVE_READ, "fly_relative_write"), _relative),
    "fly_indexed_move": _relative,
    **dict.fromkeys(("s_cselect_b32", "s_cselect_b64"), _cselect),
    **dict.fromkeys(("s_cmov_b32", "s_cmov_b64", "s_cmovk_i32"), _cselect),
    **dict.fromkeys(
        """
fly_use_control fly_restore_exec fly_read_pair fly_mode_single fly_mode_double
fly_set_mode fly_set_mode_bits fly_get_mode fly_block_begins fly_block_register
""".split(),  # noqa: SIM905
        _nothing,
    ),
}


def move_of(mnemonic: str) -> _Move | None:
    """Returns the shadow update of a step in this module; None for other steps."""
    return _MOVES.get(mnemonic)
