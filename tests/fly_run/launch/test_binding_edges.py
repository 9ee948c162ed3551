"""The edges of what binding accepts: what just fits, what just doesn't, and what is empty."""

from dataclasses import replace

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_host import plan
from fly_run.launch.binding import bind
from fly_run.launch.parameters import describe

from .test_binding import CODE, PLAN, arrays, code_with, refusal

F4 = np.float32


def with_x(**changes) -> plan.Plan:
    return replace(PLAN, parameters=(replace(PLAN.parameters[0], **changes), *PLAN.parameters[1:]))


def with_scalar(dtype: str, value=None) -> plan.Plan:
    """PLAN with one more parameter, which no kernel takes."""
    return replace(PLAN, parameters=(*PLAN.parameters, plan.Scalar("more", dtype, value)))


def row_stride(launch_plan: plan.Plan, values: dict) -> int:
    """The stride of X's rows as the kernel is told it."""
    (launch,) = bind(launch_plan, CODE, values).launches
    return int.from_bytes(launch.kernarg[8:16], "little", signed=True)


def test_memory_of_one_row_and_of_none():
    """A buffer covers the elements: steps of a single row lead nowhere."""
    given = arrays(1, 100)
    x = bind(PLAN, CODE, given).buffers[0]
    assert (x.host, x.nbytes, x.origin) == (given["X"].ctypes.data, 400, 0)
    bound = bind(PLAN, CODE, arrays(2, 0))
    assert [(b.nbytes, b.origin) for b in bound.buffers] == [(0, 0), (0, 0)]
    assert all(launch.empty for launch in bound.launches)


def test_memory_of_rows_backwards():
    given = arrays(2, 100)
    base = np.zeros((2, 100), F4)
    x = bind(PLAN, CODE, given | {"X": base[::-1]}).buffers[0]
    assert (x.host, x.nbytes, x.origin) == (base.ctypes.data, 800, 400)


def test_an_extent_that_is_right():
    bind(with_x(shape=(3, "n")), CODE, arrays())
    bind(with_x(shape=(3, 100)), CODE, arrays())


def test_an_extent_without_a_name_fits_any():
    bind(with_x(shape=(None, "n")), CODE, arrays() | {"X": np.ones((8, 100), F4)})


def test_empty_arrays_are_not_asked_for_strides_or_alignment():
    odd = np.zeros(13, np.uint8)[1:].view("f4")[:0].reshape(0, 100)
    assert not odd.flags.aligned or odd.ctypes.data % 4
    bind(PLAN, CODE, arrays(0, 100) | {"X": odd})
    apart = np.zeros((3, 0), [("a", "f4"), ("b", "u2")])["a"]
    bind(PLAN, CODE, arrays(3, 0) | {"X": apart})


def test_two_elements_are_asked_for_their_stride():
    wide = np.zeros((2, 200), F4)
    error = refusal({"X": wide[:, ::2][:, :2], "Y": np.zeros((2, 2), F4)})
    assert error.message == "X has fixed strides: stride 1 must be 1 elements, but the array's is 2"


def test_a_stride_that_is_no_multiple_of_the_element():
    apart = np.lib.stride_tricks.as_strided(np.zeros(100, F4), (2, 3), (14, 4))
    error = refusal({"X": apart, "Y": np.zeros((2, 3), F4)})
    assert error.message == "stride 0 of X is 14 bytes, which is not a multiple of the element's 4"
    # Of one row nobody asks how far the next would be.
    one = np.lib.stride_tricks.as_strided(np.zeros(100, F4), (1, 3), (14, 4))
    bind(PLAN, CODE, arrays() | {"X": one, "Y": np.zeros((1, 3), F4)})


def test_strides_that_nobody_can_see_are_those_that_are_stated():
    """The stride of a single row is whatever NumPy says, but where the parameter states it, the
    kernel may rely on it."""
    odd = np.lib.stride_tricks.as_strided(np.zeros(100, F4), (1, 100), (52, 4))
    given = arrays(1, 100) | {"X": odd}
    assert row_stride(PLAN, given) == 13
    assert row_stride(with_x(strides=(7, 1)), given) == 7
    assert row_stride(with_x(strides=(None, None), contiguous=True), given) == 100
    assert row_stride(with_x(multiples=(1, 1, 8, 1)), given) == 0
    two = arrays(2, 100)
    assert row_stride(with_x(multiples=(1, 1, 4, 1)), two) == 100


def test_contiguous_strides_pass_over_empty_extents():
    given = arrays(3, 0)
    assert row_stride(with_x(strides=(None, None), contiguous=True), given) == 1


def test_multiples_of_the_strides_of_two_rows():
    error = refusal(
        {"X": np.zeros((2, 100), F4), "Y": np.zeros((2, 100), F4)},
        launch_plan=with_x(multiples=(1, 1, 64, 1)),
    )
    assert error.message == "X: stride 0 must be a multiple of 64 elements, but is 100"
    bind(with_x(multiples=(1, 1, 64, 1)), CODE, arrays(2, 0) | {"X": np.zeros((2, 0), F4)})


def test_other_types_in_the_other_order():
    """A type that is neither in this machine's order nor the right one needs one step."""
    error = refusal({"X": np.zeros((3, 100), ">f8")})
    assert error.hint == "convert it: x.astype('float32')"


@pytest.mark.parametrize(
    ("access", "word"), [("r", "read"), ("w", "written"), ("rw", "read and written")]
)
def test_parameters_are_described(access, word):
    tensor = plan.Tensor("A", "f16", (None, "n", 4), (None, None, 1), access)
    assert describe(tensor) == f"f16[?,n,4], {word}"


def test_a_name_that_is_almost_right():
    parameters = (*PLAN.parameters, plan.Scalar("learning_rate", "f32", 1.0),
                  plan.Scalar("learning_rates", "f32", 1.0))  # fmt: skip
    made = replace(PLAN, parameters=parameters)
    error = refusal({"learning_rat": 1.0}, launch_plan=made)
    assert isinstance(error, UsageError)
    assert str(error.hint).startswith("did you mean learning_rate?  parameters: X: ")


@pytest.mark.parametrize(
    ("value", "good"), [(True, 1), (False, 1), (0, 1), (1, 1), (2, 0), (-1, 0)]
)
def test_truth_is_two_numbers(value, good):
    made = with_scalar("bool")
    if good:
        bind(made, CODE, arrays() | {"more": value})
    else:
        error = refusal({"more": value}, launch_plan=made)
        assert error.message == f"more is bool: expected true or false, not {value}"


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_all_of_the_local_memory_and_a_byte_more(target):
    room = (160 if target == "gfx950" else 64) * 1024
    code = replace(CODE, target=target)
    (launch,) = bind(PLAN, code, arrays() | {"lds": room - 1024}).launches
    assert launch.dynamic_lds == room - 1024
    error = refusal({"lds": room - 1023}, code=code)
    assert error.message.endswith(f"{room - 1023} of dynamic LDS; {target} has {room}")


@pytest.mark.parametrize(
    ("block", "required", "good"),
    [
        ((64, 2, 2), None, True),
        ((64, 2, 3), None, False),
        ((32, 9, 1), None, False),
        ((16, 4, 4), (16, 4, 4), True),
        ((4, 16, 4), (16, 4, 4), False),
    ],
)
def test_blocks(block, required, good):
    """The kernel was compiled for 256 work items at most."""
    numbers = [("const", n) for n in block]
    first = len(PLAN.expressions)
    launch = replace(PLAN.launches[0], block=(first, first + 1, first + 2))
    made = replace(PLAN, expressions=(*PLAN.expressions, *numbers), launches=(launch,))
    code = code_with(required_workgroup_size=required)
    if good:
        assert bind(made, code, arrays()).launches[0].block == block
    else:
        shown = "×".join(map(str, block)).removesuffix("×1")
        assert refusal({}, launch_plan=made, code=code).message.startswith(f"k: a block of {shown}")


def test_a_scalar_that_the_plan_does_not_have():
    """Such a plan is not read from a file, but may be made by hand."""
    words = (*PLAN.launches[0].arguments[:2], (plan.Word("scalar", "X", size=4),),
             PLAN.launches[0].arguments[3])  # fmt: skip
    made = replace(PLAN, launches=(replace(PLAN.launches[0], arguments=words),))
    assert (
        refusal({}, launch_plan=made).message == "the launch plan is damaged: 'X' is not a scalar"
    )


def test_the_most_work_items_of_a_grid():
    """4,294,967,295: 65,537 times 65,535."""
    for count, good in ((65_537, True), (65_538, False)):
        numbers = (("const", count), ("const", 65_535))
        first = len(PLAN.expressions)
        launch = replace(PLAN.launches[0], grid=(first, 3, 3), block=(first + 1, 3, 3))
        made = replace(PLAN, expressions=(*PLAN.expressions, *numbers), launches=(launch,))
        code = code_with(max_flat_workgroup_size=1 << 20)
        if good:
            bind(made, code, arrays())
        else:
            with pytest.raises(InputError, match="more than 4294967295 work items"):
                bind(made, code, arrays())
