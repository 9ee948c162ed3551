"""A command as a device: what it is asked, what comes back, how it fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault, InputError, MissingError, UsageError
from fly_run.devices.options import Options
from fly_run.devices.protocol import FROM_DEVICE, ON_DEVICE, TO_DEVICE
from fly_run.devices.registry import open_device
from fly_run.launch import runtime
from gpu_support import launcher

COMMAND = f"exec:{sys.executable} {launcher.__file__}"


def values(n: int = 1000) -> dict[str, np.ndarray]:
    a, b = np.random.default_rng(n).random((2, n), np.float32)
    return {"A": a, "B": b, "C": np.zeros(n, np.float32)}


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "launcher.py"
    path.write_text(text)
    return f"exec:{sys.executable} '{path}'"


def test_it_runs_a_program(add, capfd):
    runtime.close_all()
    given = values()
    opened = runtime.device(COMMAND, "gfx942")
    (ran,) = opened.run(add.program, add, given).ran
    assert (given["C"] == given["A"] + given["B"]).all()
    assert ran.instructions is None
    assert capfd.readouterr().err == "ran 1\n"
    runtime.close_all()


def test_what_the_command_gets(add, tmp_path):
    name = script(tmp_path, "import shutil, sys, pathlib\n"
                  f"to = pathlib.Path({str(tmp_path)!r}, 'seen')\n"
                  "shutil.copytree(pathlib.Path(sys.argv[2]).parent, to)\n"
                  "shutil.copy(sys.argv[1], to / 'image')\n")  # fmt: skip
    given = values(64)
    given["B"] = np.arange(100, dtype=np.float32)[10:74]
    with runtime.device(name, "gfx942") as opened:
        opened.run(add.program, add, given)
    seen = tmp_path / "seen"
    request = json.loads((seen / "request.json").read_text())
    assert [(one["name"], one["bytes"], one["writable"]) for one in request["buffers"]] == [
        ("A", 256, False), ("B", 256, False), ("C", 256, True)
    ]  # fmt: skip
    (launch,) = request["launches"]
    assert {**launch, "arguments": bytes.fromhex(launch["arguments"])[:32]} == {
        "kernel": "add", "grid": [1, 1, 1], "block": [64, 1, 1], "shared": 0,
        "arguments": bytes(24) + (64).to_bytes(8, "little"),
        "pointers": [[0, 0, 0], [8, 1, 0], [16, 2, 0]],
    }  # fmt: skip
    assert (seen / "0.bin").read_bytes() == given["A"].tobytes()
    assert (seen / "1.bin").read_bytes() == given["B"].tobytes()
    assert (seen / "image").read_bytes() == add.data
    runtime.close_all()


def test_a_fault_is_the_last_line(add, tmp_path, capfd):
    text = "import sys; print('first', file=sys.stderr); sys.exit('the second')"
    device = open_device(script(tmp_path, text), "gfx942")
    module = device.load(add)
    place = device.alloc(64)
    device.launch(module.function("add"), (1, 1, 1), (1, 1, 1), place.to_bytes(8, "little") * 4)
    with pytest.raises(Fault) as caught:
        device.synchronize()
    assert caught.value.message == f"kernel add: {device.name} failed: the second"
    assert capfd.readouterr().err == "first\n"
    device.synchronize()  # the launch is gone
    device.launch(module.function("add"), (1, 1, 1), (1, 1, 1), bytes(32))
    device.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; sys.exit(3)", "it ended with status 3"),
        ("import sys, pathlib; pathlib.Path(sys.argv[2]).parent.joinpath('0.bin').write_text('')",
         "wrote 0 bytes for A, not 64"),
    ],
)  # fmt: skip
def test_how_a_command_fails(add, tmp_path, text, words):
    device = open_device(script(tmp_path, text), "gfx942")
    place = device.alloc(64, "A")
    packed = place.to_bytes(8, "little") + bytes(24)
    device.launch(device.load(add).function("add"), (1, 1, 1), (1, 1, 1), packed)
    with pytest.raises(Fault, match=words):
        device.synchronize()
    device.close()


def test_commands_that_are_none(add):
    with pytest.raises(UsageError, match="exec: names no command"):
        open_device("exec:", "gfx942")
    with pytest.raises(UsageError, match="No closing quotation"):
        open_device("exec:'", "gfx942")
    with pytest.raises(UsageError, match="--threads is an option of the emulator"):
        open_device("exec:true", "gfx942", Options(threads=2))
    device = open_device("exec:/nonexistent/launcher", "gfx942")
    device.launch(device.load(add).function("add"), (1, 1, 1), (1, 1, 1), bytes(32))
    with pytest.raises(MissingError, match="/nonexistent/launcher can't be run: No such file"):
        device.synchronize()
    device.close()


def test_memory(tmp_path):
    device = open_device("exec:true", "gfx942")
    a, b = device.alloc(16), device.alloc(16)
    text = np.frombuffer(b"0123456789abcdef", np.uint8)
    found = np.zeros(16, np.uint8)
    device.copy(a, text.ctypes.data, 16, TO_DEVICE)
    device.copy(b + 8, a + 2, 8, ON_DEVICE)
    device.copy(found.ctypes.data, b, 16, FROM_DEVICE)
    assert found.tobytes() == bytes(8) + b"23456789"
    with pytest.raises(InputError, match="no buffer contains 17 bytes at"):
        device.copy(a, text.ctypes.data, 17, TO_DEVICE)
    with pytest.raises(InputError, match="no buffer contains 1 bytes at 0x10"):
        device.copy(found.ctypes.data, 16, 1, FROM_DEVICE)
    device.free(a)
    with pytest.raises(UsageError, match="no buffer begins at"):
        device.free(a)
    assert device.elapsed(device.event(), device.event()) >= 0
    device.close()
