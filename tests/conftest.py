"""Configuration and fixtures for all tests."""

import gc
import os
import signal
import tempfile
from pathlib import Path

import long_tests
import pytest
from hypothesis import settings

# A slow machine is not a failure. Examples are deterministic, so that failures are reproducible;
# `--hypothesis-seed=random` explores further.
settings.register_profile("fly", deadline=None, derandomize=True)
settings.load_profile("fly")


def pytest_configure(config: pytest.Config) -> None:
    """Makes tests independent of how they are started: a background job of a script ignores
    interrupts, so a test that interrupts itself would hang; and a cache folder made with a wide
    umask is not used. torch.compile keeps graphs between processes by the names of the operators in
    them, not by what the operators return, so what another version of the code left is not used;
    the processes of one run share a folder. Each image that is linked in process is compared with
    ld.lld's."""
    os.environ.setdefault("FLY_LLVM_IN_PROCESS", "check")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(0o022)
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="fly-inductor-")
        config.add_cleanup(folder.cleanup)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of long_tests.txt, before those with the mark are left out."""
    listed = long_tests.read()
    for item in items:
        if item.nodeid in listed:
            item.add_marker("heavy")


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from walking through 13,000 tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def handlers() -> Path:
    """The emulator's library, in the cache that the test session was started with. Building it
    takes 12 seconds of processor time, so a test with a cache of its own links to it."""
    from fly_run.emulator.engine import library

    return library.load().path
