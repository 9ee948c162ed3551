"""A bitonic network that sorts the tile of a group of lanes.

Batcher's bitonic sorter (K. E. Batcher, "Sorting networks and their applications", 1968): after the
steps up to `span`, runs of `span` items are sorted, up and down in turn. The bits of an item's
place are those of its lane and of its number in the lane. Items of two lanes are compared after a
shuffle, those of one lane without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.control.branches import value_of
from fly_trace.values.dtypes import I32
from fly_trace.values.scalars import Scalar

from fly.flydsl.expr.gpu import lane_id, shuffle_xor

# Whether the first of two items comes before the second. An item is its key and, where it is
# needed, where it was.
Before = Callable[[list[Any], list[Any]], Any]


def ordering(
    less: Callable[[Any, Any], Any], is_stable: bool, valid: Any, is_guarded: bool
) -> Before:
    """The order of items: by `less`, a strict weak order of keys; then, if stable, by where they
    were. Items from `valid` on come last, and if guarded, `less` gets none of them."""

    def by_key(a: list[Any], b: list[Any]) -> Any:
        found = less(a[0], b[0])
        if not is_stable:
            return found
        return found | ((a[1] < b[1]) & ~less(b[0], a[0]))

    def before(a: list[Any], b: list[Any]) -> Any:
        if valid is None:
            return by_key(a, b)
        is_first, is_second = a[1] < valid, b[1] < valid
        both, only = is_first & is_second, is_first & ~is_second
        if not is_guarded:
            return only | (both & by_key(a, b))
        return value_of(both, lambda: by_key(a, b), lambda: only, "before", "an order of items")

    return before


def network(items: list[list[Any]], before: Before, width: int, is_striped: bool) -> None:
    """Sorts the items of a group in place: a power of two of them in each lane."""
    slots, lanes = len(items).bit_length() - 1, width.bit_length() - 1
    low = lanes if is_striped else slots

    def place(bit: int) -> tuple[bool, int]:
        """Whether a bit of the place is one of the lane, and its mask in the lane or the slot."""
        of_lane = (bit < low) == is_striped
        return of_lane, 1 << (bit if bit < low else bit - low)

    def is_clear(bit: int, slot: int) -> Any:
        """Whether a bit of the place is clear; the one behind the last is."""
        if bit == slots + lanes:
            return True
        of_lane, mask = place(bit)
        return (lane_id() & mask) == 0 if of_lane else not slot & mask

    for span in range(1, slots + lanes + 1):
        for bit in reversed(range(span)):
            of_lane, mask = place(bit)
            for slot, mine in enumerate(items):
                upward = is_clear(span, slot)
                if of_lane:
                    other = [shuffle_xor(part, mask, width) for part in mine]
                    is_low = (lane_id() & mask) == 0
                    # A lane that keeps the lesser one takes the other one if that comes first.
                    takes_less = is_low if upward is True else _same(is_low, upward)
                    first, second = _chosen(takes_less, other, mine)
                    items[slot] = _chosen(before(first, second), other, mine)[0]
                elif not slot & mask:
                    other = items[slot | mask]
                    first, second = _chosen(upward, other, mine)
                    items[slot], items[slot | mask] = _chosen(before(first, second), other, mine)


def _same(a: Any, b: Any) -> Any:
    if isinstance(b, bool):
        return a if b else ~a
    return ~(a ^ b)


def _chosen(test: Any, one: list[Any], other: list[Any]) -> tuple[list[Any], list[Any]]:
    """Two items, exchanged unless the test holds."""
    if isinstance(test, bool):
        return (one, other) if test else (other, one)
    pairs = [(test.select(a, b), test.select(b, a)) for a, b in zip(one, other, strict=True)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def origins(places: list[Any], padded: int) -> list[Any]:
    """Where items are before sorting, and for what pads them a place behind all."""
    behind: list[Scalar] = [I32((1 << 31) - 1)] * (padded - len(places))
    return [*(I32(place) for place in places), *behind]
