"""What `h200_kernels` writes for a machine with a GPU: it is whole, and `run.py` compares it."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest
from h200_kernels import __main__ as writing
from h200_kernels import run
from h200_kernels.cases import cases


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("carried")
    writing.main(str(made))
    return made


class Driver:
    """Memory on the host, and launches that compute nothing."""

    def __init__(self):
        self.held, self.launched = [], []

    def allocate(self, size):
        self.held.append((ctypes.c_char * max(size, 16))())
        return ctypes.c_uint64(ctypes.addressof(self.held[-1]))

    def __call__(self, name, *arguments):
        if name == "cuMemcpyHtoD_v2":
            ctypes.memmove(arguments[0].value, arguments[1], arguments[2].value)
        elif name == "cuMemcpyDtoH_v2":
            ctypes.memmove(arguments[0], arguments[1].value, arguments[2].value)
        elif name == "cuModuleGetFunction":
            self.launched.append(arguments[2])


contents = run.contents


def results(folder, name, one):
    """What the arrays would hold after a right run."""
    array = contents(folder, name, one)
    if not one["expected"]:
        return array
    expected = np.load(folder / f"{name}.{one['expected']}.expected.npy")
    assert expected.shape == array.shape
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(expected.astype(array.dtype))


@pytest.mark.parametrize("name", [case.entry for case in cases()])
def test_results_are_compared_with_what_is_expected(folder, name, monkeypatch):
    manifest = json.loads((folder / "manifest.json").read_text())
    (case,) = (one for one in manifest["cases"] if one["name"] == name)
    driver = Driver()
    assert run.run(driver, folder, case, True), "nothing was computed"
    assert len(driver.launched) == len(case["launches"]) > 0
    monkeypatch.setattr(run, "contents", results)
    assert run.run(driver, folder, case, True) == ""


def test_results_and_temporaries_are_allocated(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    found = {one["name"]: one for one in manifest["cases"]}
    made = {
        name: [(a["shape"], a["dtype"], a["expected"]) for a in case["arrays"] if "shape" in a]
        for name, case in found.items()
    }
    assert made["vector_add"] == [([5003], "<f4", "returns")]
    assert made["gray_scott"] == [([33, 47], "<f4", None)] * 2
    assert made["saxpy"] == []
