"""A binder gives what `bind` gives, at the first call with some shapes and at later ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fly_common.errors import FlyError
from fly_host import plan
from fly_run.launch import binder as module
from fly_run.launch.binder import Binder
from fly_run.launch.binding import Bound, bind

from .test_binding import CODE, KERNEL, PLAN, arrays

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


# Scalars behind other words of the same argument, 16 bytes from offset 8 on.
def word(letter: str, size: int = 8) -> plan.Word:
    if letter == "X":
        return plan.Word("pointer", "X")
    if letter == "i":
        return plan.Word("integer", expression=1, size=size)
    return plan.Word("scalar", letter)


MORE = (
    plan.Scalar("b", "f32"),
    plan.Scalar("c", "i32"),
    plan.Scalar("d", "u32"),
    plan.Scalar("w", "i64"),
    plan.Scalar("f", "bool"),
    plan.Scalar("t", "i16"),
)


@pytest.mark.parametrize(
    "words",
    [
        [word("i", 4), word("a"), word("b"), word("c")],
        [word("i", 8), word("a"), word("b")],
        [word("i", 4), word("i", 8), word("a")],
        [word("X"), word("a"), word("c")],
        [word("a"), word("b"), word("c"), word("d")],
        [word("w"), word("a"), word("d")],
        [word("t"), word("t"), word("a"), word("w")],
        [plan.Word("scalar", "lds"), word("b"), word("w")],
    ],
    ids=["4", "8", "4+8", "pointer", "scalars", "wide", "narrow", "counted"],
)
def test_scalars_behind_other_words_of_an_argument(words):
    (launch,) = PLAN.launches
    first, _, third, fourth = launch.arguments
    made = replace(
        PLAN,
        parameters=(*PLAN.parameters, *MORE),
        launches=(replace(launch, arguments=(first, tuple(words), third, fourth)), launch),
    )
    binder = Binder(made, CODE)
    given = arrays() | {"b": 0.5, "c": -1, "d": 7, "w": 1 << 40, "f": True, "t": -2}
    wanted = []
    for changes in ({}, {"a": 9.5}, {"b": 1.5, "c": 8}, {"d": 1, "w": -9}, {"t": 300}, {"lds": 32}):
        values = given | changes
        wanted.append(outcome(lambda given: bind(made, CODE, given), values))
        for _ in range(2):
            assert outcome(binder.bind, values) == wanted[-1]
    assert len({outcome[1][0].kernarg for outcome in wanted}) > 1


@pytest.mark.parametrize("value", [True, False, 1, 0, np.bool_(True), 2, 1.0, None, "x"])
def test_a_truth_value(value):
    """It is one byte, in a launch of its own beside one without scalars."""
    code = replace(CODE, kernels={"k": KERNEL, "none": replace(KERNEL, name="none", args=())})
    (launch,) = PLAN.launches
    first, second, _, fourth = launch.arguments
    flag = plan.Word("scalar", "f"), plan.Word("scalar", "t"), plan.Word("scalar", "f")
    made = replace(
        PLAN,
        parameters=(*PLAN.parameters, *MORE[-2:]),
        launches=(
            replace(launch, kernel="none", arguments=()),
            replace(launch, arguments=(first, second, flag, fourth)),
        ),
    )
    binder = Binder(made, code)
    for changes in ({"f": True}, {"f": value}, {"f": False}, {"f": value}):
        values = arrays() | {"t": 5} | changes
        wanted = outcome(lambda given: bind(made, code, given), values)
        assert outcome(binder.bind, values) == wanted


def test_truth_values_are_bound_once(monkeypatch):
    made = []
    monkeypatch.setattr(module, "bind", lambda *given: made.append(1) or bind(*given))
    (launch,) = PLAN.launches
    first, second, _, fourth = launch.arguments
    flag = (plan.Word("scalar", "t"), plan.Word("scalar", "f"), plan.Word("scalar", "f"))
    flagged = replace(
        PLAN,
        parameters=(*PLAN.parameters, *MORE[-2:]),
        launches=(replace(launch, arguments=(first, second, flag, fourth)),),
    )
    binder = Binder(flagged, CODE)
    for value in (True, False, True):
        binder.bind(arrays() | {"t": 5, "f": value})
    assert len(made) == 1


def test_what_is_only_read_need_not_be_writable(monkeypatch):
    made = []
    monkeypatch.setattr(module, "bind", lambda *given: made.append(1) or bind(*given))
    binder = Binder(PLAN, CODE)
    values = arrays() | CALLS["read-only, read"]
    for _ in range(3):
        binder.bind(values)
    assert len(made) == 1


def test_so_many_calls_are_remembered():
    binder = Binder(PLAN, CODE)
    for rows in range(1, 300):
        binder.bind(arrays(rows, 1))
    assert len(binder._known) == 256
