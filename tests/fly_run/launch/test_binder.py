"""A binder gives what `bind` gives, at the first call with some shapes and at later ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fly_common.errors import FlyError
from fly_run.launch import binder as module
from fly_run.launch.binder import Binder
from fly_run.launch.binding import Bound, bind

from .test_binding import CODE, PLAN, arrays

F4 = np.float32
WIDE = np.zeros((9, 300), F4)

# Calls of `scale(X: f32[m,n], Y: f32[m,n] contiguous, a: f32, lds: i32 = 16)`.
CALLS = {
    "plain": {},
    "other sizes": arrays(5, 7),
    "one element": arrays(1, 1),
    "no elements": arrays(0, 7),
    "no columns": arrays(3, 0),
    "rows apart": {"X": WIDE[:3, 100:200]},
    "rows backwards": {"X": WIDE[::-2, 100:200][:3]},
    "a column": {"X": WIDE[:3, 7:8], "Y": np.zeros((3, 1), F4)},
    "a number more": {"lds": 32},
    "another number": {"lds": 48},
    "true for a number": {"lds": True},
    "an integer for a float": {"a": 3},
    "an infinity": {"a": float("inf")},
    "NumPy's number": {"a": np.float32(0.1), "lds": np.int64(64)},
    "equal types": {"X": np.ones((3, 100), np.dtype(F4).newbyteorder("="))},
    "read-only, read": {"X": np.frombuffer(bytes(1200), F4).reshape(3, 100)},
    # what is refused
    "read-only, written": {"Y": np.frombuffer(bytes(1200), F4).reshape(3, 100)},
    "another type": {"X": np.ones((3, 100))},
    "another order": {"X": np.zeros((3, 100), ">f4")},
    "transposed": {"Y": np.zeros((100, 3), F4).T},
    "columns apart": {"X": np.zeros((3, 200), F4)[:, ::2]},
    "sizes that differ": {"Y": np.zeros((3, 99), F4)},
    "rank": {"X": np.zeros(100, F4)},
    "misaligned": {"X": np.frombuffer(bytes(1201), "u1")[1:].view(F4).reshape(3, 100)},
    "no array": {"X": [1.0]},
    "a number for an array": {"X": np.float32(1)},
    "an array for a number": {"a": np.zeros(3, F4)},
    "a name too many": {"Z": 1},
    "too large a float": {"a": 1e39},
    "a fraction": {"lds": 1.5},
    "too large a number": {"lds": 1 << 40},
    "too much LDS": {"lds": 1 << 17},
    "below zero": {"lds": -1},
}


def outcome(call, values) -> tuple:
    """What a call gives, but for the arrays' own memory; or how it is refused."""
    try:
        bound: Bound = call(values)
    except FlyError as error:
        return type(error), error.message, error.hint
    assert set(bound.arrays) == {"X", "Y"}
    assert all(bound.arrays[name] is values[name] for name in bound.arrays)
    return bound.buffers, bound.launches


@pytest.mark.parametrize("name", CALLS)
def test_the_same_as_bind(name):
    binder = Binder(PLAN, CODE)
    values = arrays() | CALLS[name]
    wanted = outcome(lambda given: bind(PLAN, CODE, given), values)
    for _ in range(3):
        assert outcome(binder.bind, values) == wanted


def test_calls_in_any_order():
    """What is remembered of one call is not taken for another's."""
    binder = Binder(PLAN, CODE)
    for _ in range(3):
        for changes in CALLS.values():
            values = arrays() | changes
            wanted = outcome(lambda given: bind(PLAN, CODE, given), values)
            assert outcome(binder.bind, values) == wanted


def test_names_that_are_missing():
    binder = Binder(PLAN, CODE)
    for missing in ("X", "Y", "a"):
        values = {name: value for name, value in arrays().items() if name != missing}
        assert outcome(binder.bind, values) == outcome(lambda v: bind(PLAN, CODE, v), values)
        values["Z"] = values["X" if missing == "Y" else "Y"]
        assert outcome(binder.bind, values) == outcome(lambda v: bind(PLAN, CODE, v), values)


def test_calls_alike_are_bound_once(monkeypatch):
    made = []
    monkeypatch.setattr(module, "bind", lambda *given: made.append(1) or bind(*given))
    binder = Binder(PLAN, CODE)
    for number in range(5):
        bound = binder.bind(arrays() | {"a": number / 2})
        assert (
            bound.launches[0].kernarg == bind(PLAN, CODE, bound.arrays | {"a": number / 2})[1][0][4]
        )
    assert len(made) == 1
    binder.bind(arrays() | {"lds": 32})
    binder.bind(arrays(4) | {"lds": 32})
    binder.bind(arrays(4) | {"lds": 32})
    assert len(made) == 3


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 4)
    binder = Binder(PLAN, CODE)
    for rows in range(1, 20):
        binder.bind(arrays(rows))
    assert len(binder._known) == 4


def test_a_plan_of_several_launches_with_scalars():
    (launch,) = PLAN.launches
    plan = replace(PLAN, launches=(launch, replace(launch, block=(3, 3, 3)), launch))
    binder = Binder(plan, CODE)
    for a in (1.5, 2.5, 1.5, 7):
        values = arrays() | {"a": a}
        assert outcome(binder.bind, values) == outcome(lambda v: bind(plan, CODE, v), values)
