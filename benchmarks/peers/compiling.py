"""Compiles the kernels of problems, and launches none: the program of kernel_compile_time.py.

    python compiling.py fly|triton TARGET [NAME...]

Prints JSON: the milliseconds of the first call of each problem (kernel_problems.py), up to the
launch, in a process that has compiled another kernel before; or why there is none. The caches are
those of the environment, which have to be empty.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import torch
from kernel_problems import PROBLEMS
from recording import Solution

BEFORE = 'quantize_rows(x, "int8")'  # compiled first; it is not measured


class Compiled(Exception):
    """Ends a call where it would launch."""


def of_fly() -> tuple[Mapping[str, Solution], contextlib.AbstractContextManager[Any]]:
    from fly_calls import SOLUTIONS

    from fly.call import compiled

    def stop(*_: Any, **__: Any) -> None:
        raise Compiled

    return SOLUTIONS, patch.object(compiled.Compiled, "run_viewed", stop)


def of_triton(target: str) -> tuple[Mapping[str, Solution], contextlib.AbstractContextManager[Any]]:
    """Triton's launches, each of which compiles and returns."""
    import triton
    from triton.backends.amd import driver as amd
    from triton.backends.compiler import GPUTarget
    from triton.runtime.jit import JITFunction

    # The driver that triton_calls makes asks a HIP library for its functions.
    with patch.object(amd, "HIPUtils", lambda: None):
        from triton_calls import SOLUTIONS, EmulatedHIP

        class Absent(EmulatedHIP):
            def get_current_target(self) -> GPUTarget:
                return GPUTarget("cuda", int(target.removeprefix("sm_").rstrip("a")), 32)

        triton.runtime.driver.set_active(Absent())
    run: Callable[..., Any] = JITFunction.run

    def warm(self: Any, *given: Any, **named: Any) -> Any:
        return run(self, *given, **{**named, "warmup": True})

    return SOLUTIONS, patch.object(JITFunction, "run", warm)


def milliseconds(prepared: Callable[[], Any]) -> float:
    start = time.perf_counter()
    with contextlib.suppress(Compiled):
        prepared()
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    system, target, *names = sys.argv[1:]
    solutions, instead = of_fly() if system == "fly" else of_triton(target)
    by_name = {one.name: one for one in PROBLEMS}
    found: dict[str, Any] = {}
    with instead, torch.no_grad():
        for name in (BEFORE, *names):
            if name not in solutions:
                continue
            try:
                found[name] = milliseconds(solutions[name](*by_name[name].make(target)))
            except Exception as error:
                reason = str(error).strip().splitlines() or [""]
                found[name] = f"{type(error).__name__}: {reason[0]}"
            print(name, found[name], file=sys.stderr, flush=True)
    print()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
