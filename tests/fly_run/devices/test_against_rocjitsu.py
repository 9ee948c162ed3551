"""scripts/against-rocjitsu: how it calls rocjitsu, and what it says of differences. A program
stands in for rocjitsu: it notes its arguments, and runs the command with this project's HIP
library."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/against-rocjitsu"


HELP = "Usage: rocjitsu run [--profile NAME] [--config PATH] [--daemon | --in-process] -- CMD"


def stand_in(folder: Path, body: str = "", told: str | None = HELP) -> Path:
    """`told` is what it prints for `run --help`; None for a version that has no `run`."""
    file = folder / "rocjitsu"
    file.write_text(
        f"#!{sys.executable}\n"
        "import json, os, subprocess, sys\n"
        "if '--help' in sys.argv:\n"
        f"    print({told!r})\n"
        f"    sys.exit({int(told is None)})\n"
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


def loaded() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("against_rocjitsu", str(SCRIPT))
    spec = importlib.util.spec_from_loader("against_rocjitsu", loader)
    assert spec
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    return script


@pytest.fixture(scope="module")
def names() -> tuple[str, str]:
    """Two cases of gfx1250 without a judgment."""
    from kernels.cases import CASES

    script = loaded()
    judged = script.judgments()
    first, second = [
        case.name
        for case in CASES
        if "gfx1250" in case.targets and not script.judgment(judged, f"{case.name}.O3", "right")
    ][:2]
    return first, second


CALLED = {  # the options, what the program has, and how it is called
    "its own profile": ((), HELP, ("run", "--profile", "mi450x", "--in-process")),
    "a profile": (("--profile", "mine"), HELP, ("run", "--profile", "mine", "--in-process")),
    "a file": (("--config", "gpu.json"), HELP, ("run", "--config", "{gpu}", "--in-process")),
    "always in process": ((), "[--profile NAME]", ("run", "--profile", "mi450x")),
    "without run": (("--config", "gpu.json"), None, ("--config", "{gpu}")),
    "another run": (("--config", "gpu.json"), "run it", ("--config", "{gpu}")),
}


@pytest.mark.parametrize("name", CALLED)
def test_the_documented_command(tmp_path, names, name) -> None:
    chosen, told, wanted = CALLED[name]
    (tmp_path / "gpu.json").write_text("{}")
    only = f"^({'|'.join(names)})$"
    done = call(tmp_path, stand_in(tmp_path, told=told), *chosen, "--only", only)
    assert (done.returncode, done.stdout) == (0, "2 cases on gfx1250: 2 alike and right\n"), (
        done.stderr
    )
    ((arguments, given),) = calls(tmp_path)
    at = arguments.index("--")
    assert arguments[:at] == [word.format(gpu=tmp_path / "gpu.json") for word in wanted]
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


def test_what_a_judgment_covers() -> None:
    """A difference in which the result here is right; a pattern is a whole name."""
    script = loaded()
    judged = script.judgments()
    assert script.judgment(judged, "bytes.O0", "right").startswith("ours")
    assert script.judgment(judged, "bytes.O0", "wrong: argument 1") == ""
    assert script.judgment(judged, "bytes.O01", "right") == ""


def test_judgments_are_of_cases() -> None:
    """Each pattern is of a case that there is, and no case has two."""
    from kernels import build
    from kernels.cases import CASES

    rows = [f"{case.name}.{level.strip('-')}" for case in CASES for level in build.LEVELS]
    patterns = [pattern for pattern, _ in loaded().judgments()]
    assert all(any(map(pattern.fullmatch, rows)) for pattern in patterns)
    assert all(sum(bool(p.fullmatch(row)) for p in patterns) < 2 for row in rows)


def test_a_case_that_ends_the_process(tmp_path, names) -> None:
    """The others run in another process."""
    first, second = names
    started = "open(os.path.join(folder, 'device'), 'w').close()"
    die = f"if '{first} ' in names: {started}; sys.exit(139)"
    only = f"^({first}|{second})$"
    done = call(tmp_path, stand_in(tmp_path, die), "--profile", "x", "--only", only)
    assert done.returncode == 1, done.stderr
    assert f"| {first}.O3 | right | error: the process ended with 139 |" in done.stdout
    assert second not in done.stdout
    assert [given for _, given in calls(tmp_path)][1] == f"{second} -O3\n"


def test_what_is_missing(tmp_path) -> None:
    """One line says it, before anything is compiled."""

    def error(program: Path, *more: str) -> str:
        done = call(tmp_path, program, *more)
        assert (done.returncode, done.stdout) == (3, "")
        return done.stderr.removeprefix("against-rocjitsu: error: ")

    none = tmp_path / "none"
    assert error(none) == (
        f"{none} is not a program\n"
        "  hint: build rocjitsu (ROCm/rocm-systems, emulation/rocjitsu), and name its program\n"
    )
    program = stand_in(tmp_path)
    assert error(program, "--target", "gfx1201").startswith("rocjitsu has no profile for gfx1201\n")
    assert error(program, "--config", "gpu.json") == "--config gpu.json is not a file\n"
    program = stand_in(tmp_path, told=None)
    assert error(program) == (
        f"{program} has no command `run` with profiles\n"
        "  hint: --config must name a file of its folder `configs`\n"
    )
    done = call(tmp_path, program, "--config", "gpu.json", "--profile", "x")
    assert done.returncode == 2
    assert "--profile and --config exclude each other" in done.stderr


STARTS = {
    "print('no librocjitsu.so', file=sys.stderr); sys.exit(2)": (
        "no librocjitsu.so",
        "against-rocjitsu: error: {program} ended with 2 before the first case",
        "  hint: its messages are above",
    ),
    "sys.exit(subprocess.run([*hip('gfx942'), *command]).returncode)": (
        "against-rocjitsu: error: there is no gfx1250 behind {program}: no device runs code for"
        " gfx1250: hip:0 is gfx942:sramecc+:xnack-",
    ),
}


@pytest.mark.parametrize("body", STARTS)
def test_a_start_that_fails(tmp_path, names, body) -> None:
    """The cases are not told as differences, one by one."""
    hip = "hip = lambda chip: [os.path.dirname(sys.executable) + '/fly-run', '--hip', chip, '--']\n"
    program = stand_in(tmp_path, hip + body)
    done = call(tmp_path, program, "--only", f"^{names[0]}$")
    assert (done.returncode, done.stdout) == (3, "")
    wanted = [line.format(program=program) for line in STARTS[body]]
    assert done.stderr.splitlines()[-len(wanted) :] == wanted
    assert len(calls(tmp_path)) == 1


def test_a_case_that_does_not_end(tmp_path, monkeypatch) -> None:
    """It is ended, first gently, so that rocjitsu can clean up; what is done is kept."""
    script = loaded()
    monkeypatch.setattr(script, "SECONDS", 1)
    monkeypatch.setattr(script, "GRACE", 0.5)
    body = """
import signal, sys, time
heard = []
def end(*_):
    heard.append(1)
    if len(heard) > 1:
        open(sys.argv[1] + '/cleaned', 'w').close()
        sys.exit()
signal.signal(signal.SIGTERM, end)
open(sys.argv[1] + '/first.O3.npz', 'w').close()
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", body, tmp_path])
    assert script.wait(process, tmp_path) is None
    assert process.poll() is not None
    assert {one.name for one in tmp_path.iterdir()} == {"first.O3.npz", "cleaned"}
