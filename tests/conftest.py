"""What all the tests share."""

import signal

from hypothesis import settings

# A slow machine is not a failure. Examples are the same in each run: a failure that comes and goes
# teaches nobody; `--hypothesis-seed=random` looks further.
settings.register_profile("fly", deadline=None, derandomize=True)
settings.load_profile("fly")


def pytest_configure() -> None:
    """A background job of a script ignores interrupts, and a test that interrupts itself would wait
    for ever: tests don't depend on how they are started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
