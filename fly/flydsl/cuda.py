"""torch's device `cuda` on the CPU, for programs that create their tensors there.

    import fly.flydsl.cuda; fly.flydsl.cuda.install()

The emulator's kernels read host memory, so `.cuda()` and `device="cuda"` give tensors of the CPU.
Streams and events exist and do nothing: each launch is complete when it returns. The module needs
torch only, so that FlyDSL itself can be run with it too.
"""

from __future__ import annotations

import contextlib
import os
import time
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# Chip → multiprocessors and bytes of shared memory of one, from AMD's data sheets.
_CHIPS = {"gfx942": (304, 65536), "gfx950": (256, 163840)}


def _plain(value: Any) -> Any:
    """A device `cuda` as the CPU; anything else unchanged."""
    if isinstance(value, str):
        return "cpu" if value.partition(":")[0] == "cuda" else value
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    return value


class OnCPU(TorchFunctionMode):
    """Functions of torch that are given the device `cuda` get the CPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        named = {key: _plain(value) for key, value in (kwargs or {}).items()}
        if function is torch.device:
            args, named = (_plain(args[0]),), {}
        if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if function is torch.Tensor.to:
            args = (args[0], *map(_plain, args[1:]))
        return function(*args, **named)


class Stream:
    """A stream, in which everything is done at once."""

    cuda_stream = 0
    device = torch.device("cpu")

    def __init__(self, *_: Any, **__: Any):
        pass

    def synchronize(self) -> None: ...

    def wait_stream(self, _: Any) -> None: ...

    def wait_event(self, _: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        found = event or Event()
        found.record()
        return found

    def query(self) -> bool:
        return True


class Event:
    """A point in time, by the host's clock."""

    def __init__(self, *_: Any, **__: Any):
        self.seconds = 0.0

    def record(self, *_: Any) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None: ...

    def wait(self, *_: Any) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Event) -> float:
        return (other.seconds - self.seconds) * 1e3


@contextlib.contextmanager
def _nothing(*_: Any, **__: Any) -> Any:
    yield


def _properties(*_: Any) -> Any:
    chip = os.environ.get("FLYDSL_GPU_ARCH", "gfx942")
    processors, shared = _CHIPS.get(chip, (96, 65536))
    return SimpleNamespace(
        name=f"{chip} (emulated)",
        gcnArchName=chip,
        multi_processor_count=processors,
        total_memory=64 << 30,
        shared_memory_per_block=shared,
        warp_size=32 if chip.startswith(("gfx11", "gfx12")) else 64,
        major=9,
        minor=4,
    )


_FUNCTIONS: dict[str, Any] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "init": lambda: None,
    "_lazy_init": lambda: None,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": lambda _: None,
    "synchronize": lambda *_: None,
    "_sleep": lambda _: None,  # of the stream, which FlyDSL's autotuner measures behind
    "empty_cache": lambda: None,
    "current_stream": lambda *_: Stream(),
    "default_stream": lambda *_: Stream(),
    "stream": _nothing,
    "set_stream": lambda *_: None,
    "device": _nothing,
    "Stream": Stream,
    "Event": Event,
    "get_device_properties": _properties,
    "get_device_name": lambda *_: _properties().name,
    "get_device_capability": lambda *_: (9, 4),
    "manual_seed": lambda seed: torch.default_generator.manual_seed(int(seed)),
    "manual_seed_all": lambda seed: torch.default_generator.manual_seed(int(seed)),
    "memory_allocated": lambda *_: 0,
    "max_memory_allocated": lambda *_: 0,
    "mem_get_info": lambda *_: (32 << 30, 64 << 30),
    "reset_peak_memory_stats": lambda *_: None,
    "is_current_stream_capturing": lambda: False,
}

_mode = OnCPU()


def install() -> None:
    """Makes torch's `cuda` the CPU, until the process ends."""
    for name, function in _FUNCTIONS.items():
        setattr(torch.cuda, name, function)
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    torch.Tensor.is_cuda = property(lambda self: True)  # type: ignore[assignment]
    if _mode not in getattr(torch.overrides, "_fly_modes", ()):
        torch.overrides._fly_modes = (_mode,)  # type: ignore[attr-defined]
        _mode.__enter__()
