"""scripts/against-rocjitsu: how it calls rocjitsu, and what it says of differences. A program
stands in for rocjitsu: it notes its arguments, and runs the command with this project's HIP
library."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/against-rocjitsu"


def stand_in(folder: Path, body: str = "") -> Path:
    file = folder / "rocjitsu"
    file.write_text(
        f"#!{sys.executable}\n"
        "import json, os, subprocess, sys\n"
        "command = sys.argv[sys.argv.index('--') + 1:]\n"
        "folder = command[command.index('rocjitsu_suite.worker') + 1]\n"
        "names = open(os.path.join(folder, 'cases')).read()\n"
        f"with open({str(folder / 'calls')!r}, 'a') as calls:\n"
        "    calls.write(json.dumps([sys.argv[1:], names]) + '\\n')\n"
        f"{body}\n"
        "hip = [os.path.dirname(sys.executable) + '/fly-run', '--hip', 'gfx1250', '--']\n"
        "sys.exit(subprocess.run([*hip, *command]).returncode)\n"
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def call(folder: Path, program: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = [str(program), "--levels", "O3", *more]
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, cwd=folder
    )


def calls(folder: Path) -> list[tuple[list[str], str]]:
    return [tuple(json.loads(line)) for line in (folder / "calls").read_text().splitlines()]


@pytest.fixture(scope="module")
def names() -> tuple[str, str]:
    """Two cases of gfx1250."""
    from kernels.cases import CASES

    first, second = [case.name for case in CASES if "gfx1250" in case.targets][:2]
    return first, second


@pytest.mark.parametrize("plain", [False, True])
def test_the_documented_command(tmp_path, names, plain) -> None:
    (tmp_path / "gpu.json").write_text("{}")
    chosen = ("--config", "gpu.json", "--plain") if plain else ("--profile", "mine")
    only = f"^({'|'.join(names)})$"
    done = call(tmp_path, stand_in(tmp_path), *chosen, "--only", only)
    assert (done.returncode, done.stdout) == (0, "2 cases on gfx1250: 2 alike and right\n"), (
        done.stderr
    )
    ((arguments, given),) = calls(tmp_path)
    at = arguments.index("--")
    config = str(tmp_path / "gpu.json")
    wanted = ["--config", config] if plain else ["run", "--profile", "mine", "--in-process"]
    assert arguments[:at] == wanted
    assert arguments[at + 2 : at + 4] == ["-m", "rocjitsu_suite.worker"]
    assert arguments[-4:] == ["--target", "gfx1250", "--device", "hip"]
    assert given == "".join(f"{name} -O3\n" for name in names)


def test_a_wrong_result_is_a_row(tmp_path, names) -> None:
    first, _ = names
    spoil = f"""
import numpy as np
hip = [os.path.dirname(sys.executable) + '/fly-run', '--hip', 'gfx1250', '--']
subprocess.run([*hip, *command], check=True)
file = os.path.join(folder, '{first}.O3.npz')
arrays = dict(np.load(file))
for array in arrays.values():
    array.ravel().view('u1')[:1] ^= 1
np.savez(file, **arrays)
sys.exit(0)"""
    done = call(tmp_path, stand_in(tmp_path, spoil), "--profile", "x", "--only", f"^{first}$")
    assert done.returncode == 1, done.stderr
    assert "1 cases on gfx1250: 0 alike and right" in done.stdout
    assert f"| {first}.O3 | right | wrong: argument " in done.stdout
    assert done.stdout.rstrip().endswith("|  |")  # not judged


def test_a_case_that_ends_the_process(tmp_path, names) -> None:
    """The others run in another process."""
    first, second = names
    die = f"if '{first} ' in names: sys.exit(139)"
    only = f"^({first}|{second})$"
    done = call(tmp_path, stand_in(tmp_path, die), "--profile", "x", "--only", only)
    assert done.returncode == 1, done.stderr
    assert f"| {first}.O3 | right | error: the process ended with 139 |" in done.stdout
    assert second not in done.stdout
    assert [given for _, given in calls(tmp_path)][1] == f"{second} -O3\n"


def test_what_is_missing(tmp_path) -> None:
    done = call(tmp_path, tmp_path / "none", "--profile", "x", "--only", "^nothing$")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        3,
        f"against-rocjitsu: error: {tmp_path / 'none'} can't be started: No such file or directory",
    )
    done = call(tmp_path, tmp_path / "none")
    assert done.returncode == 2
    assert "--profile or --config must say which GPU" in done.stderr
