"""The listing of a program: every kind of step, and integers that are named."""

import pytest
from fly_common.record import replace
from fly_host.listing import listing
from fly_host.program import Launch, Operand, Program, Tensor, Word

from .programs import EVERY, STRAIGHT

EVERYTHING = """\
program every for gfx942
inputs
  A       f32[n], read and written, strides [1]
  n       i32, 3 by default
  stream  a stream
tensors
  T       f32[A.shape[0]] strides [1], A.shape[0] elements
  M       f32[A.shape[0]] strides [1], A.shape[0] elements
  U       f32[A.shape[0]] strides [1], A.shape[0] elements
steps
  check 0 < n else "n is {n}, and has to be positive"
  allocate T
  loop v0 = 0, A_1 = A, T_1 = T while v0 < n
    launch k(T_1 + 1)
      grid A_1.shape[0], block 1, stream stream
    next v0 = v0 + 1, A_1 = T_1, T_1 = A_1
    last v1 = v0, A_2 = A_1, T_2 = T_1
  call M = torch.matmul(A_2, T_2 at v1: [A.shape[0], 1] strides [1, 0], v1, n,\
 (None, True, 1.5, 'x', (2,)), out=A)
  if 0 < n
    allocate U
    launch k(U)
      grid 1, block 1
    gives v2 = A.shape[0], R = U
  else
    gives v2 = 0, R = M
  free T
returns R, (v2, None, A) as R, result1, A
"""


def test_every_kind_of_step():
    assert listing(EVERY) == EVERYTHING


def test_parameters():
    assert listing(STRAIGHT).splitlines()[:6] == [
        "program vector_add for gfx942",
        "inputs",
        "  A      f32[n, 4], read, strides [?, 1]",
        "  B      bf16[?], written, contiguous",
        "  n      i32",
        "  alpha  f32, 0.5 by default",
    ]
    scalar = replace(STRAIGHT, parameters=(Tensor("A", "f32", (), ()),), steps=(), expressions=())
    assert listing(scalar).splitlines()[2] == "  A  f32[], read and written"


def program(*expressions, grid=(0, 0, 0), words=()) -> Program:
    """One launch, of a block of expression 0."""
    none = len(expressions)
    made = Launch("k", grid, (0, 0, 0), none, (tuple(words),) if words else ())
    parameters = (Tensor("A", "f32", (None,), (1,)),)
    return Program("h", "gfx942", parameters, (*expressions, ("const", 0)), (made,))


def test_an_integer_that_is_used_again_has_a_name():
    said = listing(
        program(
            ("const", 1),
            ("extent", "A", 0),
            ("const", 256),
            ("ceildiv", 1, 2),
            ("add", 3, 0),
            ("mul", 3, 4),
            grid=(3, 4, 5),
        )
    )
    assert said.splitlines()[3:5] == ["integers", "  %0 = ceildiv(A.shape[0], 256)"]
    assert said.splitlines()[-1] == "    grid (%0, %0 + 1, %0 * (%0 + 1)), block 1"


def test_a_long_integer_has_a_name():
    sums = [("const", 1), ("extent", "A", 0), *(("add", n, 1) for n in range(1, 200))]
    lines = listing(program(*sums, grid=(200, 0, 0))).splitlines()
    assert max(map(len, lines)) < 100
    named = lines[4 : lines.index("steps")]
    assert 20 < len(named) < 60
    assert "A.shape[0], block 1" in lines[-1]


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (Word("pointer", "A"), "A"),
        (Word("pointer", "A", 2), "A + (A.shape[0] + 1)"),
        (Word("scalar", "x"), "x"),
        (Word("integer", expression=2), "(A.shape[0] + 1)"),
        (Word("integer", expression=2, size=4), "((A.shape[0] + 1) as i32)"),
    ],
)
def test_words(word, shown):
    said = listing(program(("const", 1), ("extent", "A", 0), ("add", 1, 0), words=[word]))
    assert f"  launch k({shown})" in said.splitlines()


@pytest.mark.parametrize(
    ("results", "names", "shown"),
    [
        (Operand("tensor", "A"), ("A",), "returns A"),
        (Operand("integer", 0), ("n",), "returns 1 as n"),
        ((Operand("tensor", "A"),), ("A",), "returns A,"),
        ((), (), "returns ()"),
        (((), Operand("tensor", "A")), ("A",), "returns (), A"),
        ((None, (Operand("constant", True),)), ("x",), "returns None, (True,) as x"),
    ],
)
def test_results(results, names, shown):
    made = replace(program(("const", 1)), results=results, result_names=names)
    assert listing(made).splitlines()[-1] == shown


def test_a_program_without_results():
    assert listing(program(("const", 1))).splitlines()[-1] == "    grid 1, block 1"
