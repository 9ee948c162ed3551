"""What launches of FlyDSL's programs get as arguments, and what becomes of what kernels wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from fly.flydsl.frontend import program

# Stands in for the launch of a module: changes one byte of what arguments are stored as.
CHANGE = """
import pathlib, sys
for name, at in zip(sys.argv[1:-2:2], sys.argv[2:-2:2]):
    file = pathlib.Path(sys.argv[-1], name + ".bin")
    data = bytearray(file.read_bytes())
    data[int(at)] = 99
    file.write_bytes(data)
"""


def recorder(folder, *launch: str) -> program.Recorder:
    command = [sys.executable, "-c", CHANGE, *launch]
    return program.Recorder({"folder": str(folder), "types": None, "launch": command})


def told(folder) -> dict:
    (file,) = folder.glob("k.000/arguments.json")
    return json.loads(file.read_text())


def test_an_integer_that_is_an_address_is_the_memory_there(tmp_path):
    held = torch.arange(8, dtype=torch.uint8)
    at = SimpleNamespace(value=held.data_ptr() + 3)
    recorder(tmp_path, "x", "1").launch("k.mlir", {"x": at, "n": 5, "big": 1 << 62})
    arguments = told(tmp_path)
    assert arguments["n"] == {"value": 5}
    assert arguments["big"] == {"value": 1 << 62}
    assert arguments["x"]["address"]
    assert arguments["x"]["shape"] == [held.untyped_storage().nbytes() - 3]
    assert held.tolist() == [0, 1, 2, 3, 99, 5, 6, 7]


@pytest.mark.parametrize("names", ["xy", "yx"])
def test_two_arguments_of_one_memory(tmp_path, names: str):
    """What a kernel has written through one does not undo what it wrote through the other."""
    held = torch.arange(8, dtype=torch.uint8)
    addresses = {"x": held.data_ptr(), "y": held.data_ptr() + 4}
    launch = recorder(tmp_path, "x", "2", "y", "2").launch
    launch("k.mlir", {name: addresses[name] for name in names})
    assert held.tolist() == [0, 1, 99, 3, 4, 5, 99, 7]


def test_a_transposed_tensor_keeps_its_place_in_memory(tmp_path):
    held = torch.zeros(3, 4, dtype=torch.int32)
    recorder(tmp_path, "A", "4").launch("k.mlir", {"A": held.t()})
    assert told(tmp_path)["A"]["strides"] == [1, 4]
    assert held.reshape(-1).tolist() == [0, 99, *[0] * 10]


def test_the_stream_that_an_autotuner_fills():
    """FlyDSL's autotuner lets the GPU sleep, so that launches wait for their time to be taken."""
    code = "import fly.flydsl.cuda as c; c.install(); import torch; torch.cuda._sleep(1 << 20)"
    subprocess.run([sys.executable, "-c", code], check=True)
