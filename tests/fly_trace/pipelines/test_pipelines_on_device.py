"""Rings of buffers in loops over tiles, and roles of warps: results are NumPy's, in strict mode."""

from __future__ import annotations

import numpy as np
import pytest
from fly_run.devices.options import STRICT

from . import ring_kernels as kernels

TARGETS = ("sm_80", "sm_90a", "gfx942", "gfx1201", "gfx1250")
RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv(STRICT, "1")


def check(target, monkeypatch, dtype, shape, tile, **options) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    x = RANDOM.integers(-8, 8, shape).astype(dtype)
    y = np.full(shape[:2], 99, "f4")
    kernels.tiles(x, y, tile, **options)
    np.testing.assert_array_equal(y, x.sum(axis=2, dtype="f4"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_over_tiles(target, monkeypatch):
    """More tiles than blocks; rows and columns beyond the tensor; steps that are no multiple of the
    stages, so that each tile begins with another buffer."""
    check(target, monkeypatch, "f2", (5, 70, 200), (128, 64))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "gfx942", "gfx1250"])
def test_fewer_steps_than_stages(target, monkeypatch):
    check(target, monkeypatch, "f2", (3, 64, 64), (64, 64), stages=4)


# Rows of 32, 64, 128 and 256 bytes, and of 48, which no swizzle fits; tiles of less than 1024
# bytes, and with fewer pieces than threads.
FORMS = [("f4", (64, 8)), ("f2", (96, 32)), ("i1", (40, 128)), ("f4", (32, 64)), ("f2", (8, 24))]


@pytest.mark.parametrize(("dtype", "tile"), FORMS)
@pytest.mark.parametrize("target", ["sm_80", "gfx1201", "gfx1250"])
def test_forms_of_tiles(target, dtype, tile, monkeypatch):
    check(target, monkeypatch, dtype, (3, tile[0] - 3, 3 * tile[1]), tile)


@pytest.mark.parametrize(("dtype", "tile"), [FORMS[0], FORMS[1], FORMS[4]])
def test_forms_of_tiles_by_tma(dtype, tile, monkeypatch):
    check("sm_90a", monkeypatch, dtype, (3, tile[0] - 3, 3 * tile[1]), tile)


def test_a_loop_of_ones_own_that_fills(monkeypatch):
    check("sm_90a", monkeypatch, "f2", (5, 70, 200), (128, 64), own_loop=True)


def test_hopper_without_a_warp_group_that_copies(monkeypatch):
    check("sm_90a", monkeypatch, "f2", (3, 70, 200), (128, 64), tensors=True)


@pytest.mark.parametrize("target", ["sm_80", "gfx942", "gfx1250"])
def test_rows_at_any_address(target, monkeypatch):
    check(target, monkeypatch, "f2", (2, 20, 75), (32, 32))


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_columns_that_are_adjacent(target, monkeypatch):
    """Rows of the tensor are not, so that elements are copied one by one."""
    monkeypatch.setenv("FLY_TARGET", target)
    x = RANDOM.integers(-8, 8, (2, 64, 40)).astype("f2").transpose(0, 2, 1)
    y = np.zeros(x.shape[:2], "f4")
    kernels.tiles(x, y, (64, 32))
    np.testing.assert_array_equal(y, x.sum(axis=2, dtype="f4"))


def test_products_of_warp_groups(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    a, b = [RANDOM.standard_normal((rows, 200)).astype("f2") for rows in (256, 64)]
    c = np.zeros((256, 64), "f4")
    kernels.wgmma(a, b, c)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8").T, atol=1e-3)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_roles_and_their_barriers(target, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    x, y = np.arange(384, dtype="f4"), np.zeros(384, "f4")
    kernels.roles(x, y)
    held = x[128:] + np.repeat([0, 1], 128)
    np.testing.assert_array_equal(y, np.concatenate([2 * x[:128], held[::-1]]))
