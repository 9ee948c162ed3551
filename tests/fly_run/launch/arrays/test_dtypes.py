"""Element types: their names, sizes, and how numbers become their bits."""

import math
import struct

import numpy as np
import pytest
from fly_run.launch.arrays import dtypes
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("name", dtypes.NUMPY)
def test_tables_agree(name):
    kind = dtypes.numpy_dtype(name)
    assert kind.itemsize == dtypes.SIZES[name]
    assert dtypes.holds(kind, name)
    assert name in dtypes.ML_DTYPES or dtypes.name_of(kind) == name


def test_names_of_what_we_do_not_have():
    assert dtypes.name_of(np.dtype(">f4")) == ">f4"
    assert dtypes.name_of(np.dtype("c8")) == "complex64"
    assert dtypes.name_of(np.dtype("V2")) == "bf16"


@pytest.mark.parametrize("name", [n for n in dtypes.NUMPY if n not in dtypes.ML_DTYPES])
def test_scalars_are_numpys_bits(name):
    for value in (0, 1, 100) if name != "bool" else (False, True):
        assert dtypes.pack_scalar(value, name) == dtypes.numpy_dtype(name).type(value).tobytes()


def bf16_nearest(value: float) -> set[float]:
    """The bf16 numbers nearest to a float32, by looking at its neighbours in exact arithmetic."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0] & 0xFFFF0000
    around = [bits, min(bits + 0x10000, 0xFF800000 if bits >> 31 else 0x7F800000)]
    numbers = {struct.unpack("<f", struct.pack("<I", b))[0]: b >> 16 for b in around}
    distance = {b: abs(number - value) for number, b in numbers.items()}
    least = min(distance.values())
    return {b for b, d in distance.items() if d == least}


@given(st.floats(width=32, allow_nan=False, min_value=-(2.0**127), max_value=2.0**127))
def test_bf16_rounds_to_nearest_even(value):
    (bits,) = struct.unpack("<H", dtypes.pack_scalar(value, "bf16"))
    nearest = bf16_nearest(value)
    assert bits in nearest
    assert len(nearest) == 1 or bits % 2 == 0
    assert dtypes.convert(np.array([value], np.float32), "bf16")[0] == bits


def test_bf16_at_the_edges():
    assert dtypes.pack_scalar(math.inf, "bf16") == b"\x80\x7f"
    assert dtypes.pack_scalar(-math.inf, "bf16") == b"\x80\xff"
    bits = struct.unpack("<H", dtypes.pack_scalar(math.nan, "bf16"))[0]
    assert bits & 0x7F80 == 0x7F80
    assert bits & 0x7F
    with pytest.raises(OverflowError):
        dtypes.pack_scalar(3.4e38, "bf16")


def test_eight_bits():
    """1.0625 is a tie between two E4M3 numbers: the even one is taken."""
    given = np.array([[0.0, 1.0], [1.0625, -448.0]])
    codes = dtypes.convert(given, "f8E4M3FN")
    assert codes.tolist() == [[0x00, 0x38], [0x38, 0xFE]]
    assert dtypes.as_numbers(codes.view("V1"), "f8E4M3FN").tolist() == [[0, 1], [1, -448]]
    assert dtypes.pack_scalar(math.inf, "f8E5M2") == b"\x7c"
    for value in (math.inf, 480.0):
        with pytest.raises(OverflowError):
            dtypes.pack_scalar(value, "f8E4M3FN")


def test_bf16_as_numbers():
    array = np.array([0x3F80, 0xC000, 0x7F80], np.uint16)
    assert dtypes.as_numbers(array, "bf16").tolist() == [1.0, -2.0, math.inf]
    assert dtypes.as_numbers(array.view("V2"), "bf16").tolist() == [1.0, -2.0, math.inf]
    assert dtypes.as_numbers(array, "u16") is array


@pytest.mark.parametrize(("value", "name"), [(128, "i8"), (-1, "u64"), (1e39, "f32"), (7e4, "f16")])
def test_what_does_not_fit(value, name):
    with pytest.raises(OverflowError):
        dtypes.pack_scalar(value, name)
