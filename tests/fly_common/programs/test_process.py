"""Running programs: what they read and print, how they end, what they inherit."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from fly_common.errors import UsageError
from fly_common.programs import process

SH = "/bin/sh"


def sh(script: str, data: bytes = b"", pass_fds=()) -> process.Done:
    return process.run(SH, ["-c", script], data, pass_fds)


def test_streams_and_status():
    done = sh("cat; echo oh >&2; exit 7", b"in\0out")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"in\0out", b"oh\n")


def test_much_in_and_much_out_at_once():
    data = os.urandom(1 << 20) * 8
    assert sh("cat; cat /dev/stdin >&2", data).stdout == data
    assert len(sh("head -c 5000000 /dev/zero >&2; exit 0", data).stderr) == 5_000_000


def test_a_signal_is_told():
    assert sh("kill -SEGV $$").returncode == -signal.SIGSEGV


def test_what_is_no_program(tmp_path):
    with pytest.raises(FileNotFoundError):
        process.run(str(tmp_path / "gone"), [])
    with pytest.raises(PermissionError):
        process.run(str(tmp_path), [])


def test_only_what_is_passed_on_is_inherited():
    one, other = process.in_memory(b"one"), process.in_memory(b"other")
    try:
        script = f"cat /proc/self/fd/{one}; cat /proc/self/fd/{other}"
        done = sh(script, pass_fds=[one])
        assert (done.returncode, done.stdout) == (1, b"one")
    finally:
        os.close(one)
        os.close(other)


def test_nothing_stays_open():
    before = set(os.listdir("/proc/self/fd"))
    sh("exit 0")
    with pytest.raises(FileNotFoundError):
        process.run("/nonexistent", [])
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_of_ours_do_not_matter(closed, tmp_path):
    """Their numbers are free, and files in memory must not be taken for them."""
    program = (
        "import os, sys\n"
        "from fly_common.programs import process\n"
        "done = process.run('/bin/sh', ['-c', 'cat; echo x >&2'], b'data')\n"
        "open(sys.argv[1], 'w').write(repr((done.stdout, done.stderr)))"
    )
    out = tmp_path / "out"
    subprocess.run(
        [sys.executable, "-c", program, str(out)],
        preexec_fn=lambda: [os.close(one) for one in closed],
        check=True,
    )
    assert out.read_text() == repr((b"data", b"x\n"))


def test_an_interrupt_ends_the_program(tmp_path):
    script = f"echo $$ > {tmp_path / 'pid'}; exec sleep 60"
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sh(script)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_does_not_end_is_killed(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_TIMEOUT", "0.2")
    with pytest.raises(process.TimedOut) as caught:
        sh(f"echo $$ > {tmp_path / 'pid'}; exec sleep 60")
    assert str(caught.value) == (
        "sh did not finish within 0.2 s and was killed\n"
        "  either the input makes it run forever, or it needs more time: set FLY_TIMEOUT=SECONDS"
        " (or --timeout, if the tool has it)"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_limit_without_pidfd(monkeypatch):
    def unknown(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", unknown)
    assert sh("sleep 0.05; echo done").stdout == b"done\n"
    with process.limited(0.2), pytest.raises(process.TimedOut, match="did not finish within"):
        sh("sleep 60")


def test_where_the_limit_comes_from(monkeypatch):
    monkeypatch.delenv("FLY_TIMEOUT", raising=False)
    assert process.time_limit() == process.TIME_LIMIT == 300
    monkeypatch.setenv("FLY_TIMEOUT", "20")
    with process.limited(5):
        assert process.time_limit() == 5
        with process.limited(None):
            assert process.time_limit() == 5
    assert process.time_limit() == 20


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan", "inf", "1e7", "9" * 400])
def test_what_is_no_limit(monkeypatch, text):
    monkeypatch.setenv("FLY_TIMEOUT", text)
    with pytest.raises(
        UsageError, match=r"FLY_TIMEOUT=.*: must be a number of seconds above 0"
    ) as caught:
        sh("exit 0")
    assert len(str(caught.value)) < 300


def test_a_program_started_ahead_that_does_not_read_is_killed():
    waiting = process.Waiting(SH, ["-c", "exec sleep 60"])
    with process.limited(0.2), pytest.raises(process.TimedOut):
        waiting.feed(bytes(1 << 20))
    waiting = process.Waiting(SH, ["-c", "sleep 0.1; cat"])
    data = os.urandom(1 << 20)
    assert waiting.feed(data).wait().stdout == data
