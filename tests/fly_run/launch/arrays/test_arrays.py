"""NumPy's arrays for programs: allocations, and views of arrays of any strides."""

import numpy as np
import pytest
from fly_run.launch.arrays.protocol import NUMPY


def test_an_allocation_has_room_for_padding():
    value, whole = NUMPY.empty("f32", (3, 10), (16, 1), 48)
    assert (value.shape, value.strides, whole.shape) == ((3, 10), (64, 4), (48,))
    whole[:] = np.arange(48)
    np.testing.assert_array_equal(value, np.arange(48).reshape(3, 16)[:, :10])


def test_an_allocation_without_elements():
    value, whole = NUMPY.empty("f16", (3, 0), (1, 1), 0)
    assert (value.shape, whole.shape) == ((3, 0), (0,))


BASE = np.arange(48, dtype=np.int32)


@pytest.mark.parametrize(
    "array",
    [BASE[4:], BASE[4:40:2], BASE[4:5], BASE.reshape(6, 8)[1:5, 1:6], BASE.reshape(6, 8).T[2:]],
    ids=["one", "strided", "element", "rectangle", "transposed"],
)
def test_a_view_counts_from_the_first_element_in_memory(array):
    """Offsets and strides are those of memory, whatever the strides of the array itself."""
    first = array.flat[0]
    reach = sum((n - 1) * s // 4 for n, s in zip(array.shape, array.strides, strict=True))
    for offset in {0, reach}:
        seen = NUMPY.strided(array, (1,), (1,), offset)
        assert seen.tolist() == [first + offset]
        assert np.shares_memory(seen, BASE)
    whole = NUMPY.strided(array, (2, reach // 2 + 1), (reach // 2, 1), 0)
    wanted = [first + np.arange(reach // 2 + 1), first + reach // 2 + np.arange(reach // 2 + 1)]
    np.testing.assert_array_equal(whole, wanted)
