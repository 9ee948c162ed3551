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
# For the sections whose names begin with `object_`.
OBJECTS = """
import collections, dataclasses
import heapq

class Config:
    size = 3

    def __init__(self):
        self.size = 4

    def __add__(self, other):
        self.size += other
        return self.size

DONE = [0.0]
TABLE = collections.defaultdict(float)
STEPS = iter([1.0, 2.0])
CONFIG = Config()

def counted(seen=[]):
    seen.append(1)
    return float(len(seen))

def add(heap):
    heapq.heappush(heap, 0)

@dataclasses.dataclass
class Pair:
    a: object
    b: object
"""


def cases() -> list:
    text = Path(__file__).with_name("refusals.txt").read_text()
    found = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, rest = section.split("\n", 1)
        body, said = rest.split("\n--\n")
        top = TOP + OBJECTS if name.startswith("object_") else TOP
        found.append(pytest.param(body, top, said.rstrip("\n"), id=name))
    return found


@pytest.mark.parametrize(("body", "top", "said"), cases())
def test_refused(body: str, top: str, said: str, tmp_path: Path) -> None:
    assert refusal(kernel_source(body, top), tmp_path) == said


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
        "k.py:11:8: the host function can't have a dynamic `if`: it becomes a launch plan"
    ),
    "for i in range(n): kernel(A, i).launch(grid=1, block=1)": (
        "k.py:11:14: the host function can't loop over a dynamic range: it becomes a launch plan"
    ),
    "while n > 0: n = n - 1": "k.py:11:11: a dynamic `while` can only be used in a kernel,"
    " not in the host function",
    "kernel(A, n)": "k.py:11:5: kernel(…) is not launched",
    "pass": "k.py:10:1: the host function entry launches no kernel",
    "return 3": "k.py:11:5: the host function entry returns a value, but a launch plan can't",
    "kernel(A).launch(grid=1, block=1)": "k.py:11:5: kernel: missing a required argument: 'n'",
    "kernel(A, n, n).launch(grid=1, block=1)": "k.py:11:5: kernel: too many positional arguments",
    "kernel(n, n).launch(grid=1, block=1)": (
        "k.py:11:5: A of kernel is a tensor, but got a dynamic i32"
    ),
    "kernel(A, x).launch(grid=1, block=1)": (
        "k.py:11:5: n of kernel is i32, but got a dynamic f32"
    ),
    "kernel(A, A).launch(grid=1, block=1)": (
        "k.py:11:5: n of kernel is i32, but got a tensor (f32[?])"
    ),
    "kernel(A, 1 << 40).launch(grid=1, block=1)": (
        "k.py:11:5: 1099511627776 doesn't fit in i32 (-2147483648 to 2147483647)"
    ),
    "kernel(A, n).launch(grid=(1, 1, 1, 1),"
    " block=1)": "k.py:11:5: grid must have 1 to 3 sizes, not 4",
    "kernel(A, n).launch(grid=1, block=(64, 32))": (
        "k.py:11:5: the block has 2048 work items, but the maximum is 1024"
    ),
    "kernel(A, n).launch(grid=1, block=0)": "k.py:11:5: a size of block is 0, which is not a valid"
    " launch size",
    "kernel(A, n).launch(grid=1.5, block=1)": (
        "k.py:11:5: a size of grid must be an integer, not the Python float 1.5"
    ),
    "kernel(A, n).launch(grid=x, block=1)": (
        "k.py:11:5: a size of grid must be an integer, not a dynamic f32"
    ),
    "kernel(A, n).launch(grid=1, block=1, smem='1k')": (
        "k.py:11:5: smem must be a number of bytes, not the Python str '1k'"
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


ANOTHERS = "this uses a value that was computed by another kernel or by the host function"
KEPT = """
import fly
import fly.expr as fx

@fly.kernel
def pair(tensors: fx.Constexpr, C: fx.Tensor):
    C[0] = tensors[0][0]

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
        ("pair([A, C], C).launch(grid=1, block=1)", "7:12"),
        ("within(C).launch(grid=1, block=1)", "13:16"),
    ],
)
def test_a_value_of_another_function_is_refused_where_it_is_used(body, place, tmp_path):
    said = refusal(KEPT.replace("{body}", body), tmp_path)
    assert said.splitlines()[0] == f"fly-trace: error: k.py:{place}: {ANOTHERS}"
    assert "as a separate argument" in said.splitlines()[-1]


@pytest.mark.parametrize(
    "body",
    [
        "A[0] = n + 10**400",
        "A[0] = n + 10**5000",
        "A[10**400] = 1.0",
        "A[2**63] = 1.0",
        "A[fx.size(fx.make_layout((2**40, 2**40), (1, 1)))] = 1.0",
        "fx.make_layout(2**63, 1)",
        "A[0] = 'a' * 10**6",
        "A['a' * 10**6] = 1.0",
        "if 'a' * 10**6 is n: A[0] = 1.0",
        "fx.shared_array(fx.Float32, 'a' * 10**6)",
        "A[0] = fx.exp(x, fastmath='a' * 10**6)",
        "TABLE = {'a' * 10**6: 1.0, 'b': 2.0}; A[0] = TABLE[n]",
        "d = {'a' * 10**6: 1.0}\nif n > 3: d = {'a' * 10**6: n}\nA[0] = list(d.values())[0]",
        "kernel.launch(grid=10**400)",
        "y = fx.Int32(10**400)",
        "A[0] = fx.full(4, 10**400, fx.Int32)[0]",
    ],
)
def test_a_refused_value_is_quoted_in_part(body: str, tmp_path: Path) -> None:
    said = refusal(kernel_source(body), tmp_path)
    assert len(said.splitlines()[0]) < 500, said[:1000]
