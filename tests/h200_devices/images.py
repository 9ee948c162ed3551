"""The images that `h200_devices.carry` compiled, in the folder that H200_IMAGES names: with host
arrays, with tensors on the GPU, and by native launchers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fly.call.compiled import Compiled
from fly.call.loading import load
from h200_devices.on_tensors import has_native

VARIABLE = "H200_IMAGES"


def _checks() -> dict[str, Callable[[], str]]:
    """A check for each case of the folder."""
    folder = Path(os.environ.get(VARIABLE) or "/nonexistent")
    if not (folder / "cases.json").exists():
        return {}
    document = json.loads((folder / "cases.json").read_text())
    return {f"example {case['name']}": _check(folder, case) for case in document["cases"]}


def _check(folder: Path, case: dict[str, Any]) -> Callable[[], str]:
    def run() -> str:
        return example(folder, case)

    return run


def example(folder: Path, case: dict[str, Any]) -> str:
    compiled = load(str(folder / f"{case['name']}.image"))
    with np.load(folder / f"{case['name']}.npz") as held:
        arrays = {name: held[name] for name in held.files}
    expected = {name[1:]: array for name, array in arrays.items() if name.startswith("=")}
    given = {name: array for name, array in arrays.items() if not name.startswith("=")}
    told = []
    for way in ("host arrays", "tensors", "native"):
        if way == "native" and not has_native():
            told.append("native not run: llvmlite is not installed")
            continue
        values = {name: _value(array, way != "host arrays") for name, array in given.items()}
        results = _run(compiled, values, way)
        torch.cuda.synchronize()
        worst = max(
            _compare(_found(name, values, results, case), array, case, f"{way}, {name}")
            for name, array in expected.items()
        )
        told.append(f"{way} {worst:.1e}")
    return ", ".join(told)


def _value(array: np.ndarray, on_gpu: bool) -> Any:
    if array.ndim == 0:
        return array.item()
    copy = array.copy()
    if not on_gpu:
        return copy
    if copy.dtype == np.uint16:  # the bits of bf16
        return torch.from_numpy(copy.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(copy).cuda()


def _run(compiled: Compiled, values: Mapping[str, Any], way: str) -> Any:
    if way != "native":
        return compiled.run(values).results
    names = [name for name in compiled.parameter_names if name in values]
    given = [values[name] for name in names]
    found = compiled.native(given).call(*given)
    assert found is not NotImplemented
    return found


def _found(name: str, values: Mapping[str, Any], results: Any, case: dict[str, Any]) -> np.ndarray:
    """An array after the run: an argument, or what the program returned, one or several."""
    if name in values:
        array = values[name]
    else:
        array = results[case["returns"].index(name)] if isinstance(results, tuple) else results
    if isinstance(array, torch.Tensor):
        is_bf16 = array.dtype == torch.bfloat16
        array = array.view(torch.int16).cpu().numpy() if is_bf16 else array.cpu().numpy()
        return array.view(np.uint16) if is_bf16 else array
    return array


def _compare(found: np.ndarray, expected: np.ndarray, case: dict[str, Any], what: str) -> float:
    """The greatest difference, relative to the greatest expected number. AssertionError beyond the
    case's bounds."""
    if case["rtol"] == case["atol"] == 0:
        assert np.array_equal(found, expected.astype(found.dtype)), what
        return 0.0
    if found.dtype == np.uint16:
        found = (found.astype(np.uint32) << 16).view(np.float32)
    if expected.dtype == np.uint16:
        expected = (expected.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(found, expected, case["rtol"], case["atol"], err_msg=what)
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


CHECKS = _checks()
