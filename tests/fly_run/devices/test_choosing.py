"""Which image of a library a device runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fly_common.errors import MissingError
from fly_run.devices import choosing


def images(*targets: str) -> list[Any]:
    return [SimpleNamespace(target=target) for target in targets]


@pytest.fixture
def gpus(monkeypatch):
    """Which targets GPUs of this machine run; what was opened, and closed again."""
    found = SimpleNamespace(runs=set(), opened=[], closed=[])

    def factory(target: str, options: object, *number: object) -> Any:
        if target not in found.runs:
            raise MissingError(f"no device for {target}")
        found.opened.append(target)
        return SimpleNamespace(close=lambda: found.closed.append(target))

    monkeypatch.setattr(choosing, "resolve", lambda reference: factory)
    monkeypatch.setattr(
        choosing, "open_device", lambda name, target, options: factory(target, None)
    )
    return found


def test_auto_takes_the_first_image_that_a_gpu_runs(gpus):
    library = images("gfx942", "sm_80", "sm_90a")
    assert choosing.choose(library, "auto") is library[0]
    gpus.runs = {"sm_80", "sm_90a"}
    assert choosing.choose(library, "auto") is library[1]
    assert gpus.opened == gpus.closed == ["sm_80"]


def test_a_device_takes_the_first_image_that_it_runs(gpus):
    library = images("gfx942", "sm_80", "sm_90a")
    gpus.runs = {"sm_90a"}
    assert choosing.choose(library, "cuda:0") is library[2]
    assert gpus.opened == gpus.closed == ["sm_90a"]
    gpus.runs = set()
    with pytest.raises(MissingError, match="no device for gfx942"):
        choosing.choose(library, "cuda")


def test_one_image_is_taken_as_it_is(gpus):
    library = images("gfx942")
    assert choosing.choose(library, "cuda") is library[0]
    assert not gpus.opened
