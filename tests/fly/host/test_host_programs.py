"""Host functions that create, return, loop, branch and call, on the emulator, by every reader.

The programs are those of test/lit/host, which says what they become.
"""

# ruff: noqa: F821  (extents are named by strings)

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from fly_host.library import Like

import fly
import fly.expr as fx
from fly import CompileOptions

PROGRAMS = Path(__file__).parents[3] / "test" / "lit" / "host"
READERS = ("interp", "py", "jit")


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"host_{name}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=READERS)
def compiled(request):
    """A program of a file, run by each of the readers."""

    def find(file: str, name: str):
        function = getattr(load(file), name)
        return fly.jit(options=find.options)(function.function)

    find.options = CompileOptions(host=request.param)
    return find


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("m", "k", "n"), [(5, 17, 33), (1, 1, 1), (3, 2, 130), (2, 8, 0)])
def test_split_k(compiled, m, k, n):
    split_k = compiled("split_k", "split_k")
    A, B, bias = normal(m, k), normal(k, n, seed=1), normal(n, seed=2)
    wanted = np.maximum(A @ B + bias, 0)
    for _ in range(2):  # the second call of a kind may be native code's
        found = split_k(A, B, bias)
        assert found.shape == (m, n)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(split_k(A, B, bias, 1), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(fly.InputError, match=r"^0 splits$"):
        split_k(A, B, bias, 0)


def test_a_padded_split_is_returned_in_blocks(compiled):
    pack = compiled("padded_split", "pack")
    for n, c in [(3, 10), (1, 4), (2, 1), (5, 8)]:
        A = normal(n, c)
        blocks = -(-c // 4)
        wanted = np.zeros((n, blocks * 4), np.float32)
        wanted[:, :c] = A
        wanted = wanted.reshape(n, blocks, 4).transpose(1, 0, 2)
        for _ in range(2):
            np.testing.assert_array_equal(pack(A), wanted)


def test_a_padded_split_has_logical_strides(compiled):
    rows = compiled("padded_split", "rows")
    for _ in range(2):
        found = rows()
        assert found.shape == (3, 10)
        assert found.strides == (64, 4)
        np.testing.assert_array_equal(found, np.arange(3)[:, None] * 100 + np.arange(10))


@fly.kernel
def fill_all(R: fx.Tensor):
    R[fx.thread_idx.x] = 7.0


def test_kernels_may_write_the_padding(compiled):
    def padded(A: fx.Tensor):
        rows = fx.Allocation().split(0, 16, padded=True)
        R = fx.empty((A.shape[0],), fx.Float32, rows)
        if A.shape[0] > 40:
            fill_all(R).launch(grid=1, block=48)
        return R

    function = fly.jit(options=compiled.options)(padded)
    for _ in range(4):
        np.testing.assert_array_equal(function(normal(42)), np.full(42, 7, np.float32))


def test_a_split_by_a_computed_factor(compiled):
    rounded = compiled("padded_split", "rounded")
    wanted = np.arange(3)[:, None] * 100 + np.arange(24)
    for width in (8, 3, 24):
        found = rounded(width)
        assert found.shape == (24 // width, 3, width)
        np.testing.assert_array_equal(found.transpose(1, 0, 2).reshape(3, 24), wanted)
    with pytest.raises(fly.InputError, match=r"C: split\(1, 5\): the extent 24 is not a multiple"):
        rounded(5)
    with pytest.raises(fly.InputError, match=r"C: split\(1, 0\): the factor is less than 1"):
        rounded(0)


@pytest.mark.parametrize(("n", "passes"), [(1, 0), (2, 1), (64, 1), (65, 2), (4097, 3)])
def test_a_reduction_in_passes(compiled, n, passes):
    total = compiled("reduction", "total")
    A = np.random.default_rng(n).integers(-8, 9, n).astype(np.float32)
    for _ in range(2):
        found, count = total(A)
        assert (found.shape, count) == ((1,), passes)
        assert found[0] == A.sum()


@pytest.mark.parametrize("iterations", [0, 1, 2, 5, -3])
def test_jacobi(compiled, iterations):
    jacobi = compiled("jacobi", "jacobi")
    start = normal(100)
    wanted, before = start.copy(), start.copy()
    for _ in range(iterations):
        before, wanted = wanted, wanted.copy()
        wanted[1:-1] = (before[:-2] + before[2:]) * np.float32(0.5)
    for _ in range(2):
        A = start.copy()
        found, other = jacobi(A, iterations)
        np.testing.assert_array_equal(found, wanted)
        assert (found is A) == (iterations < 1 or iterations % 2 == 0)
        assert (found is A) != (other is A)
        if iterations > 0:
            np.testing.assert_array_equal(other, before)


@pytest.mark.parametrize("n", [1, 5, 100, 101, 1200])
@pytest.mark.parametrize("doubled", [False, True])
def test_a_branch_on_a_size(compiled, n, doubled):
    chosen = compiled("branch", "chosen")
    A = normal(n)
    for _ in range(2):
        found, launches = chosen(A, doubled)
        assert launches == (2 if n > 100 else 1)
        np.testing.assert_array_equal(found, A * np.float32(12 if doubled else 6))


def test_a_library_function_between_kernels(compiled):
    torch = pytest.importorskip("torch")
    mlp = compiled("library_call", "mlp")
    X, W, V = normal(3, 4), normal(4, 70, seed=1), normal(70, 7, seed=2)
    wanted = np.maximum(np.maximum(X @ W, 0) @ V, 0)
    for _ in range(2):
        np.testing.assert_allclose(mlp(X, W, V), wanted, rtol=1e-4, atol=1e-5)
        found = mlp(*map(torch.from_numpy, (X, W, V)))
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_a_prepared_call_with_library_functions(compiled):
    torch = pytest.importorskip("torch")
    mlp = compiled("library_call", "mlp")
    X, W, V = (torch.from_numpy(normal(*shape)) for shape in ((3, 4), (4, 70), (70, 7)))
    handle = mlp.prepare(X, W, V)
    for scale in (1, 2):
        X *= scale
        wanted = torch.relu(torch.relu(X @ W) @ V)
        torch.testing.assert_close(handle(), wanted, rtol=1e-4, atol=1e-5)
    assert handle() is handle()


def test_a_function_of_ones_own(compiled):
    own = compiled("library_call", "own")
    X = normal(3, 5)
    for shift in (1, 2, 2):
        np.testing.assert_array_equal(own(X, shift), np.maximum(np.roll(X, shift, 1), 0))


def test_a_function_that_returns_something_else_than_its_rule_says():
    relu = load("library_call").relu

    def shorter(A, shift, axis):
        return A[:, shift:]

    fly.register_call("tests.rolled", shape=lambda A, shift, axis=0: A, function=shorter)

    @fly.jit
    def host(X: fx.Tensor[fx.Float32, "b", "i"]):
        B = fx.call("tests.rolled", X, 1, axis=1)
        relu(X, B).launch(grid=X.shape[0], block=64)
        return B

    with pytest.raises(fly.InputError, match=r"gave shape \(3, 4\)"):
        host(normal(3, 5))


def test_another_shape_rule_is_another_trace():
    relu = load("library_call").relu

    @fly.jit
    def host(X: fx.Tensor[fx.Float32, "b", "i"]):
        B = fx.call("tests.cut", X)
        C = fx.empty_like(B)
        relu(B, C).launch(grid=X.shape[0], block=64)
        return C

    X = np.abs(normal(3, 5))
    for count in (2, 4):
        fly.register_call(
            "tests.cut",
            shape=lambda A, count=count: Like(A.dtype, (A.shape[0], count)),
            function=lambda A, count=count: np.ascontiguousarray(A[:, :count]),
        )
        np.testing.assert_array_equal(host(X), X[:, :count])


def test_a_library_function_is_not_called_where_it_is_not_registered(tmp_path, monkeypatch):
    from fly_host import library

    own = load("library_call").own
    image = own.compile(normal(3, 5), 1)
    image.save(tmp_path / "own.hsaco")
    monkeypatch.setattr(library, "registered", {})
    with pytest.raises(fly.MissingError, match=r"calls 'tests.rolled', which is not registered"):
        fly.load(tmp_path / "own.hsaco")(normal(3, 5), 1)


class Streams:
    """A device's launches, by the stream they were on."""

    def __init__(self, monkeypatch):
        from fly_run.launch import machine

        self.seen = []
        launch = machine.launch_packed

        def recorded(device, function, kernel, grid, block, shared, packed, stream, wait):
            self.seen.append((kernel, stream))
            assert wait  # host arrays
            return launch(device, function, kernel, grid, block, shared, packed)

        monkeypatch.setattr(machine, "launch_packed", recorded)


def test_launches_are_on_the_stream_that_is_given(monkeypatch):
    streams = Streams(monkeypatch)

    @fly.kernel
    def one(A: fx.Tensor):
        A[fx.thread_idx.x] = A[fx.thread_idx.x] + 1.0

    @fly.jit(options=CompileOptions(host="interp"))
    def host(A: fx.Tensor[fx.Float32, "n"], s: fx.Stream = fx.Stream(None)):
        one(A).launch(grid=1, block=A.shape[0], stream=s)
        one(A).launch(grid=1, block=A.shape[0])

    A, stream = np.zeros(4, np.float32), object()
    host(A, stream)
    host(A)
    assert streams.seen == [("one", stream), ("one", None), ("one", None), ("one", None)]
    np.testing.assert_array_equal(A, np.full(4, 4, np.float32))


@fly.kernel
def lanes_kernel(Y: fx.Tensor):
    if fx.thread_idx.x == 0:
        Y[fx.block_idx.x] = fx.block_dim.x


@fly.jit
def lanes(Y: fx.Tensor[fx.Int32, "n"]):
    wave = fx.num_warp_threads()
    lanes_kernel(Y).launch(grid=(Y.shape[0] * wave) // wave, block=wave)


@pytest.mark.parametrize(("target", "size"), [("gfx942", 64), ("gfx1100", 32), ("sm_90a", 32)])
def test_a_block_of_one_wave(target, size):
    Y = np.zeros(3, np.int32)
    fly.jit(target=target)(lanes.function)(Y)
    assert Y.tolist() == [size] * 3
