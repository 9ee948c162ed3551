"""`fly.from_dlpack` and its marks: what code may rely on, and what launches check."""

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError

import fly
import fly.expr as fx
from fly.call.arrays.annotated_array import from_dlpack


@fly.kernel
def double_kernel(A: fx.Tensor):
    A[fx.block_idx.x, fx.thread_idx.x] = A[fx.block_idx.x, fx.thread_idx.x] * 2.0


@fly.jit
def double(A: fx.Tensor):
    double_kernel(A).launch(grid=A.shape[0], block=A.shape[1])


def rows(count: int = 3, columns: int = 32) -> np.ndarray:
    return np.arange(count * columns, dtype=np.float32).reshape(count, columns)


def test_an_array_is_static_until_it_is_marked():
    assert str(from_dlpack(rows()).type) == "f32[3,32:32,1]"


def test_marks_are_what_is_known():
    marked = from_dlpack(rows()).mark_layout_dynamic(leading_dim=1, divisibility=16)
    assert str(marked.type) == "f32[?{i32},?{i32}:?{div=16},1]"
    assert str(from_dlpack(rows()).mark_shape_dynamic([0, -1], [1, 8]).type) == (
        "f32[?{i32},?{i32 div=8}:32,1]"
    )
    narrow = from_dlpack(rows(), use_32bit_stride=True).mark_stride_dynamic(0, 4)
    assert str(narrow.type) == "f32[3,32:?{i32 div=4},1]"


def test_dimensions_are_counted_from_either_end():
    assert str(from_dlpack(rows()).mark_shape_dynamic(-2).type) == "f32[?{i32},32:32,1]"


def test_an_alignment_that_is_there():
    array = rows()
    aligned = array.ctypes.data & -array.ctypes.data  # the largest power of two that divides it
    assert from_dlpack(array, assumed_align=aligned).array is array
    with pytest.raises(UsageError, match=f"a multiple of {2 * aligned} bytes"):
        from_dlpack(array, assumed_align=2 * aligned)


def test_the_first_dimension_without_a_gap_leads():
    assert str(from_dlpack(rows().T).mark_layout_dynamic().type) == "f32[?{i32},?{i32}:1,?]"


def test_results_are_right_and_the_marks_checked_at_each_launch():
    a = rows()
    double(from_dlpack(a).mark_layout_dynamic(divisibility=16))
    np.testing.assert_array_equal(a, 2 * rows())
    compiled = double.compile(from_dlpack(a).mark_layout_dynamic(divisibility=16))
    other = rows(5, 48)
    compiled(other)
    np.testing.assert_array_equal(other, 2 * rows(5, 48))
    with pytest.raises(InputError, match="stride 0 must be a multiple of 16 elements, but is 40"):
        compiled(rows(5, 40))


def test_one_code_for_all_that_the_marks_allow():
    first = double.compile(from_dlpack(rows()).mark_layout_dynamic())
    again = double.compile(from_dlpack(rows(7, 64)).mark_layout_dynamic())
    static = double.compile(from_dlpack(rows()))
    assert first.hsaco == again.hsaco
    assert first.hsaco != static.hsaco


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (lambda a: a.mark_layout_dynamic(divisibility=12), "a power of two, not 12"),
        (lambda a: a.mark_layout_dynamic(leading_dim=0), "dimension 0 has the stride 32, not 1"),
        (lambda a: a.mark_layout_dynamic(leading_dim=2), "2 dimensions, but no dimension 2"),
        (lambda a: a.mark_shape_dynamic([0, 1], [2]), "2 dimensions, but 1 divisibilities"),
        (lambda a: a.mark_shape_dynamic(0, 12), "a power of two, not 12"),
        (lambda a: a.mark_stride_dynamic(0, 0), "a power of two, not 0"),
        (lambda a: a.mark_shape_dynamic(-3), "2 dimensions, but no dimension -3"),
        (
            lambda a: from_dlpack(a.array[:, ::2]).mark_layout_dynamic(),
            "no stride of the array is 1: they are 32, 2",
        ),
        (lambda a: from_dlpack(np.zeros(2, "S3")), "argument of from_dlpack: elements of type"),
        (
            lambda a: from_dlpack(np.zeros(2, "S3"), assumed_align=1),
            "argument of from_dlpack: elements of type",
        ),
        (lambda a: from_dlpack(a.array[1:, 1:], assumed_align=16), "a multiple of 16 bytes"),
    ],
)
def test_marks_that_do_not_fit_are_refused(mark, message):
    with pytest.raises(UsageError, match=message):
        mark(from_dlpack(rows()))
