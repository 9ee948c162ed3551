"""Programs started ahead of their input."""

import os
import threading
import time

import pytest
from fly_common.programs import prefetch, process

CAT = "/bin/cat"


@pytest.fixture
def ran(monkeypatch):
    """The programs that were started when their input was there."""
    found = []
    real = process.start

    def start(program, arguments, data=b"", pass_fds=()):
        found.append(program)
        return real(program, arguments, data, pass_fds)

    monkeypatch.setattr(process, "start", start)
    return found


def children() -> int:
    return sum(pid.isdecimal() and parent(pid) == os.getpid() for pid in os.listdir("/proc"))


def parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def test_who_runs_it_finds_it_waiting(ran):
    data = os.urandom(1 << 20)
    with prefetch.Programs() as coming:
        coming.start([(CAT, ["-"])])
        assert prefetch.run(CAT, ["-"], data).stdout == data
        assert ran == []
        # It was one: the next is started when it is run.
        assert prefetch.run(CAT, ["-"], b"again").stdout == b"again"
        assert ran == [CAT]


def test_other_arguments_are_another_program(ran):
    with prefetch.Programs() as coming:
        coming.start([(CAT, ["-"])])
        assert prefetch.run(CAT, ["-n"], b"x").stdout.split() == [b"1", b"x"]
    assert ran == [CAT]


def test_what_nobody_used_is_gone_after_the_block():
    before = children()
    with prefetch.Programs() as coming:
        coming.start([(CAT, ["-"]), (CAT, ["-"])])
        assert children() == before + 2
    assert children() == before


def test_another_thread_takes_none(ran):
    with prefetch.Programs() as coming:
        coming.start([(CAT, ["-"])])
        thread = threading.Thread(target=lambda: prefetch.run(CAT, ["-"], b"x"))
        thread.start()
        thread.join()
        assert ran == [CAT]


def test_what_can_not_be_started_is_left_to_who_runs_it():
    with prefetch.Programs() as coming:
        coming.start([("/nowhere/program", [])])
        with pytest.raises(FileNotFoundError):
            prefetch.run("/nowhere/program", [], b"")


def test_a_program_that_ends_before_it_has_read_tells_why():
    with prefetch.Programs() as coming:
        coming.start([("/bin/sh", ["-c", "echo no >&2; exit 3"])])
        time.sleep(0.2)
        done = prefetch.run("/bin/sh", ["-c", "echo no >&2; exit 3"], b"x" * (1 << 20))
    assert (done.returncode, done.stderr) == (3, b"no\n")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_holds_no_program_up():
    """The child lives on while its parent's program must see the end of its input."""
    with prefetch.Programs() as coming:
        coming.start([(CAT, ["-"])])
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        try:
            began = time.monotonic()
            assert prefetch.run(CAT, ["-"], b"x").stdout == b"x"
            assert time.monotonic() - began < 30
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)


def test_postponed_work_is_done_while_a_program_runs():
    done = []
    with prefetch.postponing():
        prefetch.postpone(lambda: done.append(1))
        prefetch.postpone(lambda: done.append(2))
        assert done == []
        running = prefetch.start(CAT, ["-"], b"text")
        assert done == [1, 2]
        assert running.wait().stdout == b"text"
        prefetch.postpone(lambda: done.append(3))
    assert done == [1, 2, 3]
    prefetch.postpone(lambda: done.append(4))
    assert done == [1, 2, 3, 4]


def fail() -> None:
    raise ZeroDivisionError


def test_postponed_work_is_done_after_an_error():
    done = []

    def work() -> None:
        with prefetch.postponing():
            prefetch.postpone(lambda: done.append(1))
            fail()

    with pytest.raises(ZeroDivisionError):
        work()
    assert done == [1]


def test_a_program_ends_with_the_error_of_postponed_work():
    def work() -> None:
        with prefetch.postponing():
            prefetch.postpone(fail)
            prefetch.start("/bin/sleep", ["60"], b"")

    before = children()
    with pytest.raises(ZeroDivisionError):
        work()
    assert children() == before
