"""Library functions of programs: who may be called, with what, and what shape rules say."""

import subprocess
import sys

import numpy as np
import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_host import library
from fly_host.libraries.rules import BUILT_IN
from fly_host.library import Like, Made, Registered


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """A registry of its own for each test."""
    monkeypatch.setattr(library, "registered", {})


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# -- who may be called


@pytest.mark.parametrize("name", ["os.system", "torch.load", "builtins.eval", "", "torch"])
def test_what_is_not_registered_is_not_called(name):
    with pytest.raises(MissingError, match="which is not registered here") as caught:
        library.call(name, ["true"], {})
    assert "fly.register_call" in str(caught.value.hint)


def test_nothing_is_imported_for_a_name():
    code = (
        "import sys; from fly_host import library\n"
        "try: library.call('json.loads', ['1'], {})\n"
        "except Exception as error: print(type(error).__name__)\n"
        "library.name_of(len)\n"
        "print([name for name in ('torch', 'json', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["MissingError", "[]"]


def test_a_function_that_a_process_registers():
    made = library.register("my.twice", shape=lambda A: A, function=lambda A: A * 2)
    assert library.find("my.twice") is made
    assert library.name_of(made.function) == "my.twice"
    np.testing.assert_array_equal(library.call("my.twice", [np.ones(3)], {}), np.full(3, 2.0))
    library.register("my.twice", shape=lambda A: A, function=lambda A: A * 3)
    np.testing.assert_array_equal(library.call("my.twice", [np.ones(3)], {}), np.full(3, 3.0))
    assert library.name_of(made.function) is None


def test_a_registered_name_is_a_path():
    library.register("numpy.linalg.inv", shape=lambda A: A)
    assert library.name_of(np.linalg.inv) == "numpy.linalg.inv"
    found = library.call("numpy.linalg.inv", [np.eye(2) * 2], {})
    np.testing.assert_array_equal(found, np.eye(2) / 2)


@pytest.mark.parametrize("name", ["no_such_package.f", "numpy.no_such_function"])
def test_a_path_that_leads_nowhere(name):
    library.register(name, shape=lambda A: A)
    with pytest.raises(MissingError, match=f"the program calls {name}, which is not there"):
        library.call(name, [], {})


def test_entry_points(monkeypatch):
    class Entry:
        name = "guest.f"

        def __init__(self, made):
            self.load = lambda: made

    made = Registered("guest.f", lambda A: A, lambda A: A + 1)
    monkeypatch.setattr(library, "entry_points", lambda group: {"fly.calls": (Entry(made),)}[group])
    np.testing.assert_array_equal(library.call("guest.f", [np.zeros(2)], {}), np.ones(2))
    assert library.find("guest.g") is None
    monkeypatch.setattr(library, "entry_points", lambda group: (Entry(len),))
    with pytest.raises(MissingError, match=r"entry point guest\.f of fly\.calls is no Registered"):
        library.find("guest.f")


# -- calls


def test_what_a_function_raises_is_told():
    def fails(A):
        raise KeyError("line one\nline two")

    library.register("my.fails", shape=lambda A: A, function=fails)
    with pytest.raises(InputError, match=r"^my\.fails: 'line one"):
        library.call("my.fails", [1], {})

    def refuses(A):
        raise UsageError("of its own")

    library.register("my.fails", shape=lambda A: A, function=refuses)
    with pytest.raises(UsageError, match="of its own"):
        library.call("my.fails", [1], {})


def test_an_array_of_no_dimensions_is_one():
    found = library.call("numpy.matmul", [np.ones(3), np.ones(3)], {})
    assert isinstance(found, np.ndarray)
    assert (found.shape, float(found)) == ((), 3.0)


def test_several_results():
    library.register(
        "my.split", shape=lambda A: Made((A, A)), function=lambda A: [A[0] * 1.0, A[1].copy()]
    )
    found = library.call("my.split", [np.arange(4.0).reshape(2, 2)], {})
    assert isinstance(found, tuple)
    assert [type(one) for one in found] == [np.ndarray, np.ndarray]


def test_a_function_without_out_gets_its_result_copied():
    library.register("my.add", shape=lambda A: A, function=lambda A: A + 1, takes_out=False)
    out = np.zeros(3)
    library.call("my.add", [np.ones(3)], {"out": out})
    np.testing.assert_array_equal(out, np.full(3, 2.0))


def test_functions_of_torch_and_of_numpy_take_arrays_of_either():
    torch = pytest.importorskip("torch")
    a, b = normal(3, 4), normal(4, 5)
    s, t = torch.from_numpy(a), torch.from_numpy(b)
    for name in ("torch.matmul", "numpy.matmul"):
        found = library.call(name, [a, b], {})
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, a @ b, rtol=1e-5)
        other = library.call(name, [s, t], {})
        assert isinstance(other, torch.Tensor)
        np.testing.assert_allclose(other.numpy(), a @ b, rtol=1e-5)
        for out in (np.zeros((3, 5), np.float32), torch.zeros(3, 5)):
            library.call(name, [a, b], {"out": out})
            np.testing.assert_allclose(np.asarray(out), a @ b, rtol=1e-5)
    bias, out = normal(5), np.zeros((3, 5), np.float32)
    library.call("torch.nn.functional.linear", [a, b.T, bias], {"out": out})
    np.testing.assert_allclose(out, a @ b + bias, rtol=1e-5)


def test_bfloat16_of_ml_dtypes():
    torch = pytest.importorskip("torch")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = normal(2, 2).astype(ml_dtypes.bfloat16)
    found = library.call("torch.matmul", [a, a], {})
    assert found.dtype == a.dtype
    t = torch.from_numpy(a.view("i2")).view(torch.bfloat16)
    np.testing.assert_array_equal(found.view("i2"), (t @ t).view(torch.int16).numpy())


# -- shape rules


def like(*shape: int, dtype: str = "f32") -> Like:
    return Like(dtype, shape)


CASES = [
    ("torch.matmul", [(3, 4), (4, 5)]),
    ("torch.matmul", [(4,), (4, 5)]),
    ("torch.matmul", [(3, 4), (4,)]),
    ("torch.matmul", [(4,), (4,)]),
    ("torch.matmul", [(7, 3, 4), (7, 4, 5)]),
    ("torch.matmul", [(7, 3, 4), (4, 5)]),
    ("torch.matmul", [(3, 4), (7, 4, 5)]),
    ("torch.matmul", [(2, 7, 3, 4), (4,)]),
    ("torch.matmul", [(3, 0), (0, 5)]),
    ("numpy.matmul", [(3, 4), (4, 5)]),
    ("numpy.matmul", [(7, 3, 4), (7, 4, 5)]),
    ("numpy.matmul", [(4,), (7, 4, 5)]),
    ("torch.mm", [(3, 4), (4, 5)]),
    ("torch.bmm", [(7, 3, 4), (7, 4, 5)]),
    ("torch.addmm", [(5,), (3, 4), (4, 5)]),
    ("torch.addmm", [(3, 5), (3, 4), (4, 5)]),
    ("torch.nn.functional.linear", [(3, 4), (5, 4)]),
    ("torch.nn.functional.linear", [(7, 3, 4), (5, 4), (5,)]),
    ("torch.nn.functional.linear", [(4,), (5, 4), (5,)]),
]


@pytest.mark.parametrize(("name", "shapes"), CASES)
def test_rules_say_what_the_functions_make(name, shapes):
    pytest.importorskip("torch")
    rule = BUILT_IN[name].shape(*(like(*shape) for shape in shapes))
    assert all(a == b for a, b, _ in rule.equal)
    found = library.call(name, [normal(*shape) for shape in shapes], {})
    (made,) = rule.results
    assert made.shape == found.shape
    assert found.flags.c_contiguous


def test_every_function_has_a_case():
    assert {name for name, _ in CASES} == set(BUILT_IN)


@pytest.mark.parametrize(
    ("name", "shapes", "wrong"),
    [
        ("torch.matmul", [(3, 4), (3, 5)], [(4, 3, "the inner extents")]),
        ("torch.matmul", [(7, 3, 4), (8, 4, 5)], [(7, 8, "the batches' extents")]),
        ("torch.mm", [(3, 4), (3, 5)], [(4, 3, "the inner extents")]),
        ("torch.addmm", [(3, 6), (3, 4), (4, 5)], [(6, 5, "input's extents")]),
        ("torch.addmm", [(6,), (3, 4), (4, 5)], [(6, 5, "input's extents")]),
        ("torch.nn.functional.linear", [(3, 4), (5, 3)], [(4, 3, "the inner extents")]),
        ("torch.nn.functional.linear", [(3, 4), (5, 4), (4,)], [(4, 5, "bias's extents")]),
    ],
)
def test_what_has_to_be_equal(name, shapes, wrong):
    """Extents may be symbolic: a rule names the pairs, and does not compare them."""
    pytest.importorskip("torch")
    rule = BUILT_IN[name].shape(*(like(*shape) for shape in shapes))
    assert [pair for pair in rule.equal if pair[0] != pair[1]] == wrong
    with pytest.raises(InputError):
        library.call(name, [normal(*shape) for shape in shapes], {})


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("torch.matmul", [like(3, 4), 3], "an argument is no tensor"),
        ("torch.matmul", [like(), like(3)], "an argument has no dimensions"),
        ("torch.matmul", [like(3, 4), like(4, 5, dtype="f16")], "the tensors are of f16 and f32"),
        ("torch.matmul", [like(2, 3, 4), like(1, 2, 4, 5)], "have 3 and 4 dimensions"),
        ("torch.mm", [like(4), like(4, 5)], "input has 1 dimensions, and not 2"),
        ("torch.mm", [like(3, 4), like(4)], "mat2 has 1 dimensions, and not 2"),
        ("torch.bmm", [like(3, 4), like(1, 4, 5)], "input has 2 dimensions, and not 3"),
        ("torch.addmm", [like(1, 3, 5), like(3, 4), like(4, 5)], "input has 3 dimensions"),
        ("torch.nn.functional.linear", [like(3, 4), like(4)], "weight has 1 dimensions"),
        ("torch.nn.functional.linear", [like(3, 4), like(5, 4), like(1, 5)], "bias has 2"),
        ("torch.nn.functional.linear", [like(), like(5, 4)], "input has no dimensions"),
    ],
)
def test_what_a_rule_refuses(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        BUILT_IN[name].shape(*arguments)
