"""Python that can't mean on a GPU what it means in Python is refused: line, caret, advice."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
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


def comparable(text: str) -> str:
    """A message as it is on CPython 3.11. Later ones know the columns within f-strings and of a
    loop's iterable; from them on, the line counts."""
    if sys.version_info < (3, 12):
        return text
    text = re.sub(r"(k\.py:\d+):\d+", r"\1", text)
    return re.sub(r"\n *\^~*(?=\n|$)", "", text)


@pytest.mark.parametrize(("body", "top", "said"), cases())
def test_refused(body: str, top: str, said: str, tmp_path: Path) -> None:
    assert comparable(refusal(kernel_source(body, top), tmp_path)) == comparable(said)


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
    "kernel(A, n)": "k.py:11:5: kernel(…) is not launched",
    "pass": "k.py:10:1: the host function entry does nothing: it launches no kernel, calls no",
    "while n > 0: n = n - 1": "k.py:10:1: the host function entry does nothing",
    "return [A, n]": "k.py:11:5: the host function returns a Python list",
    "return A, 1.5": "k.py:11:5: the host function returns the Python float 1.5",
    "return fx.make_view(fx.get_iter(A), fx.make_layout(((2, 2), 3), ((1, 3), 6)))": (
        "k.py:11:5: the host function returns a tensor"
    ),
    "return A, fx.make_shape(3)": "k.py:11:5: the host function returns an int tuple (int_tuple",
    "while n > 0: kernel(A, n).launch(grid=1, block=1); A = n": (
        "k.py:11:11: `A` is a tensor (f32[?]) before the loop, and a dynamic i32 at the end of an"
    ),
    "for i in range(n): kernel(A, n).launch(grid=1, block=1); n = x": (
        "k.py:11:14: `n` is a dynamic i32 before the loop, and a dynamic f32 at the end of an"
    ),
    "for i in range(x): pass": "k.py:11:14: range takes integers, not a dynamic f32",
    "if x > 1.0: pass": "k.py:11:8: the host function computes with integers only",
    "assert n > 0, f'{x}'": "k.py:11:19: a message shows integers, not a dynamic f32",
    "assert n > 0, f'{n:5}'": (
        "k.py:11:19: a dynamic i32 can't be converted to a string: it is known only when the"
    ),
    "fx.empty(n, 4)": "k.py:11:5: fx.empty takes an element type, not the Python int 4",
    "fx.empty(x, fx.Float32)": (
        "k.py:11:5: an extent of fx.empty must be an integer, not a dynamic f32"
    ),
    "fx.empty(-3, fx.Float32)": "k.py:11:5: fx.empty: extent 0 is -3, less than 0",
    "fx.empty(1 << 64, fx.Float32)": "k.py:11:5: an extent of fx.empty does not fit 64 bits",
    "fx.empty(8, fx.Float4E2M1FN)": (
        "k.py:11:5: fx.empty: elements of f4E2M1FN are no whole bytes"
    ),
    "fx.empty(n, fx.Float32, 'x')": (
        "k.py:11:5: fx.empty takes an fx.Allocation, not the Python str 'x'"
    ),
    "fx.empty(n, fx.Float32, view='flat')": (
        "k.py:11:5: fx.empty: view is 'logical' or 'allocation', not 'flat'"
    ),
    "fx.empty(n, fx.Float32, fx.Allocation().merge(0))": (
        "k.py:11:5: fx.empty: merge(0): axis 0 is the last one, none follows it"
    ),
    "fx.empty((n, 6), fx.Float32, fx.Allocation().split(1, 4))": (
        "k.py:11:5: fx.empty: split(1, 4): the extent 6 is not a multiple of 4"
    ),
    "fx.Allocation().split(0, x)": "k.py:11:5: a factor must be an integer, not a dynamic f32",
    "fx.Allocation().reorder(0, 0)": "k.py:11:5: reorder(0, 0): not a permutation of 2 axes",
    "fx.empty_like(A, 4)": "k.py:11:5: fx.empty_like takes an element type, not the Python int",
    "fx.call(len, A)": "k.py:11:5: fx.call: a Python builtin_function_or_method len is not",
    "fx.call('os.system', A)": "k.py:11:5: fx.call: 'os.system' is not registered",
    "fx.call('torch.matmul', A)": "k.py:11:5: torch.matmul: matmul() missing 1 required",
    "fx.call('torch.matmul', A, n)": "k.py:11:5: torch.matmul: an argument is no tensor",
    "fx.call('torch.mm', A, A)": "k.py:11:5: torch.mm: input has 1 dimensions, and not 2",
    "fx.call('torch.matmul', A, A, out=n)": (
        "k.py:11:5: fx.call: out is a tensor, not a dynamic i32"
    ),
    "fx.call('torch.matmul', A, A, out=A)": (
        "k.py:11:5: torch.matmul makes a tensor of f32 with 0 dimensions, and out is a tensor (f32"
    ),
    "fx.call('torch.addmm', A, A, A, beta=[1])": "k.py:11:5: torch.addmm: input has 1 dimensions",
    "kernel(A, n).launch(grid=1, block=1, stream=n)": (
        "k.py:11:5: stream is a parameter of the host function, not a dynamic i32"
    ),
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
    "kernel(A, n).launch(grid=1, block=1, warps=2)": (
        "k.py:11:5: launch takes grid, block, smem, stream and cluster, not warps"
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
    expected = comparable(f"fly-trace: error: {HOST_CASES[body]}")
    assert comparable(said).startswith(expected)
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
        "d = {'a' * 10**6: fx.Uint64(1)}\nif n > 3: d = {'a' * 10**6: n}\nA[0] = d['a' * 10**6]",
        "kernel.launch(grid=10**400)",
        "y = fx.Int32(10**400)",
        "A[0] = fx.full(4, 10**400, fx.Int32)[0]",
    ],
)
def test_a_refused_value_is_quoted_in_part(body: str, tmp_path: Path) -> None:
    said = refusal(kernel_source(body), tmp_path)
    assert len(said.splitlines()[0]) < 500, said[:1000]


@pytest.mark.parametrize(
    "test", ["A.dtype == np.float32", "np.dtype('f4') != A.dtype", "A.dtype == torch.float32"]
)
def test_an_element_type_of_a_library_is_never_equal_to_the_languages(test, tmp_path):
    """So the wrong branch would be traced."""
    pytest.importorskip("torch")
    top = "import numpy as np, torch"
    said = refusal(kernel_source(f"A[0] = 1.0 if {test} else 2.0", top), tmp_path)
    assert "fx.Float32 is a type of the language, and never equal to" in said
