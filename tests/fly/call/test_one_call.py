"""What a call that compiles does beside LLVM's work: it starts no program, and Python's collector
runs while LLVM does."""

import gc
import importlib
import os
from pathlib import Path

import pytest
from fly_common.programs.llvm_worker import client

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def softmax(monkeypatch):
    """An example that was compiled before, so that what a process does once is done."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("FLY_CACHE", "off")
    monkeypatch.setenv("FLY_LLVM_IN_PROCESS", "1")
    row_softmax = importlib.import_module("row_softmax").row_softmax
    row_softmax._kept.clear()
    row_softmax.compile(target="gfx942")
    row_softmax._kept.clear()
    yield row_softmax
    row_softmax._kept.clear()


def test_it_starts_no_program(softmax, monkeypatch):
    assert client._worker is not None

    def started(program, *_, **__):
        pytest.fail(f"{program} was started")

    monkeypatch.setattr(os, "posix_spawn", started)
    monkeypatch.setattr("subprocess.Popen", started)
    assert softmax.compile(target="gfx942").data


def test_the_collector_runs_before_llvm_is_done(softmax, monkeypatch):
    events = []
    receive = client.Worker.receive

    def received(self, deadline):
        events.append("LLVM")
        return receive(self, deadline)

    def note(phase, info):
        if phase == "start":
            events.append("collector")

    monkeypatch.setattr(client.Worker, "receive", received)
    gc.collect()
    gc.callbacks.append(note)
    try:
        softmax.compile(target="gfx942")
    finally:
        gc.callbacks.remove(note)
    first = events.index("collector")
    assert "LLVM" in events[first:], events
