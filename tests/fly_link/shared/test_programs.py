"""Libraries run the host programs of test/lit/host as Python does: the same results, and the same
words for what is wrong. The programs are called on the CPU, in this process, as C calls them."""

# ruff: noqa: F821  (extents are named by strings)

import functools
import importlib.util
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from library_support import CUDA, ROCM, Library, tensor

import fly
import fly.expr as fx

PROGRAMS = Path(__file__).parents[3] / "test" / "lit" / "host"


def module(name: str) -> SimpleNamespace:
    spec = importlib.util.spec_from_file_location(f"library_{name}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found  # type: ignore[return-value]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library of a function of a file of test/lit/host, or of a function."""

    @functools.cache
    def find(file, name="", signature=None) -> Library:
        function = getattr(module(file), name) if isinstance(file, str) else file
        more = {} if signature is None else {"signature": signature}
        return Library.of(function, tmp_path_factory.mktemp("library"), **more)

    return find


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def refusal(library: Library, *arguments: object) -> str:
    """What the library and Python both say."""
    status, results = library.call(*arguments)
    assert status == 1
    assert all(result is None or result == 0 for result in results)
    names = [parameter.name for parameter in library.program.parameters]
    with pytest.raises(fly.FlyError) as caught:
        fly.load(library.image).run(dict(zip(names, arguments, strict=True)), device="cpu")
    assert library.error() == caught.value.message
    return caught.value.message


# -- results


@pytest.mark.parametrize(("m", "k", "n"), [(5, 17, 33), (1, 1, 1), (3, 2, 130), (2, 8, 0)])
def test_scratch_and_a_result(library, m, k, n):
    split_k = library("split_k", "split_k")
    A, B, bias = normal(m, k), normal(k, n, seed=1), normal(n, seed=2)
    for splits in (4, 1):
        status, (found,) = split_k.call(A, B, bias, splits)
        assert (status, split_k.error()) == (0, "")
        np.testing.assert_allclose(found, np.maximum(A @ B + bias, 0), rtol=1e-4, atol=1e-5)
    assert refusal(split_k, A, B, bias, 0) == "0 splits"


@pytest.mark.parametrize(("n", "passes"), [(1, 0), (2, 1), (64, 1), (65, 2), (4097, 3)])
def test_a_loop_that_replaces_a_tensor(library, n, passes):
    total = library("reduction", "total")
    A = np.random.default_rng(n).integers(-8, 9, n).astype(np.float32)
    status, (found, count) = total.call(A)
    assert (status, count) == (0, passes)
    assert found[0] == A.sum()


@pytest.mark.parametrize("iterations", [0, 1, 2, 5, -3])
def test_tensors_that_change_places(library, iterations):
    jacobi = library("jacobi", "jacobi")
    wanted, before, A = normal(100), normal(100), normal(100)
    for _ in range(iterations):
        before, wanted = wanted, wanted.copy()
        wanted[1:-1] = (before[:-2] + before[2:]) * np.float32(0.5)
    status, (found, other) = jacobi.call(A, iterations)
    assert status == 0
    np.testing.assert_array_equal(found, wanted)
    if iterations > 0:
        np.testing.assert_array_equal(other, before)


@pytest.mark.parametrize("n", [1, 5, 100, 101, 1200])
@pytest.mark.parametrize("doubled", [False, True])
def test_a_branch(library, n, doubled):
    A = normal(n)
    status, (found, launches) = library("branch", "chosen").call(A, doubled)
    assert (status, launches) == (0, 2 if n > 100 else 1)
    np.testing.assert_array_equal(found, A * np.float32(12 if doubled else 6))


def test_a_padded_split(library):
    pack = library("padded_split", "pack")
    for n, c in [(3, 10), (1, 4), (2, 1), (5, 8)]:
        A = normal(n, c)
        wanted = np.zeros((n, -(-c // 4) * 4), np.float32)
        wanted[:, :c] = A
        status, (found,) = pack.call(A)
        assert status == 0
        np.testing.assert_array_equal(found, wanted.reshape(n, -1, 4).transpose(1, 0, 2))


def test_a_view_of_a_parameter(library):
    A, B = normal(3, 5), np.zeros((3, 5), np.float32)
    status, (found, extent) = library(doubled).call(A, B)
    assert (status, extent) == (0, 5)
    np.testing.assert_array_equal(found, A.T * 2)


@fly.jit
def doubled(A: fx.Tensor[fx.Float32, "m", "n"], B: fx.Tensor[fx.Float32, "m", "n"]):
    m, n = A.shape[0], A.shape[1]
    scale_rows_kernel(A, B).launch(grid=m, block=n)
    T = fx.make_view(fx.get_iter(B), fx.make_layout((n, m), (1, n)))
    return T, n


# -- what is wrong


@fly.kernel
def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 128 + fx.thread_idx.x
    if i < n:
        C[i] = A[i] + B[i]


@fly.jit
def add(
    A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"], C: fx.Tensor[fx.Float32, "n"]
):
    n = A.shape[0]
    add_kernel(A, B, C, n).launch(grid=fx.ceildiv(n, 128), block=128)


def test_tensors_that_do_not_fit(library):
    made = library(add)
    A, B, C = normal(8), normal(8, seed=1), np.zeros(8, np.float32)
    assert made.call(A, B, C)[0] == 0
    np.testing.assert_array_equal(C, A + B)
    for wrong in (np.zeros(8), np.zeros(8, np.int32), np.zeros(8, bool), np.zeros(8, np.uint8)):
        assert refusal(made, A, wrong, C).startswith("B must be f32, but the array is ")
    assert refusal(made, normal(8, 1), B, C).endswith("shape (8, 1)")
    assert refusal(made, A, normal(), C).endswith("shape ()")
    assert refusal(made, A, B, np.zeros(7, np.float32)) == "extent n is 8 in A, but 7 in C"
    assert refusal(made, A[::2], B[:4], C[:4]).startswith("A must be contiguous in C order")
    # Tensors are looked at one by one before their extents are compared.
    assert refusal(made, normal(7), B, np.zeros(8)) == "C must be f32, but the array is f64"
    odd = np.frombuffer(bytes(40), np.uint8)[1:33].view(np.float32)
    assert refusal(made, A, odd, C) == "the elements of B are not aligned in memory"


def test_the_alignment_that_a_kernel_relies_on(library):
    made = library(add, signature="A: f32[n], B: f32[n]{align=32}, C: f32[n]")
    memory = np.zeros(32, np.float32)
    start = -(memory.ctypes.data // 4) % 8
    B, A, C = memory[start : start + 8], normal(8), np.zeros(8, np.float32)
    B[:] = normal(8, seed=1)
    assert made.call(A, B, C)[0] == 0
    np.testing.assert_array_equal(C, A + B)
    assert refusal(made, A, memory[start + 4 : start + 12], C) == (
        "B must begin at a multiple of 32 bytes in memory, but the array does not"
    )


def test_extents_strides_and_divisors(library):
    scale = library(scale_rows, signature="A: f32[4,?{div=8}:?{div=8},1], B: f32[?,?:?,?]")
    A, B = normal(4, 16), normal(4, 16)
    status, _ = scale.call(A, B)
    assert (status, scale.error()) == (0, "")
    assert refusal(scale, normal(5, 16), B) == (
        "extent 0 of A must be 4, but the array's shape is (5, 16)"
    )
    assert refusal(scale, normal(4, 12), B).startswith("A: extent 1 must be a multiple of 8")
    assert refusal(scale, normal(4, 36)[:, :16], B).startswith("A: stride 0 must be a multiple")
    assert refusal(scale, normal(16, 4).T, B).startswith("A has fixed strides: stride 1 must be 1")
    same = np.lib.stride_tricks.as_strided(normal(16), (4, 16), (0, 4))
    assert "elements of the array overlap in memory" in refusal(scale, A, same)


@fly.kernel
def scale_rows_kernel(A: fx.Tensor, B: fx.Tensor):
    i, j = fx.block_idx.x, fx.thread_idx.x
    B[i, j] = A[i, j] * 2.0


@fly.jit
def scale_rows(A: fx.Tensor, B: fx.Tensor):
    scale_rows_kernel(A, B).launch(grid=A.shape[0], block=A.shape[1])


def test_interleaved_elements_do_not_overlap(library):
    """Dimensions none of which steps over the other: only all places together tell."""
    scale = library(scale_rows, signature="A: f32[?,?], B: f32[?,?:?,?]")
    memory = np.zeros(64, np.float32)
    A = normal(2, 3)
    apart = np.lib.stride_tricks.as_strided(memory, (2, 3), (12, 8))
    assert scale.call(A, apart)[0] == 0
    np.testing.assert_array_equal(apart, A * 2)
    together = np.lib.stride_tricks.as_strided(memory, (3, 3), (12, 4))
    assert scale.call(normal(3, 3), together)[0] == 0
    together = np.lib.stride_tricks.as_strided(memory, (3, 4), (12, 4))
    assert "overlap in memory" in refusal(scale, normal(3, 4), together)


@fly.jit
def sized(A: fx.Tensor[fx.Float32, "n"], n: fx.Int64, block: fx.Int32):
    touch(A, fx.Int32(n)).launch(grid=n, block=block)


@fly.kernel
def touch(A: fx.Tensor, n: fx.Int32):
    if fx.thread_idx.x == 0:
        A[fx.block_idx.x % A.shape[0]] = 1.0


def test_launches_that_do_not_fit(library):
    made = library(sized)
    A = np.zeros(4, np.float32)
    assert made.call(A, 4, 32)[0] == 0
    assert made.call(A, 0, 32)[0] == 0  # launches nothing
    assert refusal(made, A, 4, 0) == "touch: a block of 0 work items"
    assert refusal(made, A, 4, -3) == "touch: a block of -3 work items"
    assert "is 2048 work items" in refusal(made, A, 4, 2048)
    assert refusal(made, A, -1, 32) == "touch: a grid of -1 workgroups"
    assert "workgroups in x; sm_90a has 2147483647" in refusal(made, A, 1 << 31, 32)


@fly.jit
def divided(A: fx.Tensor[fx.Float32, "n"], by: fx.Int64, shift: fx.Int64):
    n = (A.shape[0] // by) << shift
    touch(A, 1).launch(grid=fx.min(n, 4), block=32)


def test_integers_without_a_value(library):
    made = library(divided)
    A = np.zeros(64, np.float32)
    assert made.call(A, 2, 1)[0] == 0
    assert refusal(made, A, 0, 1).endswith("A.shape[0] // by: division by zero")
    assert refusal(made, A, 1, 64).endswith("a shift by 64")
    assert refusal(made, A, 1, -1).endswith("a shift by -1")
    assert refusal(made, A, 1, 60).endswith("the value does not fit in 64 bits")


@fly.jit
def halves(A: fx.Tensor[fx.Float32, "n"], h: fx.Float16, b: fx.BFloat16, d: fx.Float64):
    store_floats(A, h, b, d).launch(grid=1, block=32)


@fly.kernel
def store_floats(A: fx.Tensor, h: fx.Float16, b: fx.BFloat16, d: fx.Float64):
    if fx.thread_idx.x == 0:
        A[0] = fx.Float32(h)
        A[1] = fx.Float32(b)
        A[2] = fx.Float32(d)


def test_floats_are_rounded(library):
    made = library(halves)
    A = np.zeros(4, np.float32)
    numbers = [0.1, 1.0, 65504.0, 65519.0, 1e-7, 6e-8, 2.9e-8, 3.1e-8, -0.3, 1e-4, 6.1e-5, 0.0]
    for number in [*numbers, float("inf"), float("nan"), *normal(200).tolist()]:
        single = float(np.float32(number))
        assert made.call(A, single, single, single)[0] == 0
        with np.errstate(all="ignore"):
            wanted = [np.float16(single), _bf16(single), single]
        np.testing.assert_array_equal(A[:3], np.array(wanted, np.float32))
    assert refusal(made, A, 65520.0, 1.0, 1.0) == "h=65520.0 does not fit in f16"
    largest = float(np.finfo(np.float32).max)
    assert made.call(A, 1.0, largest, 1.0)[0] == 1
    assert made.error() == f"b={largest!r} does not fit in bf16"


def _bf16(value: float) -> np.float32:
    bits = np.float32(value).view(np.uint32)
    if np.isnan(value):
        return np.float32(value)
    return np.uint32((int(bits) + 0x7FFF + (int(bits) >> 16 & 1)) >> 16 << 16).view(np.float32)


# -- what only C can do wrong, and devices


def test_null_pointers_and_devices(library):
    made = library(add)
    A, C = normal(8), np.zeros(8, np.float32)
    assert made.call(A, None, C)[0] == 2
    assert made.error() == "B is a null pointer"
    assert made.call(A, tensor(A, (CUDA, 1)), C)[0] == 1
    assert made.error() == "A is in host memory, but B is on cuda:1"
    there = [tensor(array, (ROCM, 0)) for array in (A, A, C)]
    assert made.call(*there)[0] == 3
    assert made.error() == (
        "the library has no code for tensors on rocm:0; it has code for sm_90a, cpu"
    )
    shapeless = tensor(A)
    shapeless.shape = None
    assert made.call(A, shapeless, C)[0] == 1
    assert made.error() == "B has no shape: it is a null pointer"
    negative = tensor(A)
    negative.shape[0] = -1
    assert made.call(A, negative, C)[0] == 1
    assert made.error() == "extent 0 of B is -1"


def test_strides_and_offsets_of_dlpack(library):
    """Null strides are those of C order, and elements begin at `byte_offset`."""
    made = library(add)
    A, C = normal(16), np.zeros(8, np.float32)
    shifted = tensor(A[:8])
    shifted.byte_offset, shifted.strides = 32, None
    assert made.call(A[:8], shifted, C)[0] == 0
    np.testing.assert_array_equal(C, A[:8] + A[8:])


@fly.kernel
def outside_kernel(A: fx.Tensor, by: fx.Int32):
    A[fx.thread_idx.x + by] = 1.0


@fly.jit
def outside(A: fx.Tensor[fx.Float32, "n"], by: fx.Int32):
    T = fx.empty((32,), fx.Float32)
    outside_kernel(T, 0).launch(grid=1, block=32)
    outside_kernel(A, by).launch(grid=1, block=32)


def test_a_fault_of_a_kernel(library):
    """Kernels may access what they were given; the next call works."""
    made = library(outside)
    A = np.zeros(64, np.float32)
    assert made.call(A, 33)[0] == 4
    assert made.error().startswith("memory fault: 4 bytes at 0x")
    assert (
        "at the end of `A` (256 bytes); kernel outside_kernel_1 'store float' block (0, 0, 0)"
        in (made.error())
    )
    assert made.error().endswith("thread (31, 0, 0)")
    assert made.call(A, -1)[0] == 4
    assert "4 bytes before the start of `A`" in made.error()
    assert made.call(A, 32)[0] == 0
    assert made.error() == ""
    np.testing.assert_array_equal(A[32:], np.ones(32, np.float32))


def test_threads(library):
    """Each thread has an error of its own; launches take turns."""
    made = library("split_k", "split_k")
    A, B, bias = normal(5, 17), normal(17, 33, seed=1), normal(33, seed=2)
    wanted, failed = np.maximum(A @ B + bias, 0), []

    def work(splits: int) -> None:
        for _ in range(50):
            status, (found,) = made.call(A, B, bias, splits)
            error = made.error()
            if splits < 1:
                if (status, error) != (1, f"{splits} splits"):
                    failed.append((status, error))
            elif status or error or not np.allclose(found, wanted, rtol=1e-4, atol=1e-5):
                failed.append((status, error))

    threads = [threading.Thread(target=work, args=(splits,)) for splits in (4, 0, 2, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
