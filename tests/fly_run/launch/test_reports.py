"""Launches of kernels that report, on devices whose kernels are Python functions."""

from __future__ import annotations

import gc
import struct
import threading
import time
from types import SimpleNamespace

import pytest
from fly_common.errors import Fault, InputError, MissingError
from fly_image import reports as layout
from fly_image.reports import Site, Sites
from fly_run.devices.external import _Module
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.device import Gpu
from fly_run.launch import reports
from gpu_support.drivers import FakeGpu
from gpu_support.images import FakeImage, kernel
from gpu_support.prototypes import CUDA

ONE, BLOCK = (1, 1, 1), (8, 2, 1)
SITES = (Site("k", "{0} is odd", "k.py", 3), Site("k", "{0} is {1:thread}", "k.py", 4))


class Bench:
    """A GPU whose kernel `k` writes the reports that its arguments ask for."""

    def __init__(self, *, sites=SITES, clear=(), buffer=layout.NBYTES, data=b"fly_reports"):
        self.gpu = FakeGpu()
        self.gpu.kernels["k"] = self.kernel
        if buffer:
            self.gpu.variables[layout.BUFFER] = b"\xff" * buffer
        self.gpu.variables[layout.SITES] = Sites(sites, clear).text().encode() + b"\0"
        self.gpu.variables["shadow"] = b"\xee" * 64
        self.device = Gpu(Cuda(self.gpu.library(CUDA)), "sm_90a", None)
        self.image = FakeImage({"k": kernel("k", 8, 8)}, "sm_90a", data=data)
        self.module = self.device.load(self.image)
        self.seen = []

    def variable(self, name: str):
        (address,) = [at for (_, one), at in self.gpu.placed.items() if one == name]
        return self.gpu.memory[address]

    def kernel(self, gpu, launch) -> None:
        count, value = struct.unpack("<qq", launch.packed)
        memory = self.variable(layout.BUFFER)
        self.seen.append((bytes(memory[:16]), bytes(self.variable("shadow"))
                          if len(gpu.placed) > 2 else b""))  # fmt: skip
        for number in range(count):
            thread = count - 1 - number
            record = layout.RECORD.pack(number % 2, 0, 0, 0, thread, 0, 0, 0, value, 9, 0, 0)
            at = layout.HEADER.size + number * layout.RECORD.size
            memory[at : at + len(record)] = list(record)
        memory[:4] = list(struct.pack("<I", count))

    def launch(self, count: int, value: int = 5) -> None:
        packed = struct.pack("<qq", count, value)
        reports.launch(self.device, self.module.function("k"), ONE, BLOCK, packed)


def test_a_launch_without_a_report():
    bench = Bench()
    bench.launch(0)
    assert bench.seen == [(bytes(16), b"")]


def test_a_report_fails_the_launch():
    bench = Bench()
    with pytest.raises(Fault) as caught:
        bench.launch(1)
    assert str(caught.value) == ("k.py:3: kernel 'k': 5 is odd; block (0, 0, 0) thread (0, 0, 0)")
    assert caught.value.exit_code == 1
    bench.launch(0)  # the next launch begins anew


def test_of_several_reports_the_first_threads_is_shown():
    with pytest.raises(Fault) as caught:
        Bench().launch(4)
    assert str(caught.value) == (
        "k.py:4: kernel 'k': 5 is (1, 1, 0); block (0, 0, 0) thread (0, 0, 0); 3 more on 2 lines"
    )


def test_variables_are_cleared_before_each_launch():
    bench = Bench(clear=("shadow",))
    for _ in range(2):
        bench.launch(0)
        bench.variable("shadow")[:] = 7
    assert [shadow for _, shadow in bench.seen] == [bytes(64)] * 2


def test_a_launch_waits_for_an_earlier_one_before_it_clears():
    bench = Bench()
    bench.launch(0)
    names = [one[0] for one in bench.gpu.log]
    launched = names.index("cuLaunchKernel")
    cleared = max(n for n in range(launched) if names[n] == "cuMemsetD8Async")
    assert "cuCtxSynchronize" in names[:cleared]
    assert "cuCtxSynchronize" in names[launched:]


def test_launches_of_several_threads_take_turns():
    bench = Bench()
    inside, most = [], []
    kernel = bench.gpu.kernels["k"]

    def watched(gpu, launch):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        kernel(gpu, launch)
        inside.pop()

    bench.gpu.kernels["k"] = watched
    failed = []

    def work(count):
        try:
            bench.launch(count)
        except Fault:
            failed.append(count)

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == [1] * 4
    assert max(most) == 1


def test_first_launches_at_once_share_a_watch(monkeypatch):
    bench = Bench()

    class Slow(reports.Watch):
        def __init__(self, module):
            time.sleep(0.05)  # the other thread asks meanwhile
            super().__init__(module)

    monkeypatch.setattr(reports, "Watch", Slow)
    found = []
    function = bench.module.function("k")
    threads = [threading.Thread(target=lambda: found.append(reports.watch(function))) for _ in "12"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found[0] is found[1]


def test_a_module_without_reports_is_not_asked():
    bench = Bench(data=b"code")
    bench.variable = lambda name: bytearray(layout.NBYTES)
    bench.launch(0)
    assert not bench.gpu.called("cuModuleGetGlobal_v2")
    assert not bench.gpu.called("cuCtxSynchronize")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"buffer": 0}, "the code has reports, but no variable fly_reports"),
        ({"buffer": 32}, "fly_reports has 32 bytes"),
        ({"clear": ("nothing",)}, "the code has reports, but no variable nothing"),
    ],
)
def test_code_with_half_of_it(fields, said):
    with pytest.raises(InputError, match=said):
        Bench(**fields).launch(0)


def test_a_device_that_cannot_read_variables():
    made = _Module(SimpleNamespace(data=b"fly_reports"), None)
    with pytest.raises(MissingError, match="the device exec can't read fly_reports") as caught:
        reports.watch(SimpleNamespace(module=made))
    assert "compile without asserts, fx.printf and the plugins" in caught.value.hint


def test_a_module_is_freed_with_its_watch():
    bench = Bench()
    bench.launch(0)
    bench.module = None
    gc.collect()
    assert not bench.gpu.loaded


def test_a_function_of_no_module():
    assert reports.watch("add") is None
