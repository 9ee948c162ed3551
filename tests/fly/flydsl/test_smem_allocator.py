"""SmemAllocator and SmemPtr: shared memory by offsets in one array of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import InputError

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl._mlir import ir
from fly.flydsl._mlir.dialects import vector
from fly.flydsl.compiler.kernel_function import CompilationContext
from fly.flydsl.expr import arith, gpu
from fly.flydsl.expr.typing import T
from fly.flydsl.utils.smem_allocator import (
    SmemAllocator,
    SmemPtr,
    get_mlir_type_align,
    get_mlir_type_size,
)

ALLOCATOR = SmemAllocator(None, arch="gfx942", global_sym_name="lds0")
WORDS = ALLOCATOR._align(ALLOCATOR.ptr, 16)
ALLOCATOR.ptr = WORDS + 64 * 4
HALVES = ALLOCATOR._align(ALLOCATOR.ptr, 16)
ALLOCATOR.ptr = HALVES + 64 * 2


@flyc.kernel
def kernel(A: fx.Tensor, Y: fx.Tensor):
    i = fx.thread_idx.x
    base = ALLOCATOR.get_base()
    words = SmemPtr(base, WORDS, T.f32, shape=(64,))
    halves = SmemPtr(base, HALVES, fx.Float16, shape=(16, 4))
    first = SmemPtr(base, WORDS, T.f32)
    words.get()
    halves.get()
    words.store(A[i], [i])
    SmemPtr.store(halves, A[i].to(fx.Float16), [i // 4, fx.Index(i % 4)])
    gpu.barrier()
    row = vector.load(
        T.vec(4, T.f16), halves.get(), [fx.Index(i % 16), arith.constant(0, index=True)]
    )
    Y[i] = fx.Float32(words.load([63 - i])) + fx.Float32(first.load())
    Y[i + 64] = fx.Float32(fx.Float16(halves.load([15 - i // 4, 3])))
    Y[i + 128] = fx.Float32(fx.Vector(row)[2])


@flyc.jit
def launch(A: fx.Tensor, Y: fx.Tensor):
    ALLOCATOR.finalized = False
    with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
        ALLOCATOR.finalize()
        assert ALLOCATOR.finalize() is None
    kernel(A, Y).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_arrays_at_offsets(target: str, monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", target)
    monkeypatch.setenv("FLY_STRICT", "1")
    given = np.random.default_rng(1).standard_normal(64).astype(np.float32)
    out = np.zeros(192, np.float32)
    launch(given, out)
    i, halves = np.arange(64), given.astype(np.float16).astype(np.float32).reshape(16, 4)
    np.testing.assert_array_equal(out[:64], given[::-1] + given[0])
    np.testing.assert_array_equal(out[64:128], halves[15 - i // 4, 3])
    np.testing.assert_array_equal(out[128:], halves[i % 16, 2])


def test_sizes():
    assert ALLOCATOR._align(17, 16) == 32
    with ir.Context(), ir.Location.unknown():
        for text, size in (("f32", 4), ("bf16", 2), ("i8", 1), ("i64", 8), ("f8E4M3FNUZ", 1)):
            assert get_mlir_type_size(ir.Type.parse(text)) == size
        wide = ir.Type.parse("vector<8x4xf16>")
        assert (get_mlir_type_size(wide), get_mlir_type_align(wide)) == (64, 16)


def test_more_than_a_workgroup_has():
    large = SmemAllocator(None, arch="gfx942")
    large.ptr = 65537
    with pytest.raises(InputError, match="65537 bytes of shared memory"):
        large.finalize()
