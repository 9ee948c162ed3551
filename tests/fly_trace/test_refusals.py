"""Python that can't mean on a GPU what it means in Python is refused: line, caret, advice."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from trace_helpers import kernel_source, refusal

TOP = """
def first(v):
    if v > 1.0:
        return 1.0
    return v

def forever(v):
    return forever(v + 1.0)

def gen(k):
    yield k

pick = lambda v: v if v > 1.0 else 0
"""


def cases() -> list:
    text = Path(__file__).with_name("refusals.txt").read_text()
    found = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, rest = section.split("\n", 1)
        body, said = rest.split("\n--\n")
        found.append(pytest.param(body, said.rstrip("\n"), id=name))
    return found


@pytest.mark.parametrize(("body", "said"), cases())
def test_refused(body: str, said: str, tmp_path: Path) -> None:
    assert refusal(kernel_source(body, TOP), tmp_path) == said


HOST = """
import fly
import fly.expr as fx

@fly.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    A[0] = 1.0

@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], n: fx.Int32, x: fx.Float32):
    {body}
"""

HOST_CASES = {
    "if n > 3: kernel(A, n).launch(grid=1, block=1)": (
        "k.py:11:8: the host function can't have a dynamic `if`: it is a plan of launches"
    ),
    "for i in range(n): kernel(A, i).launch(grid=1, block=1)": (
        "k.py:11:14: the host function can't loop over a dynamic range: it is a plan of launches"
    ),
    "while n > 0: n = n - 1": "k.py:11:11: a dynamic `while` can only be used in a kernel,"
    " not in the host function",
    "kernel(A, n)": "k.py:11:5: kernel(…) is not launched",
    "pass": "k.py:10:1: the host function entry launches no kernel",
    "return 3": "k.py:11:5: the host function entry returns a value; a launch plan can't",
    "kernel(A).launch(grid=1, block=1)": "k.py:11:5: kernel: missing a required argument: 'n'",
    "kernel(A, n, n).launch(grid=1, block=1)": "k.py:11:5: kernel: too many positional arguments",
    "kernel(n, n).launch(grid=1, block=1)": (
        "k.py:11:5: A of kernel is a tensor, and is given a dynamic i32"
    ),
    "kernel(A, x).launch(grid=1, block=1)": (
        "k.py:11:5: n of kernel is i32, and is given a dynamic f32"
    ),
    "kernel(A, A).launch(grid=1, block=1)": (
        "k.py:11:5: n of kernel is i32, and is given a tensor (f32[?])"
    ),
    "kernel(A, 1 << 40).launch(grid=1, block=1)": (
        "k.py:11:5: 1099511627776 doesn't fit i32 (-2147483648 to 2147483647)"
    ),
    "kernel(A, n).launch(grid=(1, 1, 1, 1), block=1)": "k.py:11:5: grid has 1 to 3 sizes, not 4",
    "kernel(A, n).launch(grid=1, block=(64, 32))": (
        "k.py:11:5: the block has 2048 work items, and a workgroup at most 1024"
    ),
    "kernel(A, n).launch(grid=1, block=0)": "k.py:11:5: a size of block is 0, which no launch can"
    " have",
    "kernel(A, n).launch(grid=1.5, block=1)": (
        "k.py:11:5: a size of grid must be an integer, not the Python float 1.5"
    ),
    "kernel(A, n).launch(grid=x, block=1)": (
        "k.py:11:5: a size of grid must be an integer, not a dynamic f32"
    ),
    "kernel(A, n).launch(grid=1, block=1, smem='1k')": (
        "k.py:11:5: smem is a number of bytes, not the Python str '1k'"
    ),
    "kernel(A, n).launch(grid=1, block=1, cluster=2)": (
        "k.py:11:5: launch takes grid, block, smem and stream, not cluster"
    ),
    "kernel(A, n).launch(grid=x * 2.0, block=1)": (
        "k.py:11:30: the host function computes with integers only: its results are grids, blocks"
        " and arguments"
    ),
    "A[0] = 1.0": "k.py:11:5: an element of A can only be used in a kernel, not in the host"
    " function",
    "fx.barrier()": "k.py:11:5: fx.barrier can only be used in a kernel, not in the host function",
}


@pytest.mark.parametrize("body", HOST_CASES)
def test_host_refused(body: str, tmp_path: Path) -> None:
    said = refusal(HOST.format(body=body), tmp_path)
    assert said.splitlines()[0] == f"fly-trace: error: {HOST_CASES[body]}"
    assert said.splitlines()[2].strip().startswith("^")


ANOTHERS = "a value is used here that another kernel or the host function computed"
KEPT = """
import fly
import fly.expr as fx

kept = []

@fly.kernel
def pair(tensors: fx.Constexpr, C: fx.Tensor):
    C[0] = tensors[0][0]

@fly.kernel
def keeps(C: fx.Tensor):
    kept.append(fx.thread_idx.x)
    C[0] = 1.0

@fly.kernel
def uses(C: fx.Tensor):
    C[kept[0]] = 1.0

@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], C: fx.Tensor[fx.Float32, "n"]):
    @fly.kernel
    def within(C: fx.Tensor):
        C[0] = A[0]
    {body}
"""


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("pair([A, C], C).launch(grid=1, block=1)", "9:12"),
        ("within(C).launch(grid=1, block=1)", "24:16"),
        ("keeps(C).launch(grid=1, block=1); uses(C).launch(grid=1, block=1)", "18:5"),
        ("keeps(C).launch(grid=1, block=1); keeps(C).launch(grid=kept[0], block=1)", "25:39"),
    ],
)
def test_a_value_of_another_function_is_refused_where_it_is_used(body, place, tmp_path):
    said = refusal(KEPT.replace("{body}", body), tmp_path)
    assert said.splitlines()[0] == f"fly-trace: error: k.py:{place}: {ANOTHERS}"
    assert "as a parameter of its own" in said.splitlines()[-1]
