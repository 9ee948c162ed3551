"""The better of two configurations is found, on the emulator of CDNA and of RDNA."""

from __future__ import annotations

import numpy as np
import pytest

import fly

from . import planted

TARGETS = ("gfx942", "gfx1100")
RNG = np.random.default_rng(17)


@pytest.fixture(params=TARGETS)
def target(request, monkeypatch) -> str:
    monkeypatch.setenv("FLY_TARGET", request.param)
    return request.param


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_coalesced_loads(target, order):
    x, y = RNG.random((64, 64), np.float32), np.zeros(64, np.float32)
    configs = [fly.Config(ACROSS=across) for across in order]
    tuned = fly.autotune(configs, key=["n"])(planted.sums)
    assert tuned.tune(x, y) == fly.Config(ACROSS=True)
    assert not y.any()  # the function was not called
    tuned(x, y)
    np.testing.assert_allclose(y, x.sum(axis=0, dtype=np.float64), rtol=1e-5)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_bank_conflicts(target, order):
    a, b = RNG.random((32, 32), np.float32), np.zeros((32, 32), np.float32)
    tuned = fly.autotune([fly.Config(PADDING=padding) for padding in order])(planted.turned)
    assert tuned.tune(a, b) == fly.Config(PADDING=1)
    tuned(a, b)
    np.testing.assert_array_equal(b, a.T)


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_barriers(target, order):
    x, y = RNG.random(256, np.float32), np.zeros(256, np.float32)
    tuned = fly.autotune([fly.Config(EACH=each) for each in order])(planted.shifted)
    assert tuned.tune(x, y) == fly.Config(EACH=False)


def test_waves_without_work_are_no_gain(target):
    """With blocks of 512, seven of eight waves do nothing; the others take as long as before."""
    x = np.ones(64, np.float32)
    tuned = fly.autotune(planted.blocks(64, 512), key=["n"])(planted.scale)
    assert tuned.tune(x) == fly.Config(BLOCK=64)


def test_options_of_compilation(target):
    x, y = RNG.random((64, 64), np.float32), np.zeros(64, np.float32)
    configs = [fly.Config(ACROSS=True, opt_level=None), fly.Config(ACROSS=True, opt_level=3)]
    tuned = fly.autotune(configs)(planted.sums)
    assert tuned.tune(x, y) == configs[1]
    assert tuned.compile(x, y).hsaco == planted.sums.compile(x, y, True).hsaco


def test_costs_are_the_same_each_time(target, tmp_path, monkeypatch, handlers):
    """Counts of one machine and another: the files of winners are equal, byte by byte."""
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / handlers.name).symlink_to(handlers)
        monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / name))
        x, y = np.ones((64, 64), np.float32), np.zeros(64, np.float32)
        configs = [fly.Config(ACROSS=across) for across in (False, True)]
        tuned = fly.autotune(configs, key=["n"], file=str(tmp_path / f"{name}.json"))(planted.sums)
        tuned.tune(x, y)
        found.append((tmp_path / f"{name}.json").read_bytes())
    assert found[0] == found[1]
    assert b'"unit": "cycles"' in found[0]
