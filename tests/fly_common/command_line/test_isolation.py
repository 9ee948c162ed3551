"""A tool whose work crashes ends with an error line of its own, and nothing else changes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A tool: it reads, works in a child, and writes. `how` is what its work does.
TOOL = """
import os, signal, sys, time
from fly_common import filter
from fly_common.errors import InputError, UsageError
from fly_common.command_line.isolation import isolate

def work(data, name):
    isolate("Crasher", name)
    exec(sys.argv[1])
    return data.upper()

def command(tool, words):
    filter.stage("tool", None, work, output=None, suffix=".txt")
    return 0

filter.run(command, "tool")
"""


@pytest.fixture
def run(tmp_path):
    def ran(how: str, program: str = TOOL, **environment: str):
        surroundings = {**os.environ, "FLY_CACHE_DIR": str(tmp_path / "cache")}
        surroundings.pop("FLY_DEBUG", None)
        return subprocess.run(
            [sys.executable, "-c", program, how],
            input=b"input\n",
            capture_output=True,
            env=surroundings | environment,
            timeout=30,
        )

    return ran


def test_sound_work_is_as_without_a_child(run):
    done = run("pass")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"INPUT\n", b"")


def test_a_crash_is_an_error_line_and_the_input_is_kept(run, tmp_path):
    done = run("os.kill(os.getpid(), signal.SIGSEGV)")
    first, _, reproduce = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (1, b"")
    assert first == "tool: error: <stdin>: Crasher crashed on this input (signal 11)"
    kept = reproduce.strip().removeprefix("reproduce: tool ")
    assert Path(kept).read_bytes() == b"input\n"


def test_what_it_said_before_it_crashed_is_quoted_on_that_line(run):
    said = 'loc("-":1:1): error: bad \\x1b[31m ' + "x" * 500 + "\\nStack dump:\\n1. more\\n"
    done = run(f"os.write(2, {said.encode()!r}.decode('unicode_escape').encode()); os.abort()")
    first = done.stderr.decode().splitlines()[0]
    assert "(signal 6): bad ?[31m xxx" in first
    assert first.endswith("x…")
    assert len(first) < 300
    assert b"Stack dump" not in done.stderr


def test_what_it_said_in_success_is_passed_on(run):
    done = run("os.write(2, b'a remark\\n')")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"INPUT\n", b"a remark\n")


@pytest.mark.parametrize(("kind", "code"), [("InputError", 1), ("UsageError", 2)])
def test_errors_and_their_exit_codes_come_through(run, kind, code):
    done = run(f"raise {kind}('odd')")
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.startswith(b"tool: error: odd\n")


def test_exit_codes_come_through_where_children_are_not_waited_for(run):
    ignoring = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" + TOOL
    assert run("raise InputError('odd')", ignoring).returncode == 1
    done = run("os.kill(os.getpid(), signal.SIGSEGV)", ignoring)
    assert done.returncode == 1
    assert done.stderr.startswith(b"tool: error: <stdin>: Crasher crashed on this input\n")


def test_one_that_the_system_kills_lacks_memory(run):
    done = run("os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 3
    assert done.stderr.startswith(b"tool: error: Crasher was killed (signal 9)\n")


def test_a_debugger_sees_the_crash(run):
    assert run("os.kill(os.getpid(), signal.SIGSEGV)", FLY_DEBUG="1").returncode == -11


def test_standard_error_may_be_closed(run):
    closed = "import os, sys; os.close(2); sys.stderr = None\n" + TOOL
    assert run("pass", closed).stdout == b"INPUT\n"
    assert run("os.abort()", closed).returncode == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_the_child_goes_with_its_parent(tmp_path, how):
    place = tmp_path / "pid"
    work = (
        f"open({str(place)!r} + '.new', 'w').write(str(os.getpid()));"
        f"os.rename({str(place)!r} + '.new', {str(place)!r}); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", TOOL, work], stdin=subprocess.DEVNULL)
    while not place.exists():
        time.sleep(0.01)
    child = int(place.read_text())
    assert child != parent.pid
    parent.send_signal(how)
    assert parent.wait(10) == (130 if how == signal.SIGINT else -how)
    for _ in range(1000):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            return  # it ended; nobody waits for orphans in this container
        time.sleep(0.01)
    pytest.fail("the child goes on without its parent")
