"""What an example of Triton's needs besides a GPU: a driver, torch's `cuda`, and pytest's names.

For a Python with Triton and torch, which uses the HIP library of its environment
(`fly-run --hip gfx1250`). Nothing that compiles, loads or launches is replaced.
"""

import functools
import importlib.util
import inspect
import sys
import types
from pathlib import Path
from typing import ClassVar

import triton
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

ROOT = Path(__file__).resolve().parents[2]


class Skipped(Exception):
    """The example says that this configuration is not for it."""


class Launcher(HIPLauncher):
    """Triton's launcher, which tells how far a launch came."""

    stages: ClassVar[list] = []

    def __init__(self, src, metadata):
        super().__init__(src, metadata)
        self.stages.append("compiles")

    def __call__(self, *arguments, **named):
        result = super().__call__(*arguments, **named)
        self.stages.append("runs")
        return result


class EmulatedHIP(HIPDriver):
    """Triton's driver without the questions to torch."""

    def __init__(self):
        self.utils = HIPUtils()
        self.launcher_cls = Launcher

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")


class Generator:
    """A GPU's generator of random numbers: kernels that make data read its seed and offset."""

    def __init__(self, seed=0, offset=0):
        self.seed, self.offset = seed, offset

    def initial_seed(self):
        return self.seed

    def get_offset(self):
        return self.offset

    def set_offset(self, offset):
        self.offset = offset


def complete(module) -> None:
    """The example of experts calls two functions as they were before they had another parameter,
    in every commit that has both (August 2026): None is passed for it."""
    for name in ("make_opt_flags", "init_allocation"):
        plain = getattr(module, name, None)
        if plain and "intermediate_out_dtype" in inspect.signature(plain).parameters:
            setattr(module, name, functools.partial(plain, intermediate_out_dtype=None))


def pytest_names() -> types.ModuleType:
    """A module with what the examples use of pytest: their tests are called, not collected."""
    made = types.ModuleType("pytest")

    def skip(reason=""):
        raise Skipped(reason)

    class Mark:
        def __getattr__(self, name):
            return lambda *_, **__: lambda function: function

    made.skip, made.mark = skip, Mark()
    made.param = lambda *values, **_: values
    made.fixture = lambda function=None, **_: function or (lambda one: one)
    return made


def install() -> None:
    """Makes this process one in which an example can be imported and its functions called."""
    path = ROOT / "fly/flydsl/cuda.py"
    spec = importlib.util.spec_from_file_location("cuda_on_cpu", path)
    cuda = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cuda)
    cuda.install()
    import torch

    torch.cuda.default_generators = (Generator(),)
    sys.modules["pytest"] = pytest_names()
    triton.runtime.driver.set_active(EmulatedHIP())
