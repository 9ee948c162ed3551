"""The device `cpu` runs every example that needs no vendor's instructions, through the pipe and
through @jit. Its results are NumPy's, and differ from the emulator's by no more than twice the
tolerance of a case.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_trace.session.load import find_entry, load_file

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import CASES, WIDELY, Case, check

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGET = "sm_90a"
PLAIN = [case for case in CASES if not case.traits]
every_case = pytest.mark.parametrize("case", PLAIN, ids=[case.name for case in PLAIN])


def function_of(case: Case):
    path = str(EXAMPLES / case.file)
    return find_entry(load_file(path), path, case.entry)


@every_case
def test_jit_agrees_with_numpy_and_the_emulator(case: Case, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", TARGET)
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    function = function_of(case)
    arguments = case.make()
    expected = case.expect(arguments)
    for _ in range(2):  # the second call is native code's
        arguments = case.make()
        after = case.after(arguments, function(**arguments))
        check(case, after, expected)
    compiled = function_of(case).compile(target="gfx1100")
    arguments = case.make()
    emulated = case.after(arguments, compiled.run(arguments, device="emulator").results)
    for name in expected:
        found, other = np.asarray(after[name]), np.asarray(emulated[name])
        rtol, atol = 2 * case.rtol, 2 * case.atol
        np.testing.assert_allclose(found, other, rtol=rtol, atol=atol, err_msg=name)


PIPE = (
    "set -eo pipefail; export PATH={bin}:$PATH; fly-trace {file}:{entry} | fly-opt-py --target"
    " {target} | opt -S -O3 | fly-llc | fly-link | fly-run - --device cpu -q {words}"
)


# The files of saxpy_wide would have 2 GB.
SMALL = [case for case in WIDELY if not case.traits and case.name != "saxpy_wide"]


small_case = pytest.mark.parametrize("case", SMALL, ids=[case.name for case in SMALL])


@small_case
def test_pipe(case: Case, tmp_path: Path):
    check_pipe(case, tmp_path, [])


@small_case
def test_pipe_under_the_address_sanitizer(case: Case, tmp_path: Path):
    check_pipe(case, tmp_path, ["--sanitize", "address"])


def check_pipe(case: Case, tmp_path: Path, words: list[str]) -> None:
    arguments = case.make()
    expected = case.expect(arguments)
    for key, value in arguments.items():
        if not isinstance(value, np.ndarray):
            words.append(f"{key}={value}")
            continue
        np.save(tmp_path / f"{key}.npy", value)
        words.append(f"{key}={key}.npy" + (f":{key}.out.npy" if key in expected else ""))
    words += [f"{key}={key}.out.npy" for key in expected if key not in arguments]
    text = PIPE.format(
        bin=Path(sys.executable).parent,
        file=EXAMPLES / case.file,
        entry=case.entry,
        target=TARGET,
        words=" ".join(words),
    )
    done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "AddressSanitizer" not in done.stderr
    check(case, {key: np.load(tmp_path / f"{key}.out.npy") for key in expected}, expected)
