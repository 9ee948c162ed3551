"""What the worker executes without being asked: llc, of what opt has made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fly_common.programs import prefetch, process, toolchain
from fly_common.programs.llvm_worker import client
from fly_common.programs.process import Done
from requests_to_worker import ABORTS, KERNEL, LLC, OPT, ask, by_program, worker

# opt keeps what llc aborts at.
LATER_ABORTS = ABORTS.replace(b"mul i32 %v, 3", b"mul i32 %v, %s")


def both(data: bytes, llc: list[str] = LLC) -> tuple[Done, Done]:
    """opt, and llc of its result, as a chain runs them."""
    commands = [(toolchain.find_program("opt"), OPT), (toolchain.find_program("llc"), llc)]
    with prefetch.Programs() as programs:
        programs.start(commands)
        first = prefetch.run(*commands[0], data)
        return first, prefetch.run(*commands[1], first.stdout)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[str]]:
    """The names of the requests that workers have executed, which they write to a file. One that is
    called `slow` takes a minute."""
    log = tmp_path / "log"
    made = tmp_path / "program.py"
    text = Path(client._PROGRAM).read_text()
    place = "        try:\n            return True, {"
    assert text.count(place) == 1
    noted = f"        open({str(log)!r}, 'a').write(name + '\\n')\n"
    slow = "        if b'@slow' in data and name == 'llc': __import__('time').sleep(60)\n"
    made.write_text(text.replace(place, noted + slow + place))
    monkeypatch.setattr(client, "_PROGRAM", str(made))
    return lambda: log.read_text().split() if log.exists() else []


def test_what_follows_is_executed_without_being_asked(
    started: list[str], executed: Callable[[], list[str]]
) -> None:
    commands = [(toolchain.find_program("opt"), OPT), (toolchain.find_program("llc"), LLC)]
    with prefetch.Programs() as programs:
        programs.start(commands)
        made = prefetch.run(*commands[0], KERNEL).stdout
        end = time.monotonic() + 60
        while executed() != ["opt", "llc"]:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert prefetch.run(*commands[1], made) == by_program("llc", LLC, made)
    assert executed() == ["opt", "llc"]  # once
    assert started == []


def test_other_data_than_was_expected(
    started: list[str], executed: Callable[[], list[str]]
) -> None:
    commands = [(toolchain.find_program("opt"), OPT), (toolchain.find_program("llc"), LLC)]
    with prefetch.Programs() as programs:
        programs.start(commands)
        prefetch.run(*commands[0], KERNEL)
        assert prefetch.run(*commands[1], KERNEL) == by_program("llc", LLC, KERNEL)
    assert executed() == ["opt", "llc", "llc"]
    # Results that nobody asked for do not pile up.
    for number in range(9):
        with prefetch.Programs() as programs:
            programs.start(commands)
            prefetch.run(*commands[0], KERNEL.replace(b"@k", b"@k%d" % number))
    assert both(KERNEL)[1] == by_program("llc", LLC, both(KERNEL)[0].stdout)
    assert started == []


def test_a_step_between_two_programs(started: list[str], executed: Callable[[], list[str]]) -> None:
    with prefetch.Programs() as programs:
        opt = toolchain.find_program("opt")
        programs.start([(opt, OPT), None, (toolchain.find_program("llc"), LLC)])
        prefetch.run(opt, OPT, KERNEL)
    ask(
        "opt", OPT, b"; " + KERNEL
    )  # answered behind anything that was executed without being asked
    assert executed() == ["opt", "opt"]


def test_what_fails_ahead_is_told_when_it_is_asked_for(started: list[str]) -> None:
    for data in (
        KERNEL.replace(b"%w = mul", b'call void asm sideeffect "s_nonsense", ""()\n %w = mul'),
        LATER_ABORTS,
    ):
        started.clear()
        first, second = both(data)
        assert first == by_program("opt", OPT, data)
        expected = by_program("llc", LLC, first.stdout)
        assert expected.returncode
        assert second.returncode == expected.returncode
        assert second.stderr.splitlines()[:1] == expected.stderr.splitlines()[:1]
        assert started == ["llc"]
    started.clear()
    assert both(KERNEL)[1].returncode == 0
    assert started == []


def test_what_hangs_ahead_harms_nobody_else(
    started: list[str], executed: Callable[[], list[str]]
) -> None:
    """A request that comes behind it is executed by its program; the one itself is not."""
    opt, llc = toolchain.find_program("opt"), toolchain.find_program("llc")
    slow = KERNEL.replace(b"@k", b"@slow")
    large = b";" * (1 << 20) + KERNEL  # it does not fit into the pipe
    for data in (KERNEL, large):
        with prefetch.Programs() as programs:
            programs.start([(opt, OPT), (llc, LLC)])
            prefetch.run(opt, OPT, slow)
        started.clear()
        with process.limited(0.5):
            assert ask("opt", OPT, data) == by_program("opt", OPT, data)
        assert started == ["opt"]
        assert client._worker is None
    with process.limited(0.5), pytest.raises(process.TimedOut, match=r"llc did not finish within"):
        both(slow)


def test_threads_with_what_follows(started: list[str]) -> None:
    found: dict[bytes, tuple[Done, Done]] = {}
    inputs = [KERNEL.replace(b"@k", f"@k{number}".encode()) for number in range(12)]

    def work(data: bytes) -> None:
        found[data] = both(data)

    threads = [threading.Thread(target=work, args=(data,)) for data in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for data in inputs:
        first, second = found[data]
        assert first == by_program("opt", OPT, data)
        assert second == by_program("llc", LLC, first.stdout)


def test_the_heap_stays_between_requests(started: list[str]) -> None:
    """Page faults of the same request, again and again; each takes more than a hundred if the
    memory was given back to the system. The kernel takes pages back too, if others need memory: one
    of three attempts must be without that."""
    both(KERNEL)

    def faults() -> int:
        with open(f"/proc/{worker().pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[7])

    def of_five() -> int:
        before = faults()
        for _ in range(5):
            both(KERNEL)
        return faults() - before

    of_five()
    assert min(of_five() for _ in range(3)) < 5 * 50
