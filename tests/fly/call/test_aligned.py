"""`fx.aligned`: what wide copies rely on, and what launches check."""

import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_trace.signatures import signature
from fly_trace.signatures.annotations import TensorAnnotation

import fly
import fly.expr as fx

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))


@fly.kernel
def copy_kernel(A: fx.Tensor[fx.Float32, fx.aligned(16)], B: fx.Tensor):
    source = fx.logical_divide(A, fx.make_layout(4, 1))[None, fx.thread_idx.x]
    held = fx.make_fragment_like(source)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), source, held)
    for i in fx.range_constexpr(4):
        B[4 * fx.thread_idx.x + i] = held[i]


@fly.jit
def copy(A: fx.Tensor[fx.Float32, 256, fx.aligned(16)], B: fx.Tensor[fx.Float32, 256]):
    copy_kernel(A, B).launch(grid=1, block=64)


@fly.jit
def copy_any(A: fx.Tensor[fx.Float32, 256], B: fx.Tensor[fx.Float32, 256]):
    copy_kernel(A, B).launch(grid=1, block=64)


@fly.kernel
def single_kernel(A: fx.Tensor, B: fx.Tensor):
    B[fx.thread_idx.x] = A[fx.thread_idx.x]


@fly.jit
def single(A: fx.Tensor[fx.Float32, 64, fx.aligned(16)], B: fx.Tensor[fx.Float32, 64]):
    single_kernel(A, B).launch(grid=1, block=64)


def shifted(shape: tuple[int, ...], dtype: type, elements: int) -> np.ndarray:
    """Random numbers, so many elements behind a multiple of 64 bytes."""
    count = int(np.prod(shape))
    memory = np.zeros(count + 128, dtype)
    start = -(memory.ctypes.data // memory.itemsize) % (64 // memory.itemsize) + elements
    made = memory[start : start + count].reshape(shape)
    made[:] = np.random.default_rng(elements).standard_normal(shape)
    return made


def test_views_that_are_not_aligned_are_refused():
    """At first, and by native code that was made for others."""
    for _ in range(3):
        for elements in (0, 4, 8):
            a, b = shifted((256,), np.float32, elements), np.zeros(256, np.float32)
            copy(a, b)
            np.testing.assert_array_equal(a, b)
        for elements in (1, 2, 3, 5):
            b = np.zeros(256, np.float32)
            message = "A must begin at a multiple of 16 bytes in memory, but the array does not"
            with pytest.raises(InputError, match=message):
                copy(shifted((256,), np.float32, elements), b)
            assert not b.any()
    # B is not asked for anything.
    a, b = shifted((256,), np.float32, 0), shifted((256,), np.float32, 1)
    copy(a, b)
    np.testing.assert_array_equal(a, b)


def test_a_kernel_asks_its_host_function():
    with pytest.raises(InputError, match="A of copy_kernel is a tensor of f32, aligned to 16 byte"):
        copy_any.compile(target="gfx942")


def test_the_annotation():
    wide = fx.Tensor[fx.Float16, "n", 4, fx.aligned(16)]
    assert wide == TensorAnnotation(fx.Float16, ("n", 4), 16)
    # Every array has the alignment of its element type.
    assert fx.Tensor[fx.Float32, "n", fx.aligned(4)] == fx.Tensor[fx.Float32, "n"]
    assert fx.Tensor[fx.Float32, (), fx.aligned(8)] == TensorAnnotation(fx.Float32, (), 8)
    for wrong in (0, 12, -4, 4.0, True):
        with pytest.raises(ValueError, match="an alignment must be a power of two"):
            fx.aligned(wrong)
    with pytest.raises(TypeError, match=r"an extent of fx\.Tensor"):
        fx.Tensor[fx.Float32, fx.aligned(8), "n"]


def test_the_text_of_signatures():
    for text in ("f16[M,8]{align=16}", "f16[M,?:?,1]{align=16}", "f32[]{align=8}"):
        (found,) = signature.parse(f"A: {text}").values()
        assert str(found) == text
    (found,) = signature.parse("A: f32[n{div=4}]{align=4}").values()
    assert str(found) == "f32[n{div=4}]"
    with pytest.raises(UsageError, match="an alignment is a power of two, not 12"):
        signature.parse("A: f32[n]{align=12}")


def test_an_array_of_any_strides_keeps_it():
    rows, b = shifted((64, 2), np.float32, 0), np.zeros(64, np.float32)
    single(rows[:, 0], b)
    np.testing.assert_array_equal(b, rows[:, 0])
    with pytest.raises(InputError, match="A must begin at a multiple of 16 bytes"):
        single(rows[:, 1], b)


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_flash_attention_is_right_or_refuses(name):
    from flash_attention import flash_attention_mfma

    given = {one: shifted((1, 2, 70, 64), np.float16, 0) for one in ("q", "k", "v")}
    expected = flash_attention_mfma(*given.values())
    for elements in (1, 2, 4):
        odd = shifted((1, 2, 70, 64), np.float16, elements)
        with pytest.raises(InputError, match=f"{name.upper()} must begin at a multiple of 16 by"):
            flash_attention_mfma(*(given | {name: odd}).values())
    even = shifted((1, 2, 70, 64), np.float16, 8)
    even[:] = given[name]
    np.testing.assert_array_equal(flash_attention_mfma(*(given | {name: even}).values()), expected)


def test_flash_attention_refuses_rows_that_are_not_adjacent():
    from flash_attention import flash_attention_mfma

    wide = shifted((1, 2, 64, 128), np.float16, 0)
    plain = shifted((1, 2, 64, 64), np.float16, 0)
    by_length = np.ascontiguousarray(plain.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    for odd in (wide[..., :64], by_length):
        with pytest.raises(InputError, match="the rows of a head of K must be adjacent"):
            flash_attention_mfma(plain, odd, plain)
    with pytest.raises(InputError, match="the rows of a head of Q must be adjacent"):
        flash_attention_mfma(plain.transpose(0, 1, 3, 2), plain, plain)
    # Heads may lie anywhere, at multiples of 16 bytes.
    heads = shifted((1, 2, 128, 64), np.float16, 0)[:, :, :64]
    np.testing.assert_array_equal(
        flash_attention_mfma(heads, heads, heads),
        flash_attention_mfma(*[np.ascontiguousarray(heads)] * 3),
    )


def test_pipelined_gemm_is_right_or_refuses():
    from pipelined_gemm import pipelined_gemm_fma

    b = shifted((70, 64), np.float32, 0)
    rows = shifted((64, 132), np.float32, 0)
    given = {
        "wide": rows[:, :64],
        "rows of 67": shifted((64, 67), np.float32, 0)[:, :64],
        "every second": rows[:, :128:2],
        "by columns": np.asfortranarray(rows[:, :64]),
    }
    for name, a in given.items():
        c, exact = pipelined_gemm_fma(a, b), a.astype(np.float64) @ b.T.astype(np.float64)
        np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(pipelined_gemm_fma(b, a), exact.T, rtol=1e-4, atol=1e-4)
    for elements in (1, 2, 3):
        odd = shifted((64, 64), np.float32, elements)
        with pytest.raises(InputError, match="A must begin at a multiple of 16 bytes"):
            pipelined_gemm_fma(odd, b)
        with pytest.raises(InputError, match="B must begin at a multiple of 16 bytes"):
            pipelined_gemm_fma(b, odd)
