"""fly-trace --frontend flydsl, where a program stands in for the interpreter that has FlyDSL. What
the real one traces is in `make flydsl` and in scripts/flydsl-traces."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = "module attributes {gpu.container_module} {\n}\n"


def stand_in(folder: Path, body: str) -> str:
    """A program that is called as the interpreter is, with a job, and does what `body` says."""
    file = folder / "python"
    file.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "job = json.load(open(sys.argv[2]))\n"
        f"{body}\n"
        "json.dump(result, open(os.path.join(job['folder'], 'result.json'), 'w'))\n"
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def traced(*entries: str, error: object = None) -> str:
    """The body of a stand-in that traces modules of these host functions."""
    lines = [f"modules = {[[entry, f'{at:03}-{entry}.mlir'] for at, entry in enumerate(entries)]}"]
    lines += ["for entry, file in modules:"]
    lines += [
        "    with open(os.path.join(job['folder'], file), 'w') as out:",
        f"        out.write('// ' + entry + '\\n' + {MODULE!r})",
    ]
    return "\n".join([*lines, f"result = {{'modules': modules, 'error': {error!r}}}"])


def fly_trace(folder: Path, *arguments: str, entry: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "k.py").write_text("one\ntwo\n")
    command = [sys.executable, "-m", "fly_trace.cli", f"k.py{entry}", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


FLYDSL = ("--frontend", "flydsl", "--target", "gfx942")
WRONG = {"kind": "TypeError", "message": "no", "file": "k.py", "line": 2}
LACKING = {"kind": "", "message": "parameter B of one has no type", "file": None, "line": None}


def test_the_only_module_is_the_result(tmp_path):
    python = stand_in(tmp_path, traced("one", error=WRONG))
    done = fly_trace(tmp_path, *FLYDSL, "--python", python)
    assert (done.returncode, done.stdout) == (0, "// one\n" + MODULE), done.stderr


@pytest.mark.parametrize(
    ("entry", "body", "code", "said"),
    [
        ("", traced("one", "two"), 2, "k.py traces several host functions: one, two"),
        (":two", traced("one", "two"), 0, ""),
        (":three", traced("one"), 2, "k.py, run as a program, traces no three, but one"),
        ("", traced(), 2, "k.py, run as a program, traces nothing"),
        ("", traced(error=WRONG), 1, "k.py:2: TypeError: no\n"),
        ("", traced(error=LACKING), 2, "k.py: parameter B of one has no type"),
        (
            "",
            "sys.exit(\"ModuleNotFoundError: No module named 'flydsl'\")",
            3,
            "python has no flydsl",
        ),
        ("", "sys.exit('out of luck')", 3, "python: out of luck"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, entry, body, code, said):
    done = fly_trace(tmp_path, *FLYDSL, "--python", stand_in(tmp_path, body), entry=entry)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ("// two\n" + MODULE if code == 0 else "")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--frontend", "flydsl"), 2, "FlyDSL traces for one GPU"),
        ((*FLYDSL, "--python", "/no/such"), 3, "/no/such: No such file or directory"),
        (("--frontend", "other"), 2, "unknown frontend 'other'\n  the frontends are fly, flydsl"),
        (("--python", "x"), 2, "--python is for --frontend flydsl"),
        (("--argument", "x"), 2, "--argument is for --frontend flydsl"),
        ((*FLYDSL, "--sig", "A: f6E2M3FN[4]"), 2, "torch has no tensors of 'f6E2M3FN'"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path, monkeypatch, arguments, code, said):
    for name in ("FLYDSL_GPU_ARCH", "ARCH", "HSA_OVERRIDE_GFX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    done = fly_trace(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_the_job_says_all_that_was_asked(tmp_path):
    body = "json.dump([job, os.environ['FLYDSL_GPU_ARCH']], open('job.json', 'w'))\n"
    python = stand_in(tmp_path, body + traced("one"))
    done = fly_trace(
        tmp_path, *FLYDSL, "--python", python, "--no-loc", "--argument", "x", "--argument=-y",
        "--sig", "A: bf16[M,64:?{div=8},1]{align=16}, n: i32, W = 3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    job, chip = json.loads((tmp_path / "job.json").read_text())
    assert chip == "gfx942"
    assert (job["program"], job["arguments"]) == ("k.py", ["x", "-y"])
    assert not job["locations"]
    assert job["types"] == {
        "A": {
            "kind": "tensor",
            "torch": "bfloat16",
            "fx": "BFloat16",
            "shape": [None, 64],
            "strides": [None, 1],
            "multiples": [[1, 1], [8, 1]],
            "align": {"assumed_align": 16},
        },
        "n": {"kind": "scalar", "dtype": "i32"},
        "W": {"kind": "constant", "value": 3},
    }
