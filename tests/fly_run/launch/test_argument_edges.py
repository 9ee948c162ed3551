"""The edges of what a program accepts: what just fits, what just doesn't, and what is empty."""

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_common.record import replace
from fly_host import program
from fly_host.refusals import describe
from launch_recording import record

from .test_arguments import CODE, PROGRAM, arrays, code_with, refusal

F4 = np.float32


def with_x(**changes) -> program.Program:
    return replace(
        PROGRAM, parameters=(replace(PROGRAM.parameters[0], **changes), *PROGRAM.parameters[1:])
    )


def with_scalar(dtype: str, value=None) -> program.Program:
    """PROGRAM with one more parameter, which no kernel takes."""
    return replace(PROGRAM, parameters=(*PROGRAM.parameters, program.Scalar("more", dtype, value)))


def row_stride(host_program: program.Program, values: dict) -> int:
    """The stride of X's rows as the kernel is told it."""
    launches = record(host_program, CODE, values).launches
    return int.from_bytes(launches[0].packed[8:16], "little", signed=True)


def test_memory_of_one_row_and_of_none():
    """A buffer covers the elements: steps of a single row lead nowhere."""
    given = arrays(1, 100)
    made = record(PROGRAM, CODE, given, X=0x5000)
    assert (made.buffers[0].host, made.buffers[0].nbytes) == (given["X"].ctypes.data, 400)
    assert made.launches[0].packed[:8] == (0x5000).to_bytes(8, "little")
    made = record(PROGRAM, CODE, arrays(2, 0))
    assert made.buffers == []
    assert all(ran.empty for ran in made.ran)


def test_memory_of_rows_backwards():
    given = arrays(2, 100)
    base = np.zeros((2, 100), F4)
    made = record(PROGRAM, CODE, given | {"X": base[::-1]}, X=0x5000)
    assert (made.buffers[0].host, made.buffers[0].nbytes) == (base.ctypes.data, 800)
    assert made.launches[0].packed[:8] == (0x5000 + 400).to_bytes(8, "little")


def test_an_extent_that_is_right():
    record(with_x(shape=(3, "n")), CODE, arrays())
    record(with_x(shape=(3, 100)), CODE, arrays())


def test_an_extent_without_a_name_fits_any():
    record(with_x(shape=(None, "n")), CODE, arrays() | {"X": np.ones((8, 100), F4)})


def test_empty_arrays_are_not_asked_for_strides_or_alignment():
    odd = np.zeros(13, np.uint8)[1:].view("f4")[:0].reshape(0, 100)
    assert not odd.flags.aligned or odd.ctypes.data % 4
    record(PROGRAM, CODE, arrays(0, 100) | {"X": odd})
    apart = np.zeros((3, 0), [("a", "f4"), ("b", "u2")])["a"]
    record(PROGRAM, CODE, arrays(3, 0) | {"X": apart})


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
    record(PROGRAM, CODE, arrays() | {"X": one, "Y": np.zeros((1, 3), F4)})


def test_strides_that_nobody_can_see_are_those_that_are_stated():
    """The stride of a single row is whatever NumPy says, but where the parameter states it, the
    kernel may rely on it."""
    odd = np.lib.stride_tricks.as_strided(np.zeros(100, F4), (1, 100), (52, 4))
    given = arrays(1, 100) | {"X": odd}
    assert row_stride(PROGRAM, given) == 13
    assert row_stride(with_x(strides=(7, 1)), given) == 7
    assert row_stride(with_x(strides=(None, None), contiguous=True), given) == 100
    assert row_stride(with_x(multiples=(1, 1, 8, 1)), given) == 0
    two = arrays(2, 100)
    assert row_stride(with_x(multiples=(1, 1, 4, 1)), two) == 100


def test_contiguous_strides_pass_over_empty_extents():
    """The grid is made to be of one workgroup, so that the launch is seen."""
    made = with_x(strides=(None, None), contiguous=True)
    made = replace(made, steps=(replace(PROGRAM.launches[0], grid=(3, 3, 3)),))
    assert row_stride(made, arrays(3, 0)) == 1


def test_multiples_of_the_strides_of_two_rows():
    error = refusal(
        {"X": np.zeros((2, 100), F4), "Y": np.zeros((2, 100), F4)},
        host_program=with_x(multiples=(1, 1, 64, 1)),
    )
    assert error.message == "X: stride 0 must be a multiple of 64 elements, but is 100"
    record(with_x(multiples=(1, 1, 64, 1)), CODE, arrays(2, 0) | {"X": np.zeros((2, 0), F4)})


def test_other_types_in_the_other_order():
    """A type that is neither in this machine's order nor the right one needs one step."""
    error = refusal({"X": np.zeros((3, 100), ">f8")})
    assert error.hint == "convert it: x.astype('float32')"


@pytest.mark.parametrize(
    ("access", "word"), [("r", "read"), ("w", "written"), ("rw", "read and written")]
)
def test_parameters_are_described(access, word):
    tensor = program.Tensor("A", "f16", (None, "n", 4), (None, None, 1), access)
    assert describe(tensor) == f"f16[?,n,4], {word}"


def test_a_name_that_is_almost_right():
    parameters = (*PROGRAM.parameters, program.Scalar("learning_rate", "f32", 1.0),
                  program.Scalar("learning_rates", "f32", 1.0))  # fmt: skip
    made = replace(PROGRAM, parameters=parameters)
    error = refusal({"learning_rat": 1.0}, host_program=made)
    assert isinstance(error, UsageError)
    assert str(error.hint).startswith("did you mean learning_rate?  parameters: X: ")


@pytest.mark.parametrize(
    ("value", "good"), [(True, 1), (False, 1), (0, 1), (1, 1), (2, 0), (-1, 0)]
)
def test_truth_is_two_numbers(value, good):
    made = with_scalar("bool")
    if good:
        record(made, CODE, arrays() | {"more": value})
    else:
        error = refusal({"more": value}, host_program=made)
        assert error.message == f"more is bool: expected true or false, not {value}"


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_all_of_the_local_memory_and_a_byte_more(target):
    room = (160 if target == "gfx950" else 64) * 1024
    code = replace(CODE, target=target)
    (launch,) = record(PROGRAM, code, arrays() | {"lds": room - 1024}).launches
    assert launch.shared == room - 1024
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
    first = len(PROGRAM.expressions)
    launch = replace(PROGRAM.launches[0], block=(first, first + 1, first + 2))
    made = replace(PROGRAM, expressions=(*PROGRAM.expressions, *numbers), steps=(launch,))
    code = code_with(required_workgroup_size=required)
    if good:
        assert record(made, code, arrays()).launches[0].block == block
    else:
        shown = "×".join(map(str, block)).removesuffix("×1")
        assert refusal({}, host_program=made, code=code).message.startswith(
            f"k: a block of {shown}"
        )


def test_the_most_work_items_of_a_grid():
    """4,294,967,295: 65,537 times 65,535."""
    for count, good in ((65_537, True), (65_538, False)):
        numbers = (("const", count), ("const", 65_535))
        first = len(PROGRAM.expressions)
        launch = replace(PROGRAM.launches[0], grid=(first, 3, 3), block=(first + 1, 3, 3))
        made = replace(PROGRAM, expressions=(*PROGRAM.expressions, *numbers), steps=(launch,))
        code = code_with(max_flat_workgroup_size=1 << 20)
        if good:
            record(made, code, arrays())
        else:
            with pytest.raises(InputError, match="more than 4294967295 work items"):
                record(made, code, arrays())
