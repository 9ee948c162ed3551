"""`--strict` of the device `cpu`: races on shared memory, each planted in a kernel that is right
without it, and what looks like one and is none."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault
from fly_run.devices.options import STRICT

sys.path.insert(0, str(Path(__file__).parent))
import racing_kernels as kernels

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv(STRICT, "1")


def on(target: str, monkeypatch) -> None:
    monkeypatch.setenv("FLY_TARGET", target)


def ring(misuse: str) -> tuple[np.ndarray, np.ndarray]:
    x = RANDOM.integers(-4, 4, (kernels.ROWS, kernels.STEPS * kernels.COLUMNS)).astype("f2")
    y = np.zeros(kernels.ROWS, "f4")
    kernels.ring(x, y, misuse)
    return x, y


TARGETS = ("sm_80", "sm_90a", "gfx942", "gfx1250")


@pytest.mark.parametrize("target", TARGETS)
def test_a_ring_that_is_used_well(target, monkeypatch):
    on(target, monkeypatch)
    x, y = ring("")
    np.testing.assert_array_equal(y, x.sum(axis=1, dtype="f4"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_slot_that_is_read_after_the_next_one_came(target, monkeypatch):
    on(target, monkeypatch)
    with pytest.raises(Fault, match=r"race|before its load|before the copy"):
        ring("after the next")


def test_a_slot_that_is_read_after_its_release(monkeypatch):
    on("sm_90a", monkeypatch)
    with pytest.raises(Fault, match=r"race: this (read|write) .* have no order"):
        ring("after release")


def test_a_missing_release(monkeypatch):
    on("sm_90a", monkeypatch)
    with pytest.raises(Fault, match=r"nothing can end the phase of parity"):
        ring("no release")


def test_a_missing_copy(monkeypatch):
    on("sm_90a", monkeypatch)
    with pytest.raises(Fault, match=r"nothing can end the phase of parity 0"):
        ring("half a slot")


def test_a_wrong_phase(monkeypatch):
    on("sm_90a", monkeypatch)
    x = RANDOM.standard_normal((64, 64)).astype("f2")
    y = np.zeros(64, "f2")
    kernels.phase(x, y, 0)
    np.testing.assert_array_equal(y, x[:, 1])
    with pytest.raises(Fault, match=r"race: this read .* and the write before it"):
        kernels.phase(x, y, 1)


@pytest.mark.parametrize("form", ["stores", "by halves", "copies"])
def test_values_that_are_handed_over(form, monkeypatch):
    on("sm_80", monkeypatch)
    x, y = RANDOM.standard_normal(64).astype("f4"), np.zeros(64, "f4")
    kernels.exchange(x, y, form)
    np.testing.assert_allclose(y, 3 * np.roll(x, 32), rtol=1e-6)


@pytest.mark.parametrize("form", ["one barrier", "no wait"])
def test_a_missing_barrier_and_a_missing_wait(form, monkeypatch):
    on("sm_80", monkeypatch)
    x, y = RANDOM.standard_normal(64).astype("f4"), np.zeros(64, "f4")
    with pytest.raises(Fault, match=r"race: this"):
        kernels.exchange(x, y, form)


def test_products_and_their_buffers(monkeypatch):
    on("sm_90a", monkeypatch)
    a, b = [RANDOM.standard_normal((64, 320)).astype("f2") for _ in range(2)]
    c = np.zeros((64, 64), "f4")
    kernels.products(a, b, c, "")
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8").T, atol=1e-3)
    with pytest.raises(Fault, match=r"race: this write .* 'wgmma'"):
        kernels.products(a, b, c, "no wait")


def test_stores_by_tma_and_their_buffers(monkeypatch):
    on("sm_90a", monkeypatch)
    y = np.zeros((96, 32), "f4")
    kernels.stores(y, 0)
    np.testing.assert_array_equal(y, np.repeat(np.arange(3, dtype="f4"), 32)[:, None] + 0 * y)
    with pytest.raises(Fault, match=r"race: this write .* and the read before it"):
        kernels.stores(y, 1)
