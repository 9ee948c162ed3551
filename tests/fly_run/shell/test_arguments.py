"""NAME=VALUE: the grammar, and the arrays that sources make."""

import numpy as np
import pytest
from fly_common.errors import UsageError
from fly_host.program import Buffer, Operand, Program, Scalar, Tensor, View
from fly_run.shell.argument_text import (
    Address,
    Argument,
    LocalMemory,
    Made,
    Path,
    Typed,
    is_argument,
    make,
    parse,
    parse_all,
)
from fly_run.shell.argument_values import _allocate, for_program


@pytest.mark.parametrize(
    ("text", "name", "source", "destination"),
    [
        ("A=a.npy", "A", Path("a.npy"), None),
        ("A=a.npy:b.npy", "A", Path("a.npy"), "b.npy"),
        ("A=/dev/fd/63", "A", Path("/dev/fd/63"), None),
        ("A=dir/x", "A", Path("dir/x"), None),
        ("a_1=x=y.npy", "a_1", Path("x=y.npy"), None),
        ("n=3", "n", 3, None),
        ("n=-7", "n", -7, None),
        ("n=+7", "n", 7, None),
        ("n=0x10", "n", 16, None),
        ("n=-0x10", "n", -16, None),
        ("n=0b101", "n", 5, None),
        ("n=010", "n", 10, None),
        ("n=1_000_000", "n", 1_000_000, None),
        ("x=2.5", "x", 2.5, None),
        ("x=-1e-5", "x", -1e-5, None),
        ("x=.5", "x", 0.5, None),
        ("x=3.", "x", 3.0, None),
        ("x=inf", "x", float("inf"), None),
        ("b=true", "b", True, None),
        ("b=false", "b", False, None),
        ("C=zeros((3,4),f32)", "C", Made("zeros", (3, 4), "f32"), None),
        ("C=zeros((3,),f32):c.npy", "C", Made("zeros", (3,), "f32"), "c.npy"),
        ("C=zeros( ( 3 , 4 , ) , f32 ) : c.npy", "C", Made("zeros", (3, 4), "f32"), "c.npy"),
        ("C=zeros(5)", "C", Made("zeros", (5,), None), None),
        ("C=zeros((),i8)", "C", Made("zeros", (), "i8"), None),
        ("C=full((2,2),bf16,-1.5)", "C", Made("full", (2, 2), "bf16", -1.5), None),
        ("C=arange(0x10,i64)", "C", Made("arange", (16,), "i64"), None),
        ("C=random(9)", "C", Made("random", (9,), None, 0), None),
        ("C=random((9,1),f16,seed=12)", "C", Made("random", (9, 1), "f16", 12), None),
        ("C=random(9,seed=4)", "C", Made("random", (9,), None, 4), None),
        ("x=i32:-5", "x", Typed((-5).to_bytes(4, "little", signed=True), "i32"), None),
        ("x=f32:1", "x", Typed(bytes.fromhex("0000803f"), "f32"), None),
        ("x=f16:1.5", "x", Typed(bytes.fromhex("003e"), "f16"), None),
        ("x=bf16:1.5", "x", Typed(bytes.fromhex("c03f"), "bf16"), None),
        ("x=bool:true", "x", Typed(b"\1", "bool"), None),
        ("s=bytes:00ff a0", "s", Typed(bytes.fromhex("00ffa0")), None),
        ("l=lds:1024", "l", LocalMemory(1024), None),
        ("p=address:x.npy", "p", Address(Path("x.npy")), None),
        ("p=address:x.npy:y.npy", "p", Address(Path("x.npy")), "y.npy"),
        ("p=address:zeros(3,f32):y.npy", "p", Address(Made("zeros", (3,), "f32")), "y.npy"),
        ("address:x.npy", None, Address(Path("x.npy")), None),
        ("a.npy", None, Path("a.npy"), None),
        ("i64:3", None, Typed((3).to_bytes(8, "little"), "i64"), None),
        ("zeros(3,f32):out.npy", None, Made("zeros", (3,), "f32"), "out.npy"),
    ],
)
def test_values(text, name, source, destination):
    made = parse(text)
    assert made == Argument(text, name, source, destination)
    assert type(made.source) is type(source)
    assert is_argument(text)


def test_nan_is_a_number():
    value = parse("x=nan").source
    assert value != value


@pytest.mark.parametrize("text", ["k.hsaco", "./a", "build/vadd", "-", "kernel", "a.out"])
def test_what_is_no_argument_is_a_file(text):
    assert not is_argument(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=", "A=: can't parse ''"),
        ("A=a.npz", "A=a.npz: can't parse 'a.npz'"),
        ("A=3x", "A=3x: can't parse '3x'"),
        ("A=True", "A=True: can't parse 'True'"),
        ("A=a.npy:", "A=a.npy:: no path after the colon"),
        ("A=ones(3,f32)", "A=ones(3,f32): unknown function ones()"),
        ("A=zeros()", "A=zeros(): invalid arguments of zeros"),
        ("A=zeros(3,f32,1)", "A=zeros(3,f32,1): invalid arguments of zeros"),
        ("A=full(3,f32)", "A=full(3,f32): invalid arguments of full"),
        ("A=zeros(3,float)", "A=zeros(3,float): unknown type 'float'"),
        ("A=zeros(-3,f32)", "A=zeros(-3,f32): an extent must be an integer ≥ 0, not '-3'"),
        ("A=zeros((3,,4),f32)", "A=zeros((3,,4),f32): (3,,4) is not a shape"),
        ("A=zeros((,),f32)", "A=zeros((,),f32): (,) is not a shape"),
        ("A=zeros((3,n),f32)", "A=zeros((3,n),f32): an extent must be an integer ≥ 0, not 'n'"),
        ("A=zeros((3,4)", "A=zeros((3,4): can't parse 'zeros((3,4)'"),
        ("A=arange((3,4))", "A=arange((3,4)): arange makes one-dimensional arrays"),
        (
            "A=random(3,f32,seed=x)",
            "A=random(3,f32,seed=x): the seed must be an integer ≥ 0, not 'x'",
        ),
        ("A=full(3,f32,x)", "A=full(3,f32,x): can't parse 'x'"),
        ("A=zeros(2000000000000,f32)", "A=zeros(2000000000000,f32): an array of more than 1 TiB"),
        ("A=" + "9" * 5000, "A=" + "9" * 198 + "…: a number of 5000 digits is too large"),
        ("x=i8:300", "x=i8:300: 300 does not fit in i8"),
        ("x=u8:-1", "x=u8:-1: -1 does not fit in u8"),
        ("x=i32:2.5", "x=i32:2.5: 2.5 is not a valid i32"),
        ("x=f16:1e6", "x=f16:1e6: 1e6 does not fit in f16"),
        ("x=bytes:0f0", "x=bytes:0f0: '0f0' is not a string of hex digits, two per byte"),
        ("x=address:5", "x=address:5: only an array has an address"),
        ("x=address:", "x=address:: can't parse ''"),
        ("x=lds:-4", "x=lds:-4: the amount of LDS must be an integer ≥ 0, not '-4'"),
    ],
)
def test_what_is_none(text, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.message == message


def test_a_refusal_says_what_may_stand_there():
    with pytest.raises(UsageError) as caught:
        parse("A=a.npz")
    assert caught.value.hint.startswith("write x.npy, a number, zeros(shape,dtype)")


def test_names_and_destinations_are_given_once():
    with pytest.raises(UsageError, match="argument A is given twice"):
        parse_all(["A=1", "A=2"])
    with pytest.raises(UsageError, match=r"destination .*c\.npy is given twice"):
        parse_all(["A=zeros(1):c.npy", "B=zeros(1):./c.npy"])


# -- arrays --------------------------------------------------------------------------------------


def made(text: str, dtype: str | None = None) -> np.ndarray:
    source = parse(text).source
    assert isinstance(source, Made)
    return make(source, dtype)


def test_zeros_and_full():
    assert made("zeros((2,3),i16)").dtype == np.int16
    assert made("zeros((2,3),i16)").shape == (2, 3)
    assert (made("full((2,2),f16,1.5)") == np.full((2, 2), 1.5, np.float16)).all()
    assert made("full((),u8,255)") == np.uint8(255)
    # 1.00390625 is a tie between two bf16 numbers: the even one is taken.
    assert made("full(1,bf16,1.00390625)")[0] == 0x3F80
    assert made("full(1,bf16,1.01171875)")[0] == 0x3F82
    assert made("zeros(3)", "bool").dtype == np.bool_
    assert made("full(3,f32,0)").flags.writeable


def test_full_refuses_what_does_not_fit():
    with pytest.raises(OverflowError):
        made("full(3,u8,256)")
    with pytest.raises(OverflowError):
        made("full(3,f16,1e9)")


def test_arange():
    assert made("arange(5,f16)").tolist() == [0, 1, 2, 3, 4]
    assert made("arange(3,bf16)").tolist() == [0, 0x3F80, 0x4000]
    assert made("arange(3)", "i64").dtype == np.int64


def test_random_repeats_by_seed():
    assert (made("random(99,f32,seed=5)") == made("random(99,f32,seed=5)")).all()
    assert (made("random(99,f32)") == made("random(99,f32,seed=0)")).all()
    assert (made("random(99,f32)") != made("random(99,f32,seed=1)")).any()


@pytest.mark.parametrize(("dtype", "low", "high"), [("f32", 0, 1), ("f16", 0, 1), ("i8", 0, 99),
                                                   ("u64", 0, 99), ("bool", 0, 1)])  # fmt: skip
def test_random_covers_its_range(dtype, low, high):
    values = made("random(20000)", dtype)
    least, greatest = float(values.min()), float(values.max())
    assert low <= least < low + 0.02 * (high - low) + (dtype == "bool")
    assert high - 0.02 * (high - low) - (dtype == "bool") < greatest <= high


def test_a_type_is_needed_where_no_parameter_has_one():
    with pytest.raises(UsageError, match="zeros needs a type here"):
        made("zeros(3)")


def test_the_hint_for_a_result_of_unknown_extents_names_those_that_are_known():
    c = Tensor("C", "f32", ("M", "N", 4, None), (None,) * 4, "w")
    with pytest.raises(UsageError) as raised:
        _allocate(c, {"M": 100}, "c.npy")
    assert raised.value.hint == "specify it: C=zeros((100,N,4,N),f32):c.npy"


RETURNING = Program(
    "f",
    "gfx942",
    (Tensor("A", "f16", ("n",), (1,), "r"), Scalar("n", "i32")),
    (("const", 0), ("const", 1)),
    (),
    (Buffer("T", "f32", (1,), (1,), 1),),
    (
        Operand("tensor", "T"),
        Operand("view", View("A", (1,), (1,), 0)),
        Operand("integer", 1),
        Operand("tensor", "A"),
        Operand("scalar", "n"),
    ),
    ("C", "first", "count", "A", "n"),
)


def test_results_are_asked_for_by_name():
    words = ["A=zeros(3)", "n=2", "C=c.npy", "first=f.npy"]
    given = for_program(RETURNING, parse_all(words))
    assert given.destinations == {"C": "c.npy", "first": "f.npy"}
    results = np.ones(1, "f4"), np.ones(1, "f2"), 1, given.values["A"], 2
    held = given.with_results(RETURNING, results)
    assert list(held.values) == ["A", "n", "C", "first", "count"]
    assert held.dtypes == {"A": "f16", "C": "f32", "first": "f16"}
    assert held.written == held.returned == {"C", "first"}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["A=zeros(3)", "n=2", "c=c.npy"],
            "f has no parameter 'c'",
            "did you mean C?  parameters: A: f16[n], read, n: i32  results: C, first",
        ),
        (
            ["A=zeros(3)", "n=2", "count=c.npy"],
            "f has no parameter 'count'",
            "parameters: A: f16[n], read, n: i32  results: C, first",
        ),
        (
            ["A=zeros(3)", "n=2", "C=zeros(1):c.npy"],
            "C=zeros(1):c.npy: C is a result, which the program allocates",
            "name the file that it goes to: C=C.npy",
        ),
        (
            ["zeros(3)"],
            "zeros(3): the argument has no name",
            "arguments are given by name: A=a.npy n=1 C=c.npy first=first.npy",
        ),
    ],
)
def test_the_hints_name_results(words: list[str], message: str, hint: str):
    with pytest.raises(UsageError) as raised:
        for_program(RETURNING, parse_all(words))
    assert (raised.value.message, raised.value.hint) == (message, hint)
