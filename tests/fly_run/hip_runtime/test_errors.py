"""Error codes, the last error, injected failures, and calls with wrong arguments."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_size_t

import pytest
from fly_common.errors import UsageError
from fly_run.hip_runtime import errors, injected, registered
from fly_run.hip_runtime.calls import copies
from fly_run.hip_runtime.prototypes import prototypes
from hip_support import Hip

CODES = [one for one in prototypes().values() if not one.returns_text]


# -- texts


def test_names_and_texts(hip):
    assert hip.hipGetErrorName(700) == "hipErrorIllegalAddress"
    assert hip.hipGetErrorString(700) == "an illegal memory access was encountered"
    assert hip.hipGetErrorName(0) == "hipSuccess"
    assert hip.hipGetErrorName(12345) == "hipErrorUnknown"
    assert hip.hipGetErrorString(12345) == "unknown error"
    text = hip.get(c_size_t, lambda out: hip.ok.hipDrvGetErrorName(2, out))
    assert ctypes.string_at(text) == b"hipErrorOutOfMemory"
    text = hip.get(c_size_t, lambda out: hip.ok.hipDrvGetErrorString(2, out))
    assert ctypes.string_at(text) == b"out of memory"
    nothing = c_size_t(5)
    assert hip.hipDrvGetErrorName(12345, nothing) == "hipErrorInvalidValue"
    assert nothing.value == 0


def test_the_last_error_is_the_threads(hip):
    hip.hipFree(12)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(hip.hipGetLastError()))
    thread.start()
    thread.join()
    assert seen == ["hipSuccess"]
    hip.ok.hipFree(0)
    assert hip.hipPeekAtLastError() == hip.hipPeekAtLastError() == "hipErrorInvalidValue"
    assert hip.hipGetLastError() == "hipErrorInvalidValue"
    assert hip.hipGetLastError() == hip.hipExtGetLastError() == "hipSuccess"


def test_an_error_of_this_code_is_unknown_and_printed(hip, capsys, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr(copies, "_copy", broken)
    assert hip.hipMemcpy(1, 1, 1, 1) == "hipErrorUnknown"
    assert "ZeroDivisionError: of a test" in capsys.readouterr().err


# -- wrong arguments


@pytest.mark.parametrize("value", [0, 1, -1])
@pytest.mark.parametrize("one", CODES, ids=lambda one: one.name)
def test_no_function_breaks_on_wrong_arguments(one, value):
    """Each returns an error code for handles, numbers and pointers that are 0, and for handles and
    numbers that are wrong, with pointers to zeros. The address of a function can't be checked."""
    hip = Hip()
    zeros = ctypes.create_string_buffer(4096)

    def argument(kind: str) -> int:
        if value == 0 or kind in ("hipHostFn_t", "hipStreamCallback_t"):
            return 0
        return ctypes.addressof(zeros) if kind.endswith("*") else value

    arguments = [argument(parameter.type) for parameter in one.parameters]
    result = getattr(hip, one.name)(*arguments)
    assert result != "hipErrorUnknown"


def test_the_functions_have_their_prototypes_parameters():
    import inspect

    for one in prototypes().values():
        defined = list(inspect.signature(registered.FUNCTIONS[one.name]).parameters)
        assert len(defined) == 1 + len(one.parameters), one.name
    assert set(registered.FUNCTIONS) == set(prototypes())


# -- the log


def test_the_log(capsys):
    hip = Hip(FLY_HIP_LOG="1")
    hip.hipFree(0x10)
    line = capsys.readouterr().err
    assert line == (
        "fly-run: HIP: hipFree(ptr=0x10) → hipErrorInvalidValue: 0x10 was not allocated\n"
    )


# -- injected failures


@pytest.mark.parametrize("one", CODES, ids=lambda one: one.name)
def test_each_function_can_be_made_to_fail(one):
    """The second call fails, and is not executed: an invalid call would fail in another way."""
    hip = Hip(FLY_HIP_FAIL=f"{one.name}:2=hipErrorECCNotCorrectable")
    call, arguments = getattr(hip, one.name), [0] * len(one.parameters)
    first, second, third = call(*arguments), call(*arguments), call(*arguments)
    assert second == "hipErrorECCNotCorrectable"
    quiet = "LastError" in one.name
    assert (first, third) == (third, first)
    assert first != second
    assert (
        hip.hipPeekAtLastError()
        == ("hipSuccess" if quiet else third if third != "hipSuccess" else second)
        or one.name == "hipPeekAtLastError"
    )


def test_numbers_and_usual_errors():
    hip = Hip(FLY_HIP_FAIL="hipMalloc:2+, hipFree:1=hipErrorUnknown,hipFree:3,hipStreamCreate")
    assert [hip.hipMalloc(c_size_t(), 8) for _ in range(3)] == [
        "hipSuccess",
        "hipErrorOutOfMemory",
        "hipErrorOutOfMemory",
    ]
    assert [hip.hipFree(0) for _ in range(4)] == [
        *("hipErrorUnknown", "hipSuccess", "hipErrorInvalidValue", "hipSuccess")
    ]
    assert hip.hipStreamCreate(c_size_t()) == hip.hipStreamCreate(c_size_t()) != "hipSuccess"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hipMallox", "hipMallox is not a HIP function"),
        ("hipGetErrorName", "hipGetErrorName is not a HIP function that can fail"),
        ("hipMalloc=hipErrorNone", "hipErrorNone is not an error of HIP"),
        ("hipMalloc=hipSuccess", "hipSuccess is not an error of HIP"),
        ("hipMalloc:0", "'hipMalloc:0' is not a failure"),
        ("hipMalloc:x", "'hipMalloc:x' is not a failure"),
    ],
)
def test_wrong_failures(text, message):
    with pytest.raises(UsageError, match=message):
        injected.parse(text)


def test_every_usual_error_is_one():
    assert set(injected.USUAL) <= set(prototypes())
    assert set(injected.USUAL.values()) <= set(errors.NUMBERS)
