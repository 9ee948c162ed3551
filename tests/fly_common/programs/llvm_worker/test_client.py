"""The worker: when it answers, and what happens when it does not."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from fly_common.programs import prefetch, process, toolchain
from fly_common.programs.llvm_worker import client, requests
from fly_common.programs.process import Done
from requests_to_worker import ABORTS, KERNEL, LLC, OPT, ask, by_program, worker

WARNS = (
    KERNEL[: KERNEL.index(b"define")]
    + b"""
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) {
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  store volatile i32 %i, ptr addrspace(1) %p
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  ret void
}
!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.vectorize.enable", i1 true}
!2 = !{!"llvm.loop.vectorize.width", i32 4}
"""
)


def test_it_does_what_the_programs_do(started: list[str]) -> None:
    optimised = ask("opt", OPT, KERNEL)
    assert optimised == by_program("opt", OPT, KERNEL)
    assert b"\n" in optimised.stdout
    first = worker()
    assert ask("llc", LLC, optimised.stdout) == by_program("llc", LLC, optimised.stdout)
    assert worker() is first
    assert started == []


def test_bitcode_is_read_too(started: list[str]) -> None:
    bitcode = by_program("llvm-as", ["-o", "-"], KERNEL).stdout
    assert bitcode[:2] == b"BC"
    assert ask("llc", LLC, bitcode) == by_program("llc", LLC, bitcode)
    assert started == []


def test_options_of_a_processor_reach_functions_without_any(started: list[str]) -> None:
    """-mcpu and -mattr are those of functions that have none, as in llc."""
    bare = KERNEL.replace(b'"target-cpu"="gfx942"', b'"target-features"="+wavefrontsize64"')
    for words in (LLC, [LLC[0], LLC[1], "-mattr=-xnack,+sramecc", *LLC[2:]]):
        done = ask("llc", words, bare)
        assert done.returncode == 0
        assert done == by_program("llc", words, bare)
    assert started == []


@pytest.mark.parametrize(
    ("name", "words", "data"),
    [
        ("opt", OPT, b"define nothing"),
        ("opt", OPT, KERNEL[:-40]),
        ("opt", OPT, b"\0\1\2"),
        ("opt", OPT, KERNEL.replace(b"ret void", b"%x = add i32 %x, 1\n ret void")),  # %x uses %x
        ("llc", LLC, KERNEL.replace(b"amdgcn-amd-amdhsa", b"nosuch-machine")),
        ("llc", LLC, KERNEL.replace(b"%w = mul", b'call void asm "s_nonsense", ""()\n %w = mul')),
        (
            "llc",
            LLC,
            KERNEL.replace(b"ptr addrspace(1) %p)", b"ptr addrspace(1) %p, [9 x i99] %q)"),
        ),
        ("llc", LLC, ABORTS),
        # Without a data layout, and with another one: opt and llc take the target's to parse it.
        ("opt", OPT, KERNEL[KERNEL.index(b"target triple") :]),
        ("llc", LLC, KERNEL[KERNEL.index(b"target triple") :]),
        ("llc", LLC, KERNEL.replace(b"-i64:64-", b"-i32:64-i64:64-")),
    ],
)
def test_what_fails_is_told_by_the_program(
    name: str, words: list[str], data: bytes, started: list[str]
) -> None:
    found, expected = ask(name, words, data), by_program(name, words, data)
    assert found.returncode == expected.returncode
    if found.returncode == 0:
        assert found.stdout == expected.stdout
    else:
        assert found.stderr.splitlines()[:1] == expected.stderr.splitlines()[:1]
        assert started == [name]
    # ... and the next is answered, by the same worker or by a new one.
    started.clear()
    assert ask("opt", OPT, KERNEL) == by_program("opt", OPT, KERNEL)
    assert started == []


def test_a_warning_is_told_by_the_program(started: list[str]) -> None:
    """opt warns of a loop that it was told to unroll and can't."""
    found, expected = ask("opt", OPT, WARNS), by_program("opt", OPT, WARNS)
    assert b"warning: " in expected.stderr
    assert found == expected
    assert started == ["opt"]


def test_without_it(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client.VARIABLE, "0")
    assert ask("opt", OPT, KERNEL).returncode == 0
    assert client._worker is None
    monkeypatch.delenv(client.VARIABLE)
    monkeypatch.setattr(sys, "executable", "/opt/app/bin/blender")
    assert ask("opt", OPT, KERNEL).returncode == 0
    assert client._worker is None


def test_one_that_can_not_be_started(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    assert ask("opt", OPT, KERNEL) == by_program("opt", OPT, KERNEL)


def test_one_that_ends_at_once(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried again: the library can't be loaded, or there is no ctypes."""
    spawned = []
    spawn = os.posix_spawn
    monkeypatch.setattr(client, "_PROGRAM", "/nowhere/program.py")
    monkeypatch.setattr(client, "_unusable", set())
    monkeypatch.setattr(
        os,
        "posix_spawn",
        lambda path, *rest, **more: (spawned.append(path), spawn(path, *rest, **more))[1],
    )
    for _ in range(3):
        assert ask("opt", OPT, KERNEL) == by_program("opt", OPT, KERNEL)
    assert spawned.count(sys.executable) == 1


def test_a_killed_worker_is_replaced(started: list[str]) -> None:
    ask("opt", OPT, KERNEL)
    first = worker().pid
    os.kill(first, signal.SIGKILL)
    while os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT) is None:
        pass
    assert ask("opt", OPT, KERNEL) == by_program("opt", OPT, KERNEL)
    assert ask("opt", OPT, KERNEL) == by_program("opt", OPT, KERNEL)
    assert worker().pid != first
    assert started == ["opt"]  # for the request that met the dead one


def test_a_request_is_not_waited_for_without_end(started: list[str]) -> None:
    ask("opt", OPT, KERNEL)
    os.kill(worker().pid, signal.SIGSTOP)
    begin = time.monotonic()
    with process.limited(0.2), pytest.raises(process.TimedOut, match=r"opt did not finish within"):
        ask("opt", OPT, KERNEL)
    ask("opt", OPT, KERNEL)
    os.kill(worker().pid, signal.SIGSTOP)
    large = b";" * (1 << 20) + KERNEL  # it does not fit into the pipe
    with process.limited(0.2), pytest.raises(process.TimedOut, match=r"opt did not finish within"):
        ask("opt", OPT, large)
    assert time.monotonic() - begin < 60
    assert ask("opt", OPT, KERNEL).returncode == 0


def test_the_time_limit_is_that_of_the_request() -> None:
    """It does not begin again with each part of the reply that arrives."""
    ask("opt", OPT, KERNEL)
    reader, writer = os.pipe()
    replaced = os.dup(worker().reader)
    os.dup2(reader, worker().reader)
    ended = threading.Event()

    def reply_slowly() -> None:
        os.write(writer, struct.pack("<II", 1, 100))
        for _ in range(100):
            os.write(writer, b";")
            if ended.wait(0.1):
                return

    thread = threading.Thread(target=reply_slowly)
    thread.start()
    try:
        with process.limited(0.5), pytest.raises(process.TimedOut, match=r"within 0\.5 s"):
            ask("opt", OPT, KERNEL)
    finally:
        ended.set()
        thread.join()
        for handle in (reader, writer, replaced):
            os.close(handle)
    assert client._worker is None


def test_what_was_ready_in_time_is_taken_later() -> None:
    ask("opt", OPT, KERNEL)  # starts the worker
    path = toolchain.find_program("opt")
    with process.limited(2), prefetch.Programs() as programs:
        programs.start([(path, OPT)])
        running = prefetch.start(path, OPT, KERNEL)
        time.sleep(2.1)
        assert running.wait() == by_program("opt", OPT, KERNEL)


def test_an_interrupt_ends_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    ask("opt", OPT, KERNEL)
    monkeypatch.setattr(
        client.Worker, "receive", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        ask("opt", OPT, KERNEL)
    monkeypatch.undo()
    assert client._worker is None  # its reply would have been taken for the next one's
    assert ask("llc", LLC, KERNEL) == by_program("llc", LLC, KERNEL)


def test_a_request_that_nobody_waits_for(started: list[str]) -> None:
    path = toolchain.find_program("opt")
    with prefetch.Programs() as programs:
        programs.start([(path, OPT)])
        running = prefetch.start(path, OPT, KERNEL)
        running.end()
        running.end()
    assert client._worker is None
    assert ask("opt", OPT, KERNEL).returncode == 0


def test_another_library_is_another_worker(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replaced file is noticed: results are stored under the new one's identity."""
    ask("opt", OPT, KERNEL)
    first = worker().pid
    real = client._identity
    monkeypatch.setattr(client, "_identity", lambda path: (*real(path), 1))
    ask("opt", OPT, KERNEL)
    assert worker().pid != first
    assert started == []


def test_threads(started: list[str]) -> None:
    """One request at a time; whoever comes meanwhile starts the program."""
    inputs = [KERNEL.replace(b"@k", f"@k{number}".encode()) for number in range(24)]
    found: dict[bytes, Done] = {}

    def work(data: bytes) -> None:
        found[data] = ask("opt", OPT, data)

    threads = [threading.Thread(target=work, args=(data,)) for data in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for data in inputs:
        assert found[data] == by_program("opt", OPT, data)


def in_child(work: Callable[[], bool]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_process_has_a_worker_of_its_own(started: list[str]) -> None:
    expected = by_program("opt", OPT, KERNEL)
    ask("opt", OPT, KERNEL)
    first = worker().pid

    def work() -> bool:
        found = ask("opt", OPT, KERNEL)
        return found == expected and worker().pid != first

    assert in_child(work) == 0
    assert ask("opt", OPT, KERNEL) == expected
    assert worker().pid == first
    # A fork while a request is being executed.
    path = toolchain.find_program("opt")
    with prefetch.Programs() as programs:
        programs.start([(path, OPT)])
        running = prefetch.start(path, OPT, KERNEL)
        assert in_child(work) == 0
        assert running.wait() == expected
    assert started == []


def test_it_ends_with_its_process() -> None:
    script = (
        "import sys; from fly_common.programs import prefetch, toolchain\n"
        "from fly_common.programs.llvm_worker import client\n"
        "path = toolchain.find_program('opt')\n"
        "with prefetch.Programs() as programs: programs.start([(path, ['-S', '-O3'])])\n"
        "print(client._worker.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        os.kill(pid, 0)
        running.kill()
        running.wait()
        # Also, it keeps no stream of the application open: this would wait for its end.
        assert running.stdout.read() == b""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":
                break  # nobody reaps orphans here
        time.sleep(0.01)
    else:
        pytest.fail("the worker outlives its process")


def test_the_library_that_it_loads() -> None:
    ask("opt", OPT, KERNEL)
    path = requests.library_of(toolchain.find_program("opt"))
    with open(f"/proc/{worker().pid}/maps") as file:
        assert str(path) in file.read()
