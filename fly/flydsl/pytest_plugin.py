"""A plugin of pytest: `pytest -p fly.flydsl.pytest_plugin` runs tests of FlyDSL's programs here.

`import flydsl` imports this package. torch's device `cuda` is the CPU, with streams and events,
unless `--flydsl-gpu` says that the process's own GPU is to be used.
"""

from __future__ import annotations

import importlib.util

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("fly.flydsl").addoption(
        "--flydsl-gpu",
        action="store_true",
        help="leave torch's device cuda alone; by default it is the CPU, for the emulator",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before conftest.py, which may import `flydsl`."""
    from fly.flydsl.install import install

    install()
    if early_config.known_args_namespace.flydsl_gpu or not importlib.util.find_spec("torch"):
        return
    from fly.flydsl import cuda

    cuda.install()
