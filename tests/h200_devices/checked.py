"""The images that `h200_devices.carry_checked` compiled, in the folder that H200_CHECKED names:
each planted defect is found, the examples report nothing and compute the same bytes as without the
plugins, kernels print their lines and fail by their asserts. With host arrays, and with tensors on
the GPU where torch is installed."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fly_common.errors import Fault

from fly.call.loading import load

VARIABLE = "H200_CHECKED"


def _checks() -> dict[str, Callable[[], str]]:
    folder = Path(os.environ.get(VARIABLE) or "/nonexistent")
    if not (folder / "cases.json").exists():
        return {}
    document = json.loads((folder / "cases.json").read_text())
    return {f"checked {case['name']}": _check(folder, case) for case in document["cases"]}


def _check(folder: Path, case: dict[str, Any]) -> Callable[[], str]:
    def run() -> str:
        with np.load(folder / f"{case['name']}.npz") as held:
            values = {name: held[name] for name in held.files}
        ways = ("host arrays", "tensors") if _has_torch() else ("host arrays",)
        work = _said if "printed" in case else _found if case["plugin"] else _same
        return ", ".join(f"{way}: {work(folder, case, values, way)}" for way in ways)

    return run


def _has_torch() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def _given(values: Mapping[str, np.ndarray], way: str) -> dict[str, Any]:
    """Fresh arguments: scalars, arrays, tensors on the GPU."""
    if way == "host arrays":
        return {name: one.item() if one.ndim == 0 else one.copy() for name, one in values.items()}
    from h200_devices.images import _value

    return {name: _value(one, on_gpu=True) for name, one in values.items()}


def _run(image: Path, values: Mapping[str, np.ndarray], way: str) -> list[bytes]:
    """What a program leaves in its arguments and results."""
    given = _given(values, way)
    results = load(str(image)).run(given).results
    every = [*given.values(), *(results if isinstance(results, tuple) else [results])]
    return [_bytes(one) for one in every if hasattr(one, "shape")]


def _bytes(array: Any) -> bytes:
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array).tobytes()
    import torch

    return array.contiguous().view(torch.uint8).cpu().numpy().tobytes()


def _found(folder: Path, case: dict[str, Any], values: Mapping[str, Any], way: str) -> str:
    fault = _fault(folder / f"{case['name']}.image", values, way)
    assert fault is not None, "nothing was reported"
    _, plugin, said = fault.message.partition(f": {case['plugin']}: ")
    assert plugin, fault
    assert fault.place is not None, fault
    assert fault.place.line in case["lines"], fault
    return said[:100]


def _fault(image: Path, values: Mapping[str, np.ndarray], way: str) -> Fault | None:
    try:
        _run(image, values, way)
    except Fault as fault:
        return fault
    return None


def _said(folder: Path, case: dict[str, Any], values: Mapping[str, Any], way: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        fault = _fault(folder / f"{case['name']}.image", values, way)
    assert printed.getvalue().splitlines() == case["printed"], printed.getvalue()
    assert bool(fault) == bool(case["failed"]), fault
    assert case["failed"] in (fault.message if fault else ""), fault
    return f"{len(case['printed'])} lines, {fault.message if fault else 'no fault'}"


def _same(folder: Path, case: dict[str, Any], values: Mapping[str, Any], way: str) -> str:
    name = case["name"]
    plain, checked = (
        _run(folder / f"{one}.image", values, way) for one in (name, f"{name}-checked")
    )
    assert plain == checked, "results differ"
    return f"{sum(map(len, plain))} equal bytes"


CHECKS = _checks()


def main() -> int:
    """Runs these checks alone: they need no torch."""
    failed = 0
    for name, check in CHECKS.items():
        try:
            print(f"ok   {name}: {check()}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{failed} of {len(CHECKS)} failed")
    return 1 if failed or not CHECKS else 0


if __name__ == "__main__":
    raise SystemExit(main())
