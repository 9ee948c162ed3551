"""What all the tests share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is not a failure. Examples are the same in each run: a failure that comes and goes
# teaches nobody; `--hypothesis-seed=random` looks further.
settings.register_profile("fly", deadline=None, derandomize=True)
settings.load_profile("fly")


def pytest_configure() -> None:
    """A background job of a script ignores interrupts, and a test that interrupts itself would wait
    for ever; a cache folder that is made with a wide umask is not used. Tests don't depend on how
    they are started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(0o022)


@pytest.fixture(scope="session")
def handlers() -> Path:
    """The emulator's library, in the cache that this test session was started with. To build it
    takes 12 seconds of a processor: a test with a cache of its own links to it."""
    from fly_run.emulator.engine import library

    return library.load().path
