"""What a launch costs on the host, in microseconds: ours, the driver's, Triton's and torch's.

A figure is the least mean of the bursts: `BURSTS` times `BURST` calls in a row, behind which the
device is waited for; the ways take turns, `ROUNDS` times.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from fly_common.record import fields_of

from fly.call.compiled import Compiled
from fly.call.function import JitFunction
from fly.call.loading import load

BURSTS, BURST, ROUNDS = 60, 200, 3
ELEMENTS, BLOCK = 1000, 256
PREPARED, CALLED = 0.4, 0.8  # µs more than the driver's call alone

LOOP = """
define i32 @call(ptr %entry, ptr %function, i32 %grid, i32 %block, ptr %stream, ptr %given,
                 i64 %count) {
start:
  br label %body
body:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %status = call i32 %entry(ptr %function, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1,
                            i32 0, ptr %stream, ptr %given, ptr null)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  %good = icmp eq i32 %status, 0
  %on = and i1 %more, %good
  br i1 %on, label %body, label %end
end:
  ret i32 %status
}
"""

Burst = Callable[[int], Any]


class Carried(JitFunction):
    """A function whose code was compiled elsewhere. Everything else is as `@fly.jit` has it: the
    call checks that nothing has changed, and goes to a native launcher."""

    target, settled, backend = "sm_90a", True, None
    compiled: Compiled

    def identity(self) -> tuple[str, ...]:
        return ("carried",)

    def variables(self) -> tuple[str, ...]:
        return ()

    def _chain(self, target: str | None, backend: str | None = None) -> Any:
        return self

    def _compiled(self, given: Any, chosen: Any) -> tuple[Compiled, tuple[str, ...]]:
        return self.compiled, self.identity()


def carried(compiled: Compiled) -> Carried:
    from h200.launches.launched import add

    made = Carried(**{name: getattr(add, name) for name in _fields(add)})
    made.compiled = compiled
    return made


def _fields(function: JitFunction) -> list[str]:
    found = fields_of(type(function)).items()
    return [name for name, one in found if one.is_parameter and not name.startswith("_")]


def repeated(call: Callable[..., Any], *arguments: Any) -> Burst:
    """A loop of calls with as little around them as Python allows."""
    names = ", ".join(f"a{n}" for n in range(len(arguments)))
    unpack = f"    {names}, = arguments\n" if arguments else ""
    text = f"def run(count):\n{unpack}    for _ in range(count):\n        call({names})\n"
    space: dict[str, Any] = {"call": call, "arguments": arguments}
    exec(text, space)
    return space["run"]


class Driver:
    """The kernel of `launched.add`, as the driver itself launches it."""

    def __init__(self, compiled: Compiled, tensors: list[torch.Tensor]):
        (kernel,) = compiled.kernels.values()
        assert [one.size for one in kernel.arguments] == [8, 8] * 3 + [4], kernel.arguments
        self.library = ctypes.CDLL("libcuda.so.1")
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(self.module), compiled.data + b"\0")
        self("cuModuleGetFunction", ctypes.byref(self.function), self.module, b"add_kernel")
        extents = [one.numel() for one in tensors]
        self.values: list[Any] = []
        for tensor, extent in zip(tensors, extents, strict=True):
            self.values += [ctypes.c_uint64(tensor.data_ptr()), ctypes.c_uint64(extent)]
        self.values.append(ctypes.c_int32(ELEMENTS))
        self.given = (ctypes.c_void_p * 7)(*map(ctypes.addressof, self.values))
        self.grid = -(-ELEMENTS // BLOCK)
        self.stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def __call__(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed: {status}")

    def native(self) -> Burst:
        from fly_host.native import library
        from fly_host.native.specialisation import Options

        entry = ctypes.cast(self.library.cuLaunchKernel, ctypes.c_void_p)
        self.loop = library.load(LOOP, Options())
        sizes = ctypes.c_uint32(self.grid), ctypes.c_uint32(BLOCK)

        def run(count: int) -> None:
            words = (entry, self.function, *sizes, self.stream, self.given, ctypes.c_int64(count))
            status = self.loop.call(*words)
            assert status == 0, status

        return run

    def by_ctypes(self) -> Burst:
        call = self.library.cuLaunchKernel
        call.argtypes = [ctypes.c_void_p, *[ctypes.c_uint32] * 7, *[ctypes.c_void_p] * 3]
        sizes = (self.grid, 1, 1, BLOCK, 1, 1, 0)
        return repeated(call, self.function, *sizes, self.stream, self.given, None)

    def by_bindings(self) -> Burst:
        from cuda.bindings import driver

        function = driver.CUfunction(self.function.value)
        stream = driver.CUstream(self.stream.value or 0)
        values = tuple(one.value for one in self.values)
        given = (values, tuple(type(one) for one in self.values))
        sizes = (self.grid, 1, 1, BLOCK, 1, 1, 0)
        return repeated(driver.cuLaunchKernel, function, *sizes, stream, given, 0)


def ways(folder: Path, say: Callable[[str], None]) -> tuple[dict[str, Burst], Driver]:
    """The ways to launch, and what owns the memory of their arguments; says which there are not,
    and why."""
    a, b, c = (torch.rand(ELEMENTS, device="cuda") for _ in range(3))
    compiled = load(str(folder / "launch.image"))
    driver = Driver(compiled, [a, b, c])
    function = carried(compiled)
    for _ in range(3):
        function(a, b, c, ELEMENTS)
    made: dict[str, Callable[[], Burst]] = {
        "cuLaunchKernel in a native loop": driver.native,
        "cuLaunchKernel through ctypes": driver.by_ctypes,
        "cuda-bindings": driver.by_bindings,
        "prepared call": lambda: repeated(_is_native(function).prepare(a, b, c, ELEMENTS)),
        "f(*args)": lambda: repeated(_is_native(function), a, b, c, ELEMENTS),
        "its native launcher": lambda: repeated(
            compiled.native([a, b, c, ELEMENTS]).call, a, b, c, ELEMENTS
        ),
        "Triton kernel[grid]": lambda: _triton(a, b, c),
        "torch.add(out=)": lambda: repeated(partial(torch.add, a, b, out=c)),
    }
    found: dict[str, Burst] = {}
    for name, make in made.items():
        try:
            burst = make()
            c.zero_()
            burst(3)
            torch.cuda.synchronize()
        except Exception as error:
            say(f"launch: {name}: not measured: {type(error).__name__}: {error}")
            continue
        assert torch.equal(c, a + b), f"launch: {name} computes something else"
        found[name] = burst
    return found, driver


def _is_native(function: Carried) -> Carried:
    calls = function._calls and function._calls.native
    assert function._native is not None, calls.reasons if calls else "no native launcher was made"
    return function


def _triton(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Burst:
    from h200.memory.triton_kernels import add_kernel

    grid = (-(-ELEMENTS // BLOCK),)

    def run(count: int) -> None:
        for _ in range(count):
            add_kernel[grid](a, b, c, ELEMENTS, BLOCK=BLOCK)

    return run


def measure(folder: Path, say: Callable[[str], None] = print) -> dict[str, float]:
    """µs by way."""
    bursts, _driver = ways(folder, say)
    found = least(bursts)
    for name, value in found.items():
        say(f"launch: {name:32} {value:6.2f} µs")
    return found


def least(bursts: Mapping[str, Burst]) -> dict[str, float]:
    found = dict.fromkeys(bursts, float("inf"))
    for _ in range(ROUNDS):
        for name, burst in bursts.items():
            for _ in range(BURSTS):
                torch.cuda.synchronize()
                start = time.perf_counter()
                burst(BURST)
                took = time.perf_counter() - start
                found[name] = min(found[name], took / BURST * 1e6)
    return found
