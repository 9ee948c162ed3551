"""The examples for Hopper on the device cpu: clusters that share rows, dependent launches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from examples.hopper.cluster_softmax import cluster_softmax
from examples.hopper.dependent_launch import rms_norm

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import check
from hopper_cases import rms_norm_case, softmax_case


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")


@pytest.mark.parametrize("shape", [(3, 1), (2, 7), (2, 1000), (1, 4099), (2, 65536)])
def test_a_cluster_shares_a_row(shape):
    case = softmax_case(*shape)
    arguments = case.make()
    cluster_softmax(**arguments)
    check(case, arguments, case.expect(arguments))


@pytest.mark.parametrize("shape", [(1, 1), (5, 300), (3, 2048)])
def test_a_dependent_launch(shape):
    case = rms_norm_case(*shape)
    arguments = case.make()
    rms_norm(**arguments)
    check(case, arguments, case.expect(arguments))


def test_only_the_kernel_that_waits_is_dependent():
    compiled = rms_norm.compile()
    assert {name: kernel.dependent for name, kernel in compiled.kernels.items()} == {
        "squares_kernel": False,
        "scale_kernel": True,
    }
    ptx = compiled.ir("ptx")
    assert "griddepcontrol.launch_dependents;" in ptx
    # The weights are loaded before the wait, and what the first kernel writes behind it.
    before, after = ptx[ptx.index(".entry scale_kernel") :].split("griddepcontrol.wait;")
    assert before.count("ld.global") == 2
    assert after.count("ld.global") == 1
