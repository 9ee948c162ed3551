"""Kernels of the language that use what the examples do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fly_trace.session.load import find_entry, load_file
from h200_kernels.case import Case
from h200_kernels.cases import OWN

GROUPS = str(Path(__file__).with_name("group_kernels.py"))


def compiled(path: str, entry: str):
    return find_entry(load_file(path), path, entry).compile(target="sm_90a")


@pytest.mark.parametrize("case", OWN, ids=[case.entry for case in OWN])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_numpy_s(case: Case):
    values = dict(case.make())
    expected = case.expect(values)
    compiled(str(case.path), case.entry).run(values, device="cpu")
    for name, wanted in expected.items():
        found = values[name]
        if not case.ulp:
            np.testing.assert_allclose(found, wanted, case.rtol, case.atol, err_msg=name)
            continue
        rounded = wanted.astype(np.float32)
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(float), 2.0**-149)
        good = np.abs(found - wanted) <= case.ulp * unit
        good |= (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        assert good.all(), f"{name}: {np.argwhere(~good)[:5]}"


def test_shuffles_within_groups():
    """Each group of lanes shuffles its own values, not only the first one."""
    x, y = np.arange(32, dtype=np.float32), np.zeros((5, 4, 32), np.float32)
    compiled(GROUPS, "groups").run({"X": x, "Y": y}, device="cpu")
    lane = np.arange(32)
    for n, width in enumerate((2, 4, 8, 16, 32)):
        by = 1 + n % 2
        first, place = lane // width * width, lane % width
        expected = (
            np.where((lane ^ by) // width == lane // width, lane ^ by, lane),
            np.where(place >= by, lane - by, lane),
            np.where(place + by < width, lane + by, lane),
            first + by % width,
        )
        np.testing.assert_array_equal(y[n], np.array(expected), err_msg=str(width))
