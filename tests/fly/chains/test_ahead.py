"""The chain starts the programs of later stages while the first one works."""

import pytest
from fly_common.programs import process
from fly_common.programs.llvm_worker import client
from fly_link.backends.amd import in_process

import fly
import fly.expr as fx

LLVM = {"opt", "llc", "ld.lld"}


@fly.kernel
def one_kernel(A: fx.Tensor):
    A[0] = fx.Float32(1.0)


@fly.jit
def one(A: fx.Tensor[fx.Float32, None]):
    one_kernel(A).launch(grid=1, block=1)


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Two lists: what was started ahead, what was run when its input was there."""
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    one._kept.clear()  # what the test before compiled
    monkeypatch.delenv(in_process.VARIABLE, raising=False)
    monkeypatch.setattr(in_process, "_comments", {})  # as in a new process
    early, late = [], []
    waiting, start = process.Waiting.__init__, process.start

    def wait(self, program, arguments):
        early.append(program.rpartition("/")[2])
        waiting(self, program, arguments)

    def ran(program, arguments, data=b"", pass_fds=()):
        late.append(program.rpartition("/")[2])
        return start(program, arguments, data, pass_fds)

    monkeypatch.setattr(process.Waiting, "__init__", wait)
    monkeypatch.setattr(process, "start", ran)
    return early, late


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_all_three_of_llvms_programs_wait_when_they_are_needed(started, target, monkeypatch):
    monkeypatch.setenv(client.VARIABLE, "0")
    early, late = started
    one.compile(target=target)
    assert sorted(early) == sorted(LLVM)
    assert not LLVM & set(late)


def test_the_worker_takes_the_place_of_two(started):
    early, late = started
    code = one.compile(target="gfx90a").hsaco
    assert early == ["ld.lld"]
    assert not LLVM & set(late)
    again = fly.run(fly.chain("gfx90a"), one.compile(target="gfx90a").ir("mlir").encode())
    assert again == code


def test_the_second_object_needs_no_linker(started):
    early, late = started
    one.compile(target="gfx90a")
    early.clear()
    one.compile(target="gfx942")
    assert early == []
    assert not LLVM & set(late)


def test_what_the_store_has_starts_nothing(started):
    early, _ = started
    mlir = one.compile(target="gfx942").ir("mlir").encode()
    fly.run(fly.chain("gfx942"), mlir)
    early.clear()
    fly.run(fly.chain("gfx942"), mlir)
    assert early == []


def test_the_code_is_that_of_the_pipe(started, monkeypatch):
    from fly_common.programs import prefetch

    made = one.compile(target="gfx942")
    monkeypatch.setattr(prefetch.Programs, "start", lambda self, commands: None)
    monkeypatch.setenv("FLY_CACHE", "off")
    assert fly.run(fly.chain("gfx942"), made.ir("mlir").encode()) == made.hsaco
