"""Devices in the records of backends: by name, and as what "auto" means."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from backends import clean_registry, template  # noqa: F401
from fly_backend import registry as backends
from fly_backend.amd import ROCM
from fly_common.errors import UsageError
from fly_common.record import replace
from fly_run.devices import registry


def make(target: str, options: object) -> SimpleNamespace:
    return SimpleNamespace(target=target, options=options)


@pytest.fixture
def mine(clean_registry, monkeypatch):  # noqa: F811
    """A backend with two devices, in use."""
    monkeypatch.setattr(registry, "resolve", {"here:make": make}.__getitem__)
    made = replace(ROCM, name="mine", devices={"first": "here:make", "second": "here:make"})
    backends.register("mine", lambda: made)
    return backends.find("mine")


def test_a_device_of_a_backend_in_use(mine):
    opened = registry.open_device("second", "gfx942")
    assert opened.target == "gfx942"


def test_it_is_listed_once_the_backend_is_used(mine):
    with pytest.raises(UsageError) as caught:
        registry.open_device("third", "gfx942")
    assert "first, second" in (caught.value.hint or "")
    backends._found.pop("mine")
    with pytest.raises(UsageError) as caught:
        registry.open_device("first", "gfx942")
    assert "first" not in (caught.value.hint or "")


def test_auto_is_the_first_device_of_a_backend_from_outside(mine):
    assert registry.of_backend("auto", "mine") == "first"
    assert registry.of_backend("emulator", "mine") == "emulator"
    assert registry.of_backend("auto", "rocm") == "auto"
    assert registry.of_backend("auto", None) == "auto"


def test_a_backend_without_devices_leaves_auto_alone(clean_registry):  # noqa: F811
    backends.register("bare", lambda: replace(ROCM, name="bare", devices={}))
    assert registry.of_backend("auto", "bare") == "auto"
