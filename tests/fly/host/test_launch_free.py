"""Programs that launch no kernel: library calls alone, views of arguments, integers. By every
reader, on chips of each kind."""

# ruff: noqa: F821  (extents are named by strings)

import sys

import numpy as np
import pytest
from fly_host.library import Like

import fly
import fly.expr as fx
from fly import CompileOptions

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


def product(A: fx.Tensor[fx.Float32, "m", "k"], B: fx.Tensor[fx.Float32, "k", "n"]):
    return fx.call("torch.matmul", A, B)


def in_place(A: fx.Tensor[fx.Float32, "m", "k"], B: fx.Tensor[fx.Float32, "k", "n"], C: fx.Tensor):
    fx.call("torch.matmul", A, B, out=C)


def sizes(A: fx.Tensor[fx.Float32, "m", "n"]):
    return A.shape[0] * A.shape[1], A


def diagonal(A: fx.Tensor[fx.Float32, "m", "n"], count: fx.Int32):
    return fx.make_view(fx.get_iter(A), fx.make_layout(count, A.shape[1] + 1))


def blocks(A: fx.Tensor[fx.Float32, "n", 4]):
    return fx.make_view(fx.get_iter(A), fx.make_layout((A.shape[0], 2, 2), (4, 1, 2)))


@pytest.fixture(params=["interp", "py", "jit"])
def compiled(request):
    def compile(function, target="gfx942"):
        return fly.jit(target=target, options=CompileOptions(host=request.param))(function)

    return compile


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_a_library_call_alone(compiled, target):
    torch = pytest.importorskip("torch")
    function, writing = compiled(product, target), compiled(in_place, target)
    for _ in range(3):  # the second call of a kind may be native code's
        np.testing.assert_array_equal(function(A, B), A @ B)
        found = function(torch.from_numpy(A), torch.from_numpy(B))
        assert isinstance(found, torch.Tensor)
        C = np.zeros((2, 4), np.float32)
        assert writing(A, B, C) is None
        np.testing.assert_array_equal(C, A @ B)
    with pytest.raises(fly.InputError, match="extent k is 3 in A, but 2 in B"):
        function(A, B[:2])
    assert not function.compile(target=target).kernels


def test_what_needs_no_device(compiled):
    function = compiled(sizes)
    for _ in range(3):
        count, same = function(A)
        assert count == 6
        assert same is A


def test_a_view_of_an_argument(compiled):
    torch = pytest.importorskip("torch")
    function = compiled(diagonal)
    for _ in range(3):
        seen = function(A, 2)
        assert seen.tolist() == [0, 4]
        assert np.shares_memory(seen, A)
        assert function(A, 0).shape == (0,)
        tensor = torch.from_numpy(A)
        assert function(tensor, 2).data_ptr() == tensor.data_ptr()
        message = "result: the view reaches over 9 elements, and A over 6"
        with pytest.raises(fly.InputError, match=message):
            function(A, 3)
        with pytest.raises(fly.InputError, match="result: extent 0 is -1, less than 0"):
            function(A, -1)
        with pytest.raises(fly.InputError, match="and A over 0"):
            function(A[:0], 1)


def test_a_view_of_more_dimensions(compiled):
    function = compiled(blocks)
    array = B.reshape(3, 4)
    for _ in range(2):
        wanted = array.reshape(3, 2, 2).transpose(0, 2, 1)
        np.testing.assert_array_equal(function(array), wanted)


def narrow(A: fx.Tensor[fx.BFloat16, "m", "k"], B: fx.Tensor[fx.BFloat16, "k", "n"]):
    return fx.call("torch.matmul", A, B)


def narrow_in_numpy(A: fx.Tensor[fx.BFloat16, "m", "k"], B: fx.Tensor[fx.BFloat16, "k", "n"]):
    C = fx.empty((A.shape[0], B.shape[1]), fx.BFloat16)
    fx.call("tests.product", A, B, out=C)
    return C


fly.register_call(
    "tests.product",
    shape=lambda A, B, out=None: Like(A.dtype, (A.shape[0], B.shape[1])),
    function=lambda A, B: (A.astype("f4") @ B.astype("f4")).astype(A.dtype),
    takes_out=False,
)


def bits(array: np.ndarray) -> np.ndarray:
    """The bits of bf16 numbers that are exact."""
    return (array.view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("function", [narrow, narrow_in_numpy])
def test_bf16_as_bits_is_passed_as_bf16(compiled, function):
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    function = compiled(function)
    for _ in range(3):
        found = function(bits(A), bits(B))
        assert found.dtype == np.uint16
        np.testing.assert_array_equal(found, bits(A @ B))


def test_bf16_as_bits_needs_ml_dtypes_where_torch_is_not_called(compiled, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(fly.MissingError, match="an array holds bfloat16 as its bits") as caught:
        compiled(narrow_in_numpy)(bits(A), bits(B))
    assert "install ml_dtypes" in str(caught.value.hint)


def test_bf16_as_bits_needs_no_ml_dtypes_for_torch(compiled, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    np.testing.assert_array_equal(compiled(narrow)(bits(A), bits(B)), bits(A @ B))
