"""What an application may pass: the same memory, no copy; what can't be passed, and why."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from fly_common.errors import UsageError

from fly.call.arrays.views import as_value, dtype_of, is_array, view

NAMES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"]


class Foreign:
    """An array of some other library."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Interface:
    def __init__(self, array: np.ndarray):
        self._array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("name", NAMES)
def test_element_types(name: str):
    dtype = {"b": "bool", "i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:].strip("ol")
    array = np.zeros(3, dtype)
    assert dtype_of(array, "A") == name


@pytest.mark.parametrize("wrap", [lambda a: a, Foreign, Interface], ids=["numpy", "dlpack", "face"])
def test_the_memory_is_the_callers(wrap):
    array = np.zeros((3, 4), np.float32)
    given = wrap(array[:, ::2])
    assert is_array(given)
    seen = view(given, "A")
    assert seen.dtype == "f32"
    assert seen.data.shape == (3, 2)
    assert seen.data.strides == (16, 8)
    assert np.shares_memory(seen.data, array)


def test_numbers_are_no_arrays():
    values = (1, 2.5, True, np.float32(1), np.int64(2), "text", [1, 2], None)
    assert not any(is_array(value) for value in values)
    assert as_value(np.float32(1.5), "x") == 1.5
    assert type(as_value(np.int64(3), "x")) is int


def test_a_read_only_array_stays_read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    assert not view(array, "A").data.flags.writeable


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(2, complex), "argument A: elements of type complex128 are not supported"),
        (np.zeros(2, object), "argument A: elements of type object are not supported"),
        (np.zeros(2, "S3"), "argument A: elements of type |S3 are not supported"),
        (np.zeros(2, ">f4"), "argument A: its byte order is not this machine's (>f4)"),
        (np.ma.zeros(2), "argument A: a masked array's mask would be ignored"),
    ],
)
def test_what_cannot_be_passed(value, message: str):
    with pytest.raises(UsageError) as raised:
        view(value, "A")
    assert raised.value.message == message


def test_a_foreign_array_that_fails():
    class Broken(Foreign):
        def __dlpack__(self, **keywords):
            raise BufferError("it is on the GPU")

    with pytest.raises(UsageError, match=r"Broken can't be seen as an array on the CPU: it is on"):
        view(Broken(np.zeros(2)), "A")


def test_no_torch_is_imported():
    use = "from fly.call.arrays import views; views.view(numpy.zeros(2), 'A')"
    code = f"import sys, numpy; {use}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()


FLOATS = np.ones(4, np.float32).__array_interface__
DAMAGED = {
    "empty": {},
    "no dictionary": 3,
    "no data": {"shape": (4,), "typestr": "<f4", "version": 3},
    "unknown type": FLOATS | {"typestr": "xx"},
    "no shape": FLOATS | {"shape": "a"},
    "null": FLOATS | {"data": (0, False)},
    "negative extent": FLOATS | {"shape": (-1,)},
    "too large": FLOATS | {"shape": (2**62,)},
    "strides of another rank": FLOATS | {"strides": (1, 2)},
    "ValueError": ValueError("no"),
    "KeyError": KeyError("no"),
    "ZeroDivisionError": ZeroDivisionError(),
}


@pytest.mark.parametrize("described", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("way", ["__array_interface__", "__dlpack__"])
def test_an_object_that_describes_itself_wrongly(described, way: str):
    class Damaged:
        @property
        def __array_interface__(self):
            if way == "__dlpack__":
                raise AttributeError
            if isinstance(described, Exception):
                raise described
            return described

        def __dlpack__(self, **keywords):
            if isinstance(described, Exception):
                raise described
            return described

        def __dlpack_device__(self):
            return 1, 0

    assert is_array(Damaged())
    with pytest.raises(
        UsageError, match=r"argument A: Damaged can't be seen as an array"
    ) as raised:
        view(Damaged(), "A")
    assert len(raised.value.message) < 300


def test_a_tensor_without_memory(monkeypatch):
    """As those are that torch.vmap hands to a function: `numpy()` of them raises."""
    from types import ModuleType, SimpleNamespace

    class Tensor:
        device = SimpleNamespace(type="cpu")
        layout = "strided"
        dtype = "torch.float32"

        def is_conj(self):
            return False

        is_neg = is_conj

        def detach(self):
            return self

        def numpy(self):
            raise RuntimeError("Cannot access data pointer of Tensor\nand more lines")

    torch = ModuleType("torch")
    torch.Tensor, torch.strided = Tensor, "strided"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(UsageError, match=r"on the CPU: Cannot access data pointer of Tensor$"):
        view(Tensor(), "A")
