"""Launches: grids, host threads, time limits, prints, traps, and the device between them."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from cpu_support import INDEX, TARGET, image, kernel, launch, load, run
from fly_common.errors import Fault, InputError, MissingError, UsageError
from fly_run.cpu import execution, loading
from fly_run.cpu.device import Cpu
from fly_run.devices.options import Options
from fly_run.devices.protocol import FROM_DEVICE, ON_DEVICE, TO_DEVICE
from fly_store import built_library

STORE = f"""{INDEX}
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %x = load i32, ptr addrspace(1) %at
  %y = add i32 %x, %i.32
  store i32 %y, ptr addrspace(1) %at"""
# Each thread sums its number in a loop.
WORK = f"""{INDEX}
  %at = getelementptr i32, ptr addrspace(1) %p0, i64 %i
  %count = load volatile i32, ptr addrspace(1) %at
  br label %loop
loop:
  %n = phi i32 [ 0, %0 ], [ %next, %loop ]
  %sum = phi i32 [ 0, %0 ], [ %more, %loop ]
  %mixed = xor i32 %sum, %n
  %more = mul i32 %mixed, 1664525
  %next = add i32 %n, 1
  %again = icmp ult i32 %next, %count
  br i1 %again, label %loop, label %done
done:
  store i32 %more, ptr addrspace(1) %at"""
FOREVER = """
  br label %loop
loop:
  %x = load volatile i32, ptr addrspace(1) %p0
  br label %loop"""


def work(count: int) -> int:
    total = 0
    for n in range(count):
        total = (total ^ n) * 1664525 & 0xFFFFFFFF
    return total


def test_a_big_grid():
    numbers = np.ones(200_000 * 32, np.int32)
    run(kernel(STORE, 1), [numbers], 200_000, 32)
    assert (numbers == np.arange(numbers.size) + 1).all()


def test_a_block_of_1024_threads_and_no_more():
    device, module = load(kernel(STORE, 1))
    numbers = np.zeros(2048, np.int32)
    launch(device, module, [numbers], 2, 1024)
    assert (numbers == np.arange(2048)).all()
    with pytest.raises(UsageError, match="can't be launched"):
        launch(device, module, [numbers], 1, 1025)
    launch(device, module, [numbers], 0, 32)  # nothing to run


def test_no_memory_for_stacks(monkeypatch):
    device, module = load(kernel(STORE, 1))

    def full(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    with monkeypatch.context() as patch:
        patch.setattr(loading.mmap, "mmap", full)
        with pytest.raises(MissingError, match="no memory for the stacks of 64 threads"):
            launch(device, module, [np.zeros(64, np.int32)], 1, 64)
    numbers = np.zeros(64, np.int32)
    launch(device, module, [numbers], 1, 64)
    assert (numbers == np.arange(64)).all()


def test_long_launches_are_shared_by_host_threads(monkeypatch):
    monkeypatch.setattr(execution.os, "sched_getaffinity", lambda _: range(4))
    helped = []
    original = execution.Launch._help
    monkeypatch.setattr(
        execution.Launch, "_help", lambda self, copy: (helped.append(copy), original(self, copy))
    )
    # Whoever takes the last blocks works longer than the others, which must not end the launch.
    counts = np.full((64, 32), 20_000, np.uint32)
    counts[60:] = np.arange(1, 5)[:, None] * 200_000
    numbers = counts.copy()
    run(kernel(WORK, 1), [numbers], 64, 32)
    for count in (20_000, 200_000, 400_000, 600_000, 800_000):
        assert (numbers[counts == count] == work(count)).all()
    assert len(set(helped)) == 3


def test_atomics_on_global_memory_are_not_shared(monkeypatch):
    monkeypatch.setattr(execution.os, "sched_getaffinity", lambda _: range(4))
    helped = []
    monkeypatch.setattr(execution.Launch, "_help", lambda _, copy: helped.append(copy))
    text = WORK + "\n  %r = atomicrmw add ptr addrspace(1) %p1, i32 1 monotonic"
    numbers, count = np.full(64 * 32, 20_000, np.uint32), np.zeros(1, np.int32)
    run(kernel(text, 2), [numbers, count], 64, 32)
    assert count[0] == numbers.size
    assert not helped


def test_a_fault_in_another_host_thread(monkeypatch):
    monkeypatch.setattr(execution.os, "sched_getaffinity", lambda _: range(4))
    body = WORK + "\n  %bad = icmp eq i32 %i.32, 2040\n  br i1 %bad, label %trap, label %end\n"
    body += "trap:\n  call void @llvm.trap()\n  unreachable\nend:"
    device, module = load(kernel(body, 1))
    numbers = np.full(64 * 32, 20_000, np.uint32)
    with pytest.raises(Fault) as caught:
        launch(device, module, [numbers], 64, 32)
    assert caught.value.message == "trap; kernel k 'trap' block (63, 0, 0) thread (24, 0, 0)"


def test_a_loop_that_does_not_end(monkeypatch):
    monkeypatch.setenv("FLY_TIMEOUT", "0.3")
    device, module = load(kernel(FOREVER, 1))
    start = time.monotonic()
    with pytest.raises(Fault) as caught:
        launch(device, module, [np.zeros(1, np.int32)], 1, 32)
    assert time.monotonic() - start < 20
    assert caught.value.message == (
        "timeout: the launch did not end within 0.3 s; kernel k block (0, 0, 0)"
    )


def test_an_interrupt():
    device, module = load(kernel(FOREVER, 1))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        launch(device, module, [np.zeros(1, np.int32)], 1, 1)
    timer.join()
    numbers = np.zeros(32, np.int32)
    launch(device, device.load(image(kernel(STORE, 1))), [numbers])
    assert (numbers == np.arange(32)).all()


def test_progress():
    seen = []
    device = Cpu(TARGET, Options(progress=lambda done, blocks: seen.append((done, blocks))))
    numbers = np.full(64 * 32, 20_000, np.uint32)
    launch(device, device.load(image(kernel(WORK, 1))), [numbers], 64, 32)
    assert seen
    assert all(0 <= done <= blocks == 64 for done, blocks in seen)


def test_exit_ends_a_thread():
    body = STORE + "\n  %low = and i32 %i.32, 1\n  %odd = icmp ne i32 %low, 0\n"
    body += "  br i1 %odd, label %out, label %on\nout:\n  call void @llvm.nvvm.exit()\n"
    body += "  unreachable\non:\n  store i32 -5, ptr addrspace(1) %at"
    numbers = np.zeros(64, np.int32)
    run(kernel(body, 1), [numbers], 2, 32)
    assert (numbers == np.where(np.arange(64) % 2, np.arange(64), -5)).all()


PRINT = """
@format = internal addrspace(4) constant [33 x i8] c"%d %5.2f|%-4s|%x %lld %c%%%p %u\\0A\\00"
@word = internal addrspace(4) constant [3 x i8] c"ab\\00"
declare i32 @vprintf(ptr, ptr)
"""
PRINTING = """
  %values = alloca { i32, double, ptr, i32, i64, i32, i64, i32 }
  store { i32, double, ptr, i32, i64, i32, i64, i32 } { i32 -7, double 2.5,
    ptr addrspacecast (ptr addrspace(4) @word to ptr), i32 255, i64 -5000000000, i32 90, i64 16,
    i32 -1 }, ptr %values
  %f = addrspacecast ptr addrspace(4) @format to ptr
  %n = call i32 @vprintf(ptr %f, ptr %values)
  ret void"""


def test_printf(capsys):
    run(kernel(PRINTING.replace("\n    ", " "), 0, PRINT), [], 2, 2)
    line = "-7  2.50|ab  |ff -5000000000 Z%0x10 4294967295\n"
    assert capsys.readouterr().out == 4 * line


def test_a_closed_pipe():
    """A kernel prints to a reader that has gone: one line of an error, no crash."""
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from cpu_support import run\n"
        "try:\n    run(sys.stdin.read(), [], 1000, 32)\n"
        "except BrokenPipeError:\n    sys.stderr.write('the reader has gone')\n"
        "    import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\n"
    )
    words = [sys.executable, "-c", script, str(Path(__file__).parents[2])]
    reader, writer = os.pipe()
    os.close(reader)
    given = kernel(PRINTING.replace("\n    ", " "), 0, PRINT)
    try:
        done = subprocess.run(words, input=given, stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "the reader has gone")


def test_assertions():
    globals = '@m = internal addrspace(4) constant [6 x i8] c"x > 0\\00"\n'
    globals += "declare void @__assertfail(ptr, ptr, i32, ptr, i64)\n"
    body = "  %m = addrspacecast ptr addrspace(4) @m to ptr\n"
    body += "  call void @__assertfail(ptr %m, ptr %m, i32 3, ptr %m, i64 1)"
    with pytest.raises(Fault) as caught:
        run(kernel(body, 0, globals), [], (2, 1, 1), (1, 3, 1))
    assert caught.value.message == (
        "assertion failed: x > 0; kernel k 'assert' block (0, 0, 0) thread (0, 0, 0)"
    )


def test_a_fault_names_block_and_thread():
    registers = [f"{name}.{axis}" for name in ("ctaid", "tid") for axis in "xyz"]
    lines, last = [], "true"
    for n, (name, value) in enumerate(zip(registers, (4, 2, 1, 1, 2, 1), strict=True)):
        lines += [
            f"  %r{n} = call i32 @llvm.nvvm.read.ptx.sreg.{name}()",
            f"  %e{n} = icmp eq i32 %r{n}, {value}",
            f"  %a{n} = and i1 {last}, %e{n}",
        ]
        last = f"%a{n}"
    lines += [f"  br i1 {last}, label %trap, label %end", "trap:", "  call void @llvm.trap()"]
    with pytest.raises(Fault) as caught:
        run(kernel("\n".join([*lines, "  unreachable", "end:"]), 0), [], (5, 3, 2), (3, 4, 2))
    assert caught.value.message == "trap; kernel k 'trap' block (4, 2, 1) thread (1, 2, 1)"


def test_code_that_cannot_be_reached():
    body = f"{INDEX}\n  %some = icmp eq i32 %tid, 9\n  br i1 %some, label %no, label %end\nno:\n"
    body += "  call void @llvm.nvvm.membar.cta()\n  unreachable\nend:"
    with pytest.raises(Fault, match=r"^trap; kernel k 'unreachable' block .* thread \(9, 0, 0\)"):
        run(kernel(body, 0), [])


def test_variables_keep_their_values_between_launches():
    text = kernel(
        "  %x = load i32, ptr addrspace(1) @g\n  %y = add i32 %x, 1\n"
        "  store i32 %y, ptr addrspace(1) @g\n  store i32 %y, ptr addrspace(1) %p0",
        1,
        "@g = internal addrspace(1) global i32 40\n",
    )
    device, module = load(text)
    out = np.zeros(1, np.int32)
    for expected in (41, 42, 43):
        launch(device, module, [out], 1, 1)
        assert out[0] == expected


def test_python_threads_share_a_device():
    device, module = load(kernel(STORE, 1))
    arrays = [np.zeros(1000 * 32, np.int32) for _ in range(8)]
    threads = [
        threading.Thread(target=launch, args=(device, module, [one], 1000)) for one in arrays
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in arrays:
        assert (one == np.arange(one.size)).all()


def test_memory_of_the_device():
    device, module = load(kernel(STORE, 1))
    at = device.alloc(128, "mine")
    numbers = np.arange(32, dtype=np.int32)
    device.copy(at, numbers.ctypes.data, 128, TO_DEVICE)
    other = device.alloc(128)
    device.copy(other, at, 128, ON_DEVICE)
    launch_at = at.to_bytes(8, "little")
    device.launch(module.function("k"), (1, 1, 1), (32, 1, 1), launch_at)
    device.copy(numbers.ctypes.data, at, 128, FROM_DEVICE)
    assert (numbers == 2 * np.arange(32)).all()
    device.copy(numbers.ctypes.data, other, 128, FROM_DEVICE)
    assert (numbers == np.arange(32)).all()
    with pytest.raises(InputError, match=f"no buffer contains 129 bytes at 0x{at:x}"):
        device.copy(numbers.ctypes.data, at, 129, FROM_DEVICE)
    device.free(at)
    with pytest.raises(Fault, match="memory fault: 4 bytes"):
        device.launch(module.function("k"), (1, 1, 1), (32, 1, 1), launch_at)
    with pytest.raises(UsageError, match="no memory was allocated"):
        device.free(at)
    with pytest.raises(UsageError, match="no buffer begins"):
        device.release(at)
    device.close()


def test_the_code_is_kept_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    one = image(kernel(STORE, 1))
    Cpu(TARGET).load(one)
    (path,) = tmp_path.rglob("cpu-*.so")
    assert built_library.read(str(path))[0]
    made = path.stat().st_mtime_ns
    Cpu(TARGET).load(one)
    assert path.stat().st_mtime_ns == made
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    numbers = np.zeros(32, np.int32)
    device = Cpu(TARGET)
    launch(device, device.load(one), [numbers])
    assert (numbers == np.arange(32)).all()
    assert built_library.read(str(path))[0]


def test_a_folder_for_debuggers(tmp_path, monkeypatch):
    monkeypatch.setenv("FLY_CPU_KEEP", str(tmp_path / "kept"))
    numbers = np.zeros(32, np.int32)
    run(kernel(STORE, 1, name="adds"), [numbers])
    assert (numbers == np.arange(32)).all()
    (library,) = (tmp_path / "kept").iterdir()
    assert library.name.startswith("adds-")
    assert b"\0adds\0" in library.read_bytes()  # the symbol's name


def test_arguments_in_memory():
    """An argument that is passed by value in memory; each thread may write to its own."""
    text = """
define ptx_kernel void @k(ptr addrspace(1) %to, ptr byval([4 x i32]) align 16 %given, i8 %n) #0 {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %x.at = getelementptr i32, ptr %given, i64 2
  %x = load i32, ptr %x.at
  %more = add i32 %x, %tid
  store i32 %more, ptr %x.at
  %y = load volatile i32, ptr %x.at
  %wide = zext i8 %n to i32
  %sum = add i32 %y, %wide
  %at = getelementptr i32, ptr addrspace(1) %to, i32 %tid
  store i32 %sum, ptr addrspace(1) %at
  ret void
}
"""
    device, module = load(text)
    out = np.zeros(32, np.int32)
    at = device.adopt(out.ctypes.data, out.nbytes)
    packed = struct.pack("<Q8x4iB", at, 0, 0, 1000, 0, 7)
    device.launch(module.function("k"), (1, 1, 1), (32, 1, 1), packed)
    assert (out == 1007 + np.arange(32)).all()
