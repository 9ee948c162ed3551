"""Injected failures: the variable FLY_HIP_FAIL makes chosen calls return errors.

    FLY_HIP_FAIL=hipMalloc                     every call of hipMalloc fails
    FLY_HIP_FAIL=hipMalloc:2                   the second call
    FLY_HIP_FAIL=hipMalloc:2+=hipErrorUnknown  the second and later ones, with this error
    FLY_HIP_FAIL=hipModuleLoadData:1,hipMemcpy:3=hipErrorIllegalAddress

The function is not executed. Calls are counted in each process, by all its threads.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly_run.hip_runtime import errors
from fly_run.hip_runtime.prototypes import prototypes

VARIABLE = "FLY_HIP_FAIL"
# What functions fail with where nothing is said.
USUAL = {
    "hipMalloc": "hipErrorOutOfMemory",
    "hipExtMallocWithFlags": "hipErrorOutOfMemory",
    "hipMallocManaged": "hipErrorOutOfMemory",
    "hipMallocAsync": "hipErrorOutOfMemory",
    "hipHostMalloc": "hipErrorOutOfMemory",
    "hipInit": "hipErrorNoDevice",
    "hipGetDeviceCount": "hipErrorNoDevice",
    "hipSetDevice": "hipErrorInvalidDevice",
    "hipModuleLoad": "hipErrorNoBinaryForGpu",
    "hipModuleLoadData": "hipErrorNoBinaryForGpu",
    "hipModuleLoadDataEx": "hipErrorNoBinaryForGpu",
    "hipModuleGetFunction": "hipErrorNotFound",
    "hipModuleLaunchKernel": "hipErrorLaunchFailure",
    "hipDrvLaunchKernelEx": "hipErrorLaunchFailure",
    "hipModuleLaunchCooperativeKernel": "hipErrorLaunchFailure",
    "hipDeviceSynchronize": "hipErrorLaunchFailure",
    "hipStreamSynchronize": "hipErrorLaunchFailure",
    "hipEventSynchronize": "hipErrorLaunchFailure",
}
OTHERWISE = "hipErrorInvalidValue"

_RULE = re.compile(r"(\w+)(?::([1-9]\d*)(\+?))?(?:=(\w+))?")


@dataclass(frozen=True)
class Rule:
    """Calls number `first` to `last` fail with `code`."""

    first: int
    last: float
    code: int


class Injected:
    """The rules of a process, and the calls so far."""

    def __init__(self, text: str = ""):
        self._rules = parse(text)
        self._calls: Counter[str] = Counter()

    def code(self, name: str) -> int:
        """Counts a call of `name`. Returns the error that it is to fail with, or 0."""
        rules = self._rules.get(name)
        if rules is None:
            return errors.SUCCESS
        self._calls[name] += 1
        number = self._calls[name]
        return next((one.code for one in rules if one.first <= number <= one.last), 0)


def parse(text: str) -> dict[str, list[Rule]]:
    """Reads the variable's text. UsageError if it is invalid, or names no function or error."""
    made: dict[str, list[Rule]] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        match = _RULE.fullmatch(part)
        if match is None:
            raise UsageError(
                f"{VARIABLE}: {quoted(part)} is not a failure",
                hint="a failure is FUNCTION, FUNCTION:NUMBER or FUNCTION:NUMBER=ERROR",
            )
        name, number, onwards, error = match.groups()
        function = prototypes().get(name)
        if function is None or function.returns_text:
            raise UsageError(f"{VARIABLE}: {name} is not a HIP function that can fail")
        error = error or USUAL.get(name, OTHERWISE)
        if not errors.NUMBERS.get(error):
            raise UsageError(f"{VARIABLE}: {error} is not an error of HIP")
        first = int(number or 1)
        last = float("inf") if onwards or not number else first
        made.setdefault(name, []).append(Rule(first, last, errors.NUMBERS[error]))
    return made
