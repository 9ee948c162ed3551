"""torch's CUDA tensors: in place, in the current stream, without a wait; native launchers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from importlib.util import find_spec

import torch
from fly_common.errors import InputError
from fly_run.launch import runtime

from fly.call.compiled import Compiled
from h200_devices import kernels
from h200_devices.on_host import TARGET, expect


def compiled(**options: bool) -> Compiled:
    """A Compiled of hand-written PTX."""
    made = Compiled(b"")
    vars(made)["image"] = kernels.image(made=kernels.program(TARGET, **options))
    return made


def tensors(n: int, seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    a, b = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    return [a, b, torch.zeros(n, device="cuda")]


def native(*given: torch.Tensor, **options: bool) -> Callable[..., object]:
    return compiled(**options).native(given).call


def has_native() -> bool:
    """Whether launchers can be compiled here."""
    return find_spec("llvmlite") is not None


def in_place() -> None:
    call = compiled()
    for n in (1, 1000, 1_000_003):
        a, b, c = tensors(n)
        call(a, b, c)
        assert torch.equal(c, a + b)
    made = compiled(makes=True)(a, b)
    assert made.device == a.device
    assert torch.equal(made, a + b)
    x = torch.rand(100, 2, device="cuda")[:, 0]
    expect(InputError, "A must be contiguous", lambda: call(x, x, x))


def no_wait() -> str:
    """A call behind a slow kernel returns before that ends."""
    call, (a, b, c) = compiled(), tensors(1000)
    call(a, b, c)
    torch.cuda.synchronize()
    torch.cuda._sleep(400_000_000)
    done = torch.cuda.Event()
    start = time.perf_counter()
    call(a, b, c)
    done.record()
    seconds = time.perf_counter() - start
    assert not done.query()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)
    return f"{seconds * 1e6:.0f} µs"


def current_stream() -> None:
    """Ordered with torch's work in the same stream: the slow fill comes first."""
    call = compiled()
    takes_stream = compiled(streams=True)
    for seed in range(3):
        a, b, c = tensors(100_000, seed)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            a.fill_(seed)
            call(a, b, c)
        side.synchronize()
        assert torch.equal(c, b + seed)
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            a.fill_(-seed)
        takes_stream(a, b, c, side)
        takes_stream(a, b, c, side.cuda_stream)
        side.synchronize()
        assert torch.equal(c, b - seed)


def places() -> str:
    call, (a, b, c) = compiled(), tensors(100)
    error = expect(
        InputError, "A is on cuda:0, but B is in host memory", lambda: call(a, b.cpu(), c)
    )
    host = [x.cpu() for x in (a, b, c)]
    call(*host)  # staged
    assert torch.equal(host[2], host[0] + host[1])
    if torch.cuda.device_count() > 1:
        there = [x.to("cuda:1") for x in (a, b, c)]
        call(*there)
        assert torch.equal(there[2], there[0] + there[1])
        assert torch.cuda.current_device() == 0
        expect(InputError, "A is on cuda:0, but B is on cuda:1", lambda: call(a, there[1], c))
    return str(error.hint)


def natively() -> str:
    if not has_native():
        return "not run: llvmlite is not installed"
    for n in (1, 1000, 1_000_003):
        a, b, c = tensors(n)
        call = native(a, b, c)
        assert call(a, b, c) is None
        assert torch.equal(c, a + b)
        assert call(a, b.cpu(), c) is NotImplemented
    made = native(a, b, makes=True)(a, b)
    assert torch.equal(made, a + b)  # type: ignore[arg-type]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        a.fill_(3)
        call(a, b, c)
    side.synchronize()
    assert torch.equal(c, b + 3)
    prepared = compiled().native((a, b, c)).prepare(a, b, c)
    a.fill_(4)
    prepared()
    assert torch.equal(c, b + 4)
    runtime.close_all()
    a.fill_(5)
    prepared()  # it holds what it needs
    assert torch.equal(c, b + 5)
    return "launchers and prepared calls"


def native_threads() -> str:
    """Threads that never had a context, and one whose current context is another device's."""
    if not has_native():
        return "not run: llvmlite is not installed"
    a, b, c = tensors(100_000)
    call = native(a, b, c)
    torch.cuda.synchronize()
    found: list[object] = []

    def work() -> None:
        found.append(call(a, b, c))

    one = threading.Thread(target=work)
    one.start()
    one.join()
    torch.cuda.synchronize()
    assert found == [None]
    assert torch.equal(c, a + b)
    told = "a thread without a context"
    if torch.cuda.device_count() > 1:
        c.zero_()
        torch.cuda.synchronize()
        with torch.cuda.device(1):
            torch.zeros(1, device="cuda:1")
            call(a, b, c)
            assert torch.cuda.current_device() == 1
        torch.cuda.synchronize(0)
        assert torch.equal(c, a + b)
        told += ", and one of another device"
    return told


def native_no_arguments() -> str:
    """The packed buffer may be empty."""
    if not has_native():
        return "not run: llvmlite is not installed"
    from fly_host.native import calling, specialisation
    from fly_run.launch import native as launching

    program, image = kernels.none_program(TARGET), kernels.image()
    device = runtime.device("cuda", TARGET).device
    entry = device.driver_entry([device.load(image).function("none")])
    assert entry is not None
    limits = launching.limits_of(program, image)
    made = calling.compile(specialisation.specialise(program, (), limits), entry)
    with torch.cuda.device(0):
        torch.zeros(1, device="cuda")
        assert made.call() is None
    torch.cuda.synchronize()
    return "an empty buffer is taken"


def launch_times() -> str:
    """Host time of a call, microseconds: the least of 20 bursts of 200."""
    a, b, c = tensors(1000)
    calls: dict[str, Callable[[], object]] = {
        "torch.add": lambda: torch.add(a, b, out=c),
        "Python": lambda one=compiled(): one(a, b, c),
    }
    if has_native():
        launcher = native(a, b, c)
        calls["native"] = lambda: launcher(a, b, c)
        calls["prepared"] = compiled().native((a, b, c)).prepare(a, b, c)
    told = []
    for name, call in calls.items():
        least = 1e9
        for _ in range(20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                call()
            least = min(least, (time.perf_counter() - start) / 200)
        told.append(f"{name} {least * 1e6:.2f}")
    return ", ".join(told) + " µs"


CHECKS = {
    one.__name__: one
    for one in (
        in_place, no_wait, current_stream, places, natively, native_threads, native_no_arguments,
        launch_times,
    )
}  # fmt: skip
