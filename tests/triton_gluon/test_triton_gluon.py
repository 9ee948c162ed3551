"""The script's judgement: what it reads and prints, and its references. No Triton is needed."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from triton_gluon.cases import CASES, Case

torch = pytest.importorskip("torch")
NAME = "triton_gluon_script"
SCRIPT = Path(__file__).parents[2] / "scripts/triton-gluon"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = spec_from_loader(NAME, SourceFileLoader(NAME, str(SCRIPT)))
    assert spec is not None
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def test_a_stage_is_the_last_that_is_printed(script) -> None:
    assert script.result("noise\nstage imports: why\nstage right\n", 0) == ("right", "")
    assert script.result("stage runs: x is wrong\n", 0) == ("runs", "x is wrong")
    assert script.result("a\nSegmentation fault\n - leaked x\n", -11) == (
        "none",
        "the process ended with -11: Segmentation fault",
    )


def test_a_fault_of_a_launch_is_the_reason(script) -> None:
    """Triton goes on after some of them."""
    text = "fly-run: HIP: error: /a/b.py:3:4: LDS fault: 1 bytes\nstage right\n"
    assert script.result(text, 0) == ("compiles", "LDS fault: 1 bytes")


def test_table(script) -> None:
    cases = [Case(f"g {n}", "g", "file", "function") for n in range(3)]
    found = [
        {"plain": ("right", ""), "strict": ("right", "")},
        {
            "plain": ("right", ""),
            "strict": ("compiles", "a race: it is loaded by pc 0x4 'x' (/a.py:3); kernel k"),
        },
        {"plain": ("compiles", "no | such"), "strict": ("compiles", "no | such")},
    ]
    heads, *lines = script.table(list(zip(cases, found, strict=True)))
    assert heads.startswith(
        "| example | configurations | compiles | runs | right | run in strict mode | right |"
    )
    assert lines == [
        "|---|---|---|---|---|---|---|---|",
        "| g | 3 | 3 | 2 | 2 | 3 | 1 | strict: a race; no / such; strict: no / such |",
        "| all | 3 | 3 | 2 | 2 | 3 | 1 |  |",
    ]


def test_results_are_kept(script, tmp_path) -> None:
    """The last line of a case and mode counts, and one that was cut off does not."""
    file = tmp_path / "results"
    assert script.kept(None) == script.kept(file) == {}
    lines = [
        '{"case": "a", "mode": "plain", "stage": "runs", "reason": "x"}',
        '{"case": "a", "mode": "strict", "stage": "compiles", "reason": "y"}',
        '{"case": "a", "mode": "plain", "stage": "right", "reason": ""}',
        '{"case": "b", "mo',
    ]
    file.write_text("\n".join(lines))
    assert script.kept(file) == {"a": {"plain": ("right", ""), "strict": ("compiles", "y")}}


def test_a_copy_that_llvm_has_left_out_is_found() -> None:
    from triton_gluon.assembly import left_out

    text = "\tv_mov_b32_e32 v3, s0\n\t ; illegal copy v[22:25] to s[0:3]\n\ts_mov_b32 s1, s33\n"
    assert left_out(text) == ["illegal copy v[22:25] to s[0:3]"]
    assert left_out("\t; %bb.1:\n") == []


def test_what_is_no_checkout_is_refused(tmp_path) -> None:
    command = [sys.executable, SCRIPT, tmp_path, "--peers-python", "python"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no checkout of Triton" in done.stderr


def test_names_are_of_one_case() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_narrow_numbers() -> None:
    from triton_gluon import references

    for kind, parts in ((ml_dtypes.float8_e4m3fn, (4, 3)), (ml_dtypes.float8_e5m2, (5, 2))):
        bits = np.arange(256, dtype=np.uint8)
        known = bits.view(kind).astype(float)
        finite = np.isfinite(known)
        assert np.array_equal(references.narrow(bits, *parts)[finite], known[finite])


@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_shuffled_scales(blocks: int) -> None:
    """Their order as documented: tiles of 128 rows, of which those 32 apart are together."""
    from triton_gluon import references

    rows, width = 256, min(blocks, 4)
    bits = np.random.default_rng(blocks).integers(120, 130, (rows, blocks)).astype(np.uint8)
    tiles = bits.reshape(rows // 128, 4, 32, blocks // width, width)
    packed = torch.from_numpy(tiles.transpose(0, 3, 2, 1, 4).copy())
    found = references.mx_scales(packed, rows, blocks, 128 * blocks, shuffled=True)
    assert np.array_equal(found, 2.0 ** (bits.astype(float) - 127))


def test_a_wrong_product_is_found() -> None:
    from triton_gluon import references

    a, b = (torch.randn(8, 8, dtype=torch.float16) for _ in "ab")
    before = {"M": 8, "N": 8, "K": 8, "a_ptr": a, "b_ptr": b, "c_ptr": torch.zeros(8, 8)}
    before |= {f"stride_{one}": 8 for one in ("am", "bk", "cm")}
    before |= {f"stride_{one}": 1 for one in ("ak", "bn", "cn")}
    after = {**before, "c_ptr": (a.double() @ b.double()).float()}
    assert list(references.gemm(before, after)) == []
    after["c_ptr"][3, 4] += 0.01
    (error,) = references.gemm(before, after)
    assert "1 of 64 elements of c are wrong, the first at (3, 4)" in error
