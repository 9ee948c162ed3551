"""What a call's arguments say: the types that tracing needs, the values that a launch binds."""

import sys

import numpy as np
import pytest
from fly_common.errors import UsageError
from fly_trace.signatures.signature import Constant

import fly.expr as fx
from fly.call.arguments import Reader, read
from fly.call.arrays import views as arrays
from fly.call.arrays.annotated_array import from_dlpack
from fly.call.arrays.views import as_array, as_value, is_array, is_numpy_scalar
from fly.call.dispatch.dispatcher import ANY

A2 = np.zeros((4, 6), np.float32)


def tensor(A: fx.Tensor): ...


def typed(A: fx.Tensor[fx.Float32]): ...


def ranked(A: fx.Tensor[fx.Float32, "m", "n"]): ...  # noqa: F821


def anything(A): ...


def defaulted(A=7): ...


def scalar(A: fx.Float32): ...


def constant(A: fx.Constexpr): ...


def constant_of_a_kind(A: fx.Constexpr[int]): ...


def types(function, *arguments) -> list[str]:
    given, _ = read(function, arguments, {})
    return [str(kind) for kind in given.values()]


@pytest.mark.parametrize(
    ("function", "value", "found"),
    [
        (anything, A2, ["f32[?,?]"]),
        (tensor, A2, ["f32[?,?]"]),
        (typed, A2, ["f32[?,?]"]),
        (ranked, A2, []),
        (anything, A2.T, ["f32[?,?:1,?]"]),
        (anything, A2.T[:2], ["f32[?,?:1,?]"]),
        (anything, A2.T[:1], ["f32[?,?:?,?]"]),
        (ranked, A2.T, ["f32[m,n:1,?]"]),
        (ranked, A2[0, ::2], []),  # the binder says what is wrong
        (anything, 3, ["i32"]),
        (anything, 3.0, ["f32"]),
        (anything, np.int16(3), ["i16"]),
        (anything, np.float64(3), ["f64"]),
        (scalar, 3, []),
        (scalar, np.float64(3), []),
    ],
)
def test_what_annotations_leave_open(function, value, found):
    assert types(function, value) == found


def test_the_value_of_each_kind():
    for function, value in ((anything, np.int16(3)), (scalar, np.float32(3)), (anything, 3)):
        _, values = read(function, (value,), {})
        assert values == {"A": 3}
        assert type(values["A"]) in (int, float)
    _, values = read(tensor, (A2,), {})
    assert values["A"] is A2


@pytest.mark.parametrize("function", [constant, constant_of_a_kind, defaulted])
@pytest.mark.parametrize("value", [3, "text", None, (1, 2)])
def test_a_constant_is_known_while_tracing(function, value):
    assert read(function, (value,), {}) == ({"A": Constant(value)}, {})


def test_a_default_is_for_what_is_no_array():
    assert types(defaulted, A2) == ["f32[?,?]"]


def test_marks_say_what_the_annotation_leaves_open():
    marked = from_dlpack(A2).mark_layout_dynamic()
    assert types(anything, marked) == [str(marked.type)] == ["f32[?{i32},?{i32}:?,1]"]
    assert types(ranked, marked) == []
    assert types(anything, from_dlpack(A2)) == ["f32[4,6:6,1]"]


@pytest.mark.parametrize("function", [tensor, typed, ranked])
def test_a_number_is_no_array(function):
    with pytest.raises(UsageError) as refused:
        read(function, (3,), {})
    assert refused.value.message == f"argument A of {function.__name__} must be an array, not int"
    assert Reader(function).read((3,), {}) is None


@pytest.mark.parametrize("value", ["text", None, np.add, [1, 2]])
def test_what_is_neither_an_array_nor_a_number(value):
    with pytest.raises(UsageError) as refused:
        read(anything, (value,), {})
    kind = type(value).__name__
    assert (
        refused.value.message == f"argument A of anything must be an array or a number, not {kind}"
    )
    assert refused.value.hint == "a compile-time constant is annotated: A: fx.Constexpr"
    assert Reader(anything).read((value,), {}) is None


# -- streams: accepted wherever FlyDSL has them, and passed to nobody


def by_class(A, stream: fx.Stream): ...


def by_value(A, stream: fx.Stream(None)): ...  # type: ignore[valid-type]


def by_default(A, stream=fx.Stream(None)): ...


@pytest.mark.parametrize("function", [by_class, by_value, by_default])
@pytest.mark.parametrize("stream", [None, 7, fx.Stream(None), A2])
def test_a_stream_is_neither_a_type_nor_a_value(function, stream):
    given, values = read(function, (1, stream), {})
    assert list(given) == ["A"]
    assert values == {"A": 1}
    found = Reader(function).read((1, stream), {})
    assert found is not None
    key, values = found
    assert values == {"A": 1}
    assert Reader(function).read((1, object()), {}) == (key, values)


# -- the key of a call


def key(function, value):
    found = Reader(function).read((value,), {})
    assert found is not None
    return found[0]


@pytest.mark.parametrize("function", [scalar])
def test_numbers_of_an_annotated_type_share_a_key(function):
    values = (1, 2.5, True, np.float32(3), np.int64(4))
    assert len({key(function, value) for value in values}) == 1


def test_arrays_of_an_annotated_type_share_a_key_whatever_their_extents():
    assert key(ranked, A2) == key(ranked, np.zeros((2, 9), np.float32))
    assert key(anything, A2) == key(anything, np.zeros((2, 9), np.float32))
    assert key(anything, A2.T) == key(anything, np.zeros((2, 9), np.float32).T)


def test_a_number_where_there_is_a_default_is_a_constant():
    assert key(defaulted, 1) != key(defaulted, 2)
    assert Reader(defaulted).read((np.int32(1),), {}) is None
    assert read(defaulted, (np.int32(1),), {})[0] == {"A": Constant(np.int32(1))}


# -- arrays


def test_what_is_an_array_is_said_by_a_truth_value():
    assert is_array(A2) is True
    assert [is_array(value) for value in (1, 2.5, True, np.float32(1))] == [False] * 4


def test_a_scalar_of_numpys():
    class Lookalike:
        dtype = np.dtype("f4")

    assert is_numpy_scalar(np.float32(1)) is True
    assert not any(map(is_numpy_scalar, (1.0, Lookalike(), np.add, None)))
    thing = Lookalike()
    assert as_value(thing, "x") is thing
    assert as_value(np.add, "x") is np.add


def test_an_array_of_a_type_that_was_passed_before_is_only_looked_up(monkeypatch):
    monkeypatch.setattr(arrays, "_plain", {})
    first = as_array(A2, "A")
    assert first is not None
    assert (first.data is A2, first.dtype) == (True, "f32")
    monkeypatch.setattr(arrays, "view", lambda value, name: pytest.fail("looked at again"))
    assert as_array(A2.T, "A") == (pytest.approx(A2.T), "f32")


def test_an_array_that_was_seen_otherwise_is_not_remembered_as_it_is(monkeypatch):
    """The numbers of the package ml_dtypes are arrays of their bits."""
    monkeypatch.setattr(arrays, "_plain", {})
    monkeypatch.setattr(
        arrays, "view", lambda value, name: arrays.Array(value.view(np.uint32), "bits")
    )
    for _ in range(2):
        found = as_array(A2, "A")
        assert found is not None
        assert (found.data.dtype, found.dtype) == (np.dtype("u4"), "bits")


def test_a_process_that_has_neither_numpy_nor_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert arrays.view(A2, "A").data is A2
    monkeypatch.delitem(sys.modules, "numpy")
    assert as_array(3, "A") is None
    assert as_value(3, "A") == 3


class Interface:
    __array_interface__ = A2.__array_interface__


def test_a_foreign_array_is_seen():
    found = as_array(Interface(), "A")
    assert found is not None
    assert found.dtype == "f32"
    assert found.data.ctypes.data == A2.ctypes.data


def test_what_native_code_compares():
    """A number for a parameter that nothing types is of one type; a constant is one value."""

    def function(A, B: fx.Tensor, k: fx.Constexpr, n: fx.Int32, stream: fx.Stream): ...

    arguments = (2.5, np.ones(3), "word", 4, None)
    found = Reader(function).rules(arguments, ["A", "B", "n"])
    assert (found.count, found.passed) == (5, (0, 1, 3))
    assert found.fixed == ((0, float, ANY), (2, str, "word"))
    array = (np.ones(2), *arguments[1:])
    assert Reader(function).rules(array, ["A", "B", "n"]).fixed == ((2, str, "word"),)
