"""Errors, and the addresses of functions."""

from __future__ import annotations

from fly_run.hip_runtime import cells, errors
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.registered import alias, function
from fly_run.hip_runtime.runtime import Runtime

FOUND, NOT_FOUND = 0, 1  # hipDriverProcAddressQueryResult
SINCE_6_0 = 600  # the version from which hipGetProcAddress returns the newer structures' functions


@function
def hipGetLastError(runtime: Runtime) -> int:
    error, runtime.thread.error = runtime.thread.error, errors.SUCCESS
    return error


alias("hipExtGetLastError", hipGetLastError)


@function
def hipPeekAtLastError(runtime: Runtime) -> int:
    return runtime.thread.error


@function
def hipGetErrorName(runtime: Runtime, hip_error: int) -> int:
    return errors.address(errors.NAMES.get(hip_error, "hipErrorUnknown"))


@function
def hipGetErrorString(runtime: Runtime, hipError: int) -> int:
    return errors.address(errors.TEXTS.get(hipError, errors.TEXTS[errors.UNKNOWN]))


@function
def hipDrvGetErrorName(runtime: Runtime, hipError: int, errorString: int) -> None:
    _put(errorString, errors.NAMES, hipError)


@function
def hipDrvGetErrorString(runtime: Runtime, hipError: int, errorString: int) -> None:
    _put(errorString, errors.TEXTS, hipError)


def _put(address: int, texts: dict[int, str], error: int) -> None:
    cells.put_size(address, errors.address(texts[error]) if error in texts else 0)
    need(error in texts, reason=f"{error} is not an error")


@function
def hipGetProcAddress(
    runtime: Runtime, symbol: int, pfn: int, hipVersion: int, flags: int, symbolStatus: int
) -> None:
    name = cells.get_text(symbol)
    need(name and pfn, reason="no name, or a null pointer")
    if name in ("hipGetDeviceProperties", "hipChooseDevice") and hipVersion >= SINCE_6_0:
        name += "R0600"
    address = runtime.exports.get(name, 0)
    if symbolStatus:
        cells.put_int(symbolStatus, FOUND if address else NOT_FOUND)
    cells.put_size(pfn, address)
    if not address:
        raise Failure("hipErrorInvalidValue", f"there is no {name}")


@function
def hipGetDriverEntryPoint(
    runtime: Runtime, symbol: int, funcPtr: int, flags: int, driverStatus: int
) -> None:
    hipGetProcAddress(runtime, symbol, funcPtr, SINCE_6_0, flags, driverStatus)


@function
def hipProfilerStart(runtime: Runtime) -> None:
    """There is no profiler, and nothing to start."""


alias("hipProfilerStop", hipProfilerStart)
