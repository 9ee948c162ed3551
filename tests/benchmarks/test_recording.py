"""What kernel_quality.py records of the launches of other systems, which the HIP runtime makes."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from fly_image.amd.code_object import CodeObject
from fly_run.devices.options import Options
from fly_run.emulator.machine import Emulator

import fly
import fly.expr as fx

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


@fly.kernel
def double_kernel(X: fx.Tensor):
    X[fx.thread_idx.x] = 2 * X[fx.thread_idx.x]


@fly.jit(target="gfx942")
def double(X: fx.Tensor[fx.Float32, 64]):
    double_kernel(X).launch(grid=1, block=64)


@pytest.mark.heavy
@pytest.mark.parametrize("named", [{}, {"cluster": None}], ids=str)
def test_each_launch_is_recorded(named, tmp_path, monkeypatch):
    """As the HIP runtime launches: with a cluster by name."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(PEERS))
    for name in ("recording", "kernel_problems"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    recording = import_module("recording")
    x = np.ones(64, np.float32)
    code = CodeObject.parse(double.compile().data, "double")
    device = Emulator("gfx942", Options())
    function = device.load(code).function("double_kernel")
    address = device.adopt(x.ctypes.data, x.nbytes, writable=True, label="x")
    size = code.kernel("double_kernel").kernarg_size
    packed = np.array([address], "u8").tobytes().ljust(size, b"\0")
    launches = []
    with recording.recorded(tmp_path, launches):
        device.launch(function, (1, 1, 1), (64, 1, 1), packed, 0, **named)
        device.synchronize()
    device.release(address)
    ((kernel, file, lds, executed),) = launches
    assert (kernel, lds, (x == 2).all()) == ("double_kernel", 0, True)
    assert executed > 0
    assert (tmp_path / file).read_bytes() == code.data
