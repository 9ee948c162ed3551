"""Sweeps that are interrupted, killed, run twice at once, or find nothing; and what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError, MissingError

import fly
from fly.tune import builders, sweep
from fly.tune.function import TunedFunction

from . import planted
from .planted import blocks, scale

BLOCKS = (64, 128, 256, 512)
HERE = Path(__file__).parent

# Tunes, and writes a line to LOG for each measurement before it is made. ACT is what happens then.
PROGRAM = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import fly
import planted
from fly.tune import builders, sweep

def act(number): {act}

measure, made = sweep.measure, 0
def logged(*arguments):
    global made
    act(made)
    made += 1
    with open(sys.argv[2], "a") as file:
        print(os.getpid(), file=file)
    return measure(*arguments)
sweep.measure = logged
new = builders.Builders._new
def started(self):
    worker = new(self)
    print(worker.pid, flush=True)
    return worker
builders.Builders._new = started
builders.available = lambda: 0 if {here} else 2
tuned = fly.autotune(planted.blocks(*{blocks}), key=["n"])(planted.scale)
tuned.tune(np.ones(256, np.float32))
print("done", flush=True)
"""


@pytest.fixture
def x() -> np.ndarray:
    return np.ones(256, np.float32)


@pytest.fixture
def tuned() -> TunedFunction:
    return fly.autotune(blocks(*BLOCKS), key=["n"])(scale)


def started(log: Path, act: str = "pass", here: bool = True) -> subprocess.Popen[str]:
    text = PROGRAM.format(act=act, here=here, blocks=BLOCKS)
    words = [sys.executable, "-c", text, str(HERE), str(log)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def alive(pid: int) -> bool:
    """Whether a process runs; not if it is a zombie, which has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("shared_handlers")
def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    log = tmp_path / "log"
    killed = started(log, "os.kill(os.getpid(), signal.SIGKILL) if number == 2 else None")
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert len(log.read_text().split()) == 2
    again = started(log)
    assert "done" in again.communicate(timeout=120)[0]
    assert len(log.read_text().split()) == len(BLOCKS)


@pytest.mark.usefixtures("shared_handlers")
def test_two_processes_at_once_measure_once(tmp_path):
    log = tmp_path / "log"
    both = [started(log, "time.sleep(0.3)") for _ in range(2)]
    for one in both:
        out, err = one.communicate(timeout=120)
        assert "done" in out, err
    assert len(log.read_text().split()) == len(BLOCKS)


@pytest.mark.usefixtures("shared_handlers")
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_application(tmp_path, way):
    log = tmp_path / "log"
    application = started(log, f"os.kill(os.getpid(), {int(way)})", here=False)
    out, _ = application.communicate(timeout=120)
    workers = list(map(int, out.split()))
    assert workers
    deadline = time.monotonic() + 60
    while any(map(alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.usefixtures("shared_handlers")
def test_configurations_are_compiled_in_workers(tuned, x, monkeypatch):
    """The parent's chain finds all results in the store."""
    monkeypatch.setattr(builders, "available", lambda: 2)
    ran: list[bool] = []
    run = sweep.run

    def looked(chain, module):
        ran.append(builders.stored(chain, module))
        return run(chain, module)

    monkeypatch.setattr(sweep, "run", looked)
    tuned.tune(x)
    assert ran == [True] * len(BLOCKS)


@pytest.mark.usefixtures("shared_handlers")
def test_a_worker_that_dies_is_no_loss(tuned, x, monkeypatch):
    monkeypatch.setattr(builders, "available", lambda: 2)
    new = builders.Builders._new

    def dying(self):
        worker = new(self)
        os.kill(worker.pid, signal.SIGKILL)
        return worker

    monkeypatch.setattr(builders.Builders, "_new", dying)
    assert tuned.tune(x) in tuned.configs


def test_an_interrupt_keeps_what_is_known(tuned, x, measured, monkeypatch, capsys):
    measure = sweep.measure

    def interrupted(*arguments):
        if len(measured) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)  # the interrupt ends it
        return measure(*arguments)

    with monkeypatch.context() as during:
        during.setattr(sweep, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tuned.tune(x)
    assert capsys.readouterr().err == (
        "fly: warning: tuning scale was interrupted; 2 of 4 measurements are kept\n"
    )
    tuned(x)  # right without a winner
    assert (x == 2).all()
    tuned.tune(x)
    assert len(measured) == len(BLOCKS)


def test_arguments_are_as_after_one_call(tuned, x, monkeypatch):
    monkeypatch.setenv("FLY_AUTOTUNE", "1")
    apart = np.arange(1024, dtype=np.float32).reshape(256, 4)[:, 1]
    before = apart.copy()
    tuned(x)
    tuned(apart)
    assert (x == 2).all()
    np.testing.assert_array_equal(apart, 2 * before)


def test_nothing_is_measured_twice(tuned, x, measured, monkeypatch):
    tuned.tune(x)
    sweep._measured.clear()
    tuned.tune(x)
    assert len(measured) == len(BLOCKS)
    fly.autotune(blocks(*BLOCKS, 1024), key=["n"])(scale).tune(x)
    assert len(measured) == len(BLOCKS) + 1
    fly.autotune(blocks(*BLOCKS), key=["n // 7"])(scale).tune(x)  # another key
    assert len(measured) == 2 * len(BLOCKS) + 1


def test_without_a_store(tuned, x, measured, monkeypatch):
    monkeypatch.setenv("FLY_CACHE", "off")
    assert tuned.tune(x) == tuned.tune(x)
    assert len(measured) == len(BLOCKS)
    assert tuned.library.stored is None


def test_what_a_configuration_can_not_do_is_not_fatal(x, measured):
    configs = [*blocks(4096), fly.Config(BLOCK="a"), *blocks(64)]
    tuned = fly.autotune(configs, key=["n"])(scale)
    assert tuned.tune(x) == fly.Config(BLOCK=64)
    report = tuned.report(x)
    assert "BLOCK=4096: can't be used: the block has 4096 work items" in report
    assert "BLOCK=a: can't be used: " in report


def test_all_of_them_fail(x):
    tuned = fly.autotune(blocks(2048, 4096))(scale)
    with pytest.raises(InputError) as caught:
        tuned.tune(x)
    assert str(caught.value) == (
        "none of the configurations can be used\n"
        "  Config(BLOCK=2048): the block has 2048 work items, but the maximum is 1024\n"
        "  Config(BLOCK=4096): the block has 4096 work items, but the maximum is 1024"
    )


def test_a_fault_is_a_measurement(x, measured):
    configs = [fly.Config(PAST=1 << 30), fly.Config(PAST=0)]
    tuned = fly.autotune(configs)(planted.beyond)
    assert tuned.tune(x) == configs[1]
    assert "PAST=1073741824: can't be used: memory fault: 4 bytes at 0x" in tuned.report(x)
    assert len(measured) == 2


def test_what_the_environment_lacks_is_no_measurement(tuned, x, monkeypatch):
    def lacking(*_):
        raise MissingError("there is no memory")

    with monkeypatch.context() as during:
        during.setattr(sweep, "measure", lacking)
        with pytest.raises(MissingError, match="there is no memory"):
            tuned.tune(x)
    assert tuned.tune(x) in tuned.configs


def test_prune(x, measured):
    asked = []

    def prune(configs, arguments):
        asked.append((configs, dict(arguments)))
        return configs[1:3]

    tuned = fly.autotune(blocks(*BLOCKS), prune=prune)(scale)
    assert tuned.tune(x) in blocks(*BLOCKS)[1:3]
    assert len(measured) == 2
    ((configs, arguments),) = asked
    assert configs == blocks(*BLOCKS)
    assert list(arguments) == ["X"]
    assert arguments["X"] is x


@pytest.mark.parametrize("kept", [[], None, [fly.Config(BLOCK=3)]])
def test_prune_returns_some_of_them(x, kept):
    tuned = fly.autotune(blocks(64, 128), prune=lambda configs, arguments: kept)(scale)
    with pytest.raises(Exception, match=r"prune= of scale returned .*\n.*some of the configurat"):
        tuned.tune(x)
