"""Descriptors of tensors that native launchers make by a driver's function."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fly_common.record import replace
from fly_host.native import calling, specialisation
from fly_host.native.specialisation import DriverEntry, KernelLimits
from fly_host.native.unavailable import Unavailable
from fly_host.program import Launch, Program, Tensor, TileDescriptor, Word

POINTER = ctypes.c_void_p
DESCRIBE = ctypes.CFUNCTYPE(
    ctypes.c_int, POINTER, ctypes.c_int, ctypes.c_uint, *[POINTER] * 5, *[ctypes.c_int] * 4
)
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, *[ctypes.c_uint] * 7, POINTER, POINTER, POINTER)
LIMITS = KernelLimits(176, ((48, 128),), 1024, 0)


def program(dtype: str = "f32", swizzle: int = 0, rounded: bool = False) -> Program:
    """One launch, with the descriptor of a matrix A of which boxes of 4 rows × 32 are copied."""
    expressions = (("const", 1), ("const", 0), ("extent", "A", 0), ("extent", "A", 1))
    expressions = (*expressions, ("stride", "A", 0))
    found = TileDescriptor(dtype, (3, 2), (4,), (32, 4), swizzle, rounded)
    word = Word("descriptor", name="A", size=128, descriptor=found)
    launch = Launch("k", (0, 0, 0), (0, 0, 0), 1, ((word,),))
    parameter = Tensor("A", dtype, (None, None), (None, 1), "r")
    return Program("f", "sm_90a", (parameter,), expressions, (launch,))


class Driver:
    """A driver that records calls. `status` is what it says of descriptors."""

    def __init__(self, status: int = 0):
        self.status = status
        self.described: list[dict[str, Any]] = []
        self.packed: list[bytes] = []
        self._describe, self._launch = DESCRIBE(self.describe), LAUNCH(self.launch)

    def describe(self, at: int, kind: int, rank: int, data: int, *rest: Any) -> int:
        extents, strides, box, steps, *choices = rest
        assert at % 64 == 0
        row = {
            "kind": kind,
            "data": data,
            "extents": list((ctypes.c_uint64 * rank).from_address(extents)),
            "strides": list((ctypes.c_uint64 * (rank - 1)).from_address(strides)),
            "box": list((ctypes.c_uint32 * rank).from_address(box)),
            "steps": list((ctypes.c_uint32 * rank).from_address(steps)),
            "choices": choices,
        }
        self.described.append(row)
        ctypes.memmove(at, bytes(range(128)), 128)
        return self.status

    def launch(self, *arguments: Any) -> int:
        extra = (POINTER * 5).from_address(arguments[-1])
        size = ctypes.c_size_t.from_address(extra[3]).value
        self.packed.append(ctypes.string_at(extra[1], size))
        return 0

    def entry(self, describes: bool = True) -> DriverEntry:
        def address(function: Any) -> int:
            return ctypes.cast(function, POINTER).value or 0

        def error(launch: int, status: int) -> None:
            raise OSError(f"launch {launch}: status {status}")

        describing = specialisation.Describing(
            address(self._describe), (("f32", 7),), ((0, 0), (128, 3)), 3, (("f32", 11),)
        )
        return DriverEntry(
            address(self._launch), [1], error, describing=describing if describes else None
        )


@pytest.fixture
def matrix() -> Iterator[Any]:
    room = np.zeros(4096, "f4")
    first = -(room.ctypes.data // 4) % 4  # at a multiple of 16 bytes
    return room[first : first + 16 * 64].reshape(16, 64)


def compiled(driver: Driver, made: Program, array: Any, **options: Any) -> Any:
    specialised = specialisation.specialise(made, [array], [LIMITS])
    return calling.compile(specialised, driver.entry(**options))


def test_the_driver_gets_the_tensor_and_the_kernel_its_descriptor(matrix: Any) -> None:
    driver = Driver()
    native = compiled(driver, program(swizzle=128), matrix)
    native.call(matrix[:8, :60])
    (row,) = driver.described
    assert row == {
        "kind": 7,
        "data": matrix.ctypes.data,
        "extents": [60, 8],
        "strides": [256],
        "box": [32, 4],
        "steps": [1, 1],
        "choices": [0, 3, 3, 0],
    }
    assert driver.packed == [bytes(48) + bytes(range(128))]


def test_elements_that_are_rounded_have_a_number_of_their_own(matrix: Any) -> None:
    driver = Driver()
    compiled(driver, program(rounded=True), matrix).call(matrix)
    assert driver.described[0]["kind"] == 11


def test_a_stride_of_a_single_row_does_not_matter(matrix: Any) -> None:
    driver = Driver()
    compiled(driver, program(), matrix).call(np.ndarray((1, 60), "f4", matrix, 0, (12, 4)))
    assert driver.described[0]["strides"] == [16]


@pytest.mark.parametrize("what", ["address", "stride", "empty"])
def test_python_says_what_is_wrong_with_a_tensor(matrix: Any, what: str) -> None:
    driver = Driver()
    native = compiled(driver, program(), matrix)
    wrong = {
        "address": matrix[:, 1:],
        "stride": matrix.reshape(-1)[: 16 * 63].reshape(16, 63),
        "empty": matrix[:0],
    }
    assert native.call(wrong[what]) is NotImplemented
    assert not driver.described


def test_a_descriptor_that_the_driver_refuses_is_an_error(matrix: Any) -> None:
    driver = Driver(status=1)
    with pytest.raises(OSError, match="launch 0: status 1"):
        compiled(driver, program(), matrix).call(matrix)
    assert not driver.packed


def test_without_a_driver_s_function_there_is_no_native_code(matrix: Any) -> None:
    with pytest.raises(Unavailable, match="takes descriptors of tensors"):
        compiled(Driver(), program(), matrix, describes=False)


def test_programs_with_descriptors_survive_their_text() -> None:
    from fly_host import text

    made = program(swizzle=64)
    assert text.read(text.write(made)) == made
    (launch,) = made.launches
    plain = Word("pointer", name="A")
    assert "descriptor" not in text.write(
        replace(made, steps=(replace(launch, arguments=((plain,),)),))
    )
