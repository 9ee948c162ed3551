"""What native code looks at before a call: globals, classes, dictionaries, defaults, variables."""

import os
import time
import types

import numpy as np
import pytest
from fly_host.native.unavailable import Unavailable
from fly_trace.session.load import load_file as load

from fly.call import known_calls
from fly.call.dispatch.dispatch_table import AT
from fly.call.dispatch.dispatcher import Dispatcher
from fly.dependencies.function_parts import MISSING
from fly.dependencies.hashing import DependencyHash

from .native_programs import new_calls, numbers, warm

CLASSES = """
import fly
import fly.expr as fx


class Base:
    EXTRA = 1


class Sizes(Base):
    BLOCK = 2


@fly.kernel
def sizes_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[0] + Sizes.BLOCK + Sizes.EXTRA


@fly.jit
def add_sizes(X: fx.Tensor, Y: fx.Tensor):
    sizes_kernel(X, Y).launch(grid=1, block=64)
"""


def test_a_global_that_changes(made, slow):
    x, y = warm(made)
    before = len(slow)
    made.FACTOR = 3
    made.scale(x, y)
    np.testing.assert_array_equal(y, 6 * x)  # the default of `twice` is what it was
    assert len(slow) == before + 1
    made.scale(x, y)
    made.scale(x, y)
    assert len(slow) == before + 2
    made.unrelated = 1  # the dictionary changes, and no name that matters
    made.scale(x, y)
    assert len(slow) == before + 2


def test_a_class_that_changes(tmp_path, slow):
    path = tmp_path / "classes.py"
    path.write_text(CLASSES)
    made = load(str(path))
    X, Y = numbers()

    def told() -> float:
        before = len(slow)
        made.add_sizes(X, Y)
        native.append(len(slow) == before)
        return float(Y[0])

    native: list[bool] = []
    assert [told() for _ in range(4)] == [3.0] * 4
    assert native == [False, False, True, True]
    changes = (
        (lambda: setattr(made.Sizes, "BLOCK", 5), 6.0),
        (lambda: setattr(made.Base, "EXTRA", 7), 12.0),
        (lambda: setattr(made.Sizes, "EXTRA", 2), 7.0),
        (lambda: delattr(made.Sizes, "EXTRA"), 12.0),
        (lambda: setattr(made.Sizes, "unused", 1), 12.0),
    )
    for change, wanted in changes:
        native.clear()
        change()
        assert [told() for _ in range(3)] == [wanted] * 3
        assert native[0] is False
        assert native[-1] is True


def test_a_mutable_value_goes_the_python_way(made, slow):
    X, Y = numbers()
    for _ in range(3):
        made.shifted(X, Y)
        assert Y[0] == 1
    assert made.shifted._calls.native.reasons == ["the function reaches mutable values"]
    made.SHIFT[0] = 4
    made.shifted(X, Y)
    assert Y[0] == 4
    assert len(slow) == 4


def test_a_dictionary_is_looked_at(made, slow):
    X, Y = numbers()

    def told(count: int) -> list[float]:
        results = []
        for _ in range(count):
            made.looked_up(X, Y)
            results.append(float(Y[0]))
        return results

    assert told(4) == [1.0] * 4
    assert len(slow) == 2, "native code takes the others"
    for change, wanted in (
        (lambda: made.TABLE.update({7: 3}), 3.0),
        (lambda: made.TABLE.update({8: 0}), 3.0),
        (lambda: made.TABLE.pop(8), 3.0),
    ):
        before = len(slow)
        change()
        assert told(1) == [wanted]
        assert len(slow) == before + 1
    assert told(3) == [3.0] * 3


def test_attributes_of_functions_are_looked_at(made, slow):
    """In CPython 3.13 the tag of their dictionary does not tell."""
    X, Y = numbers()
    for _ in range(4):
        made.scale(X, Y)
    assert len(slow) == 2
    made.twice.added = 1
    made.scale(X, Y)
    assert len(slow) == 3


def test_the_dispatcher_sees_each_change_of_a_dictionary():
    from fly.call.dispatch.dispatcher import Dispatcher, State

    class Holder:
        pass

    holder = Holder()
    holder.value = 1
    space, missing = vars(holder), object()
    state = State([(space, "value", 1), (space, "other", missing)], [space], [], [], missing)
    busy = np.zeros(1, np.uint64)

    def looked() -> bool:
        """Whether a dispatcher still answers: behind a change its deadline is over."""
        return dispatcher._table[AT["deadline"]] != 0

    for change in (
        lambda: setattr(holder, "value", 2),
        lambda: setattr(holder, "other", 2),
        lambda: setattr(holder, "third", 2),
        lambda: delattr(holder, "value"),
        lambda: space.update(value=3),
    ):
        vars(holder).clear()
        holder.value = 1
        dispatcher = Dispatcher(state, busy.ctypes.data)
        dispatcher.until(time.monotonic_ns() + 10**12)
        assert dispatcher.call() is NotImplemented
        assert dispatcher.call() is NotImplemented
        assert looked()
        change()
        assert dispatcher.call() is NotImplemented
        assert not looked()


def test_a_default_and_a_function_that_change(made, slow):
    x, y = warm(made)
    made.twice.__defaults__ = (5,)
    made.scale(x, y)
    np.testing.assert_array_equal(y, 10 * x)
    x, y = warm(made)

    def other(value):
        return value

    made.twice.__code__, made.twice.__defaults__ = other.__code__, None
    made.scale(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_the_environment(made, slow, monkeypatch):
    x, y = warm(made)
    before = len(slow)
    monkeypatch.setenv("UNRELATED", "1")
    made.scale(x, y)
    assert len(slow) == before
    monkeypatch.setenv("FLY_TARGET", "gfx90a")
    made.scale(x, y)
    assert len(slow) == before + 1
    assert {one.target for one in made.scale._kept.values()} == {"gfx942", "gfx90a"}


def test_what_is_looked_at_after_a_while(made, slow, monkeypatch):
    """Native code takes calls up to a deadline; then Python looks, and sets the next one."""
    deadlines: list[int] = []
    until = Dispatcher.until

    def recorded(self, nanoseconds):
        deadlines.append(nanoseconds)
        until(self, nanoseconds)

    monkeypatch.setattr(Dispatcher, "until", recorded)
    start = time.monotonic_ns()
    x, y = warm(made)
    before = len(slow)
    made.scale(x, y)
    assert len(slow) == before
    until(made.scale._calls.native.dispatcher, start)  # a deadline that has passed
    made.scale(x, y)
    assert len(slow) == before + 1
    made.scale(x, y)
    assert len(slow) == before + 1
    latest = time.monotonic_ns() + int(known_calls.LOOK_AFTER * 1e9)
    assert deadlines
    assert all(start < deadline <= latest for deadline in deadlines)


def test_constants_and_their_types(made, slow):
    x, y = numbers()
    for k in (1, 2.5, 2):
        for _ in range(3):
            made.add(x, k, y)
            np.testing.assert_array_equal(y, x + np.float32(k))
    count = len(slow)
    for k in (2, 1, 2.5):
        made.add(x, k, y)
        np.testing.assert_array_equal(y, x + np.float32(k))
    assert len(slow) == count
    made.add(x, 1.0, y)  # equal to 1, and of another type
    assert len(slow) == count + 1


def test_defaults_and_names(made, slow):
    x, y = warm(made)
    made.scale(x, y, 1.5)
    np.testing.assert_array_equal(y, 4 * x + 1.5)
    made.scale(X=x, Y=y)
    np.testing.assert_array_equal(y, 4 * x)
    made.scale(x, Y=y, a=2.0)
    np.testing.assert_array_equal(y, 4 * x + 2)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (DependencyHash("d", mutables=(({}, "x"),)), "mutable values"),
        (DependencyHash("d", caches=(len,)), "mutable values"),
        (DependencyHash("d", registrations=1), "an abstract class"),
        (
            DependencyHash("d", names=((types.MappingProxyType({"x": 1}), "x", 1),)),
            "a namespace that is no plain dictionary",
        ),
        (
            DependencyHash("d", names=tuple(({"x": 1}, "x", 1) for _ in range(2000))),
            "too many names",
        ),
    ],
)
def test_what_native_code_can_not_look_at(found, reason):
    with pytest.raises(Unavailable, match=rf"^the function reaches {reason}$"):
        new_calls(found)._state()


def test_what_native_code_looks_at(monkeypatch):
    def function(a: int, *, c=3):
        return a

    function.tag = "t"  # type: ignore[attr-defined]
    monkeypatch.setenv("FLY_ONE", "1")
    monkeypatch.delenv("FLY_TWO", raising=False)
    space, cell = {"x": 1}, types.CellType(5)
    parts = ()
    found = DependencyHash(
        "d", names=((space, "x", 1),), cells=((cell, 5),), functions=((function, parts),)
    )
    state = new_calls(found, ("FLY_ONE", "FLY_TWO"))._state()
    assert (list(state.cells), list(state.functions)) == ([(cell, 5)], [function])
    assert state.missing is MISSING
    environment = os.environ._data  # type: ignore[attr-defined]
    assert list(state.names) == [
        (space, "x", 1),
        (environment, b"FLY_ONE", b"1"),
        (environment, b"FLY_TWO", MISSING),
        (function.__kwdefaults__, "c", 3),
        (function.__annotations__, "a", int),
        (function.__dict__, "tag", "t"),
    ]
    assert state.names[0][0] is space
    assert state.names[1][0] is environment
