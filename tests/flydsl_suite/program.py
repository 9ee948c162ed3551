"""A program for a Python with FlyDSL and torch, which uses the HIP library of its environment.

    fly-run --hip gfx942 -- python program.py

FlyDSL compiles the kernels for the chip of FLYDSL_GPU_ARCH. Its runtime, libfly_jit_runtime.so, is
linked with libamdhip64.so.7, and loads, launches and unloads them. The tensors are torch's on the
CPU. Prints a line for each kernel: its name, and right or what is wrong.
"""

import ctypes
import os

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 64


@flyc.kernel
def scale_kernel(A: fx.Tensor, B: fx.Tensor, factor: fx.Float32, tiled_copy: fx.TiledCopy):
    """B = factor · A in rows of 4, with predicates at the edges."""
    i, j = fx.block_idx.x, fx.block_idx.y
    M, N = A.shape.unpack()
    places = fx.make_view((0, 0), fx.make_identity_layout((M, N)))
    tile = tiled_copy.tile_mn
    a, b, at = (fx.flat_divide(one, tile)[None, None, i, j] for one in (A, B, places))
    mine = tiled_copy.get_slice(fx.thread_idx.x)
    source, target = mine.partition_S(a), mine.partition_D(b)
    where = mine.partition_S(at)[(0, None), None, None]
    values, results = fx.make_fragment_like(source), fx.make_fragment_like(target)
    inside = fx.make_fragment_like(where, dtype=fx.Boolean)
    for n in fx.range_constexpr(fx.size(inside.shape).unpack()):
        inside[n] = fx.elem_less(where[n], (M, N))
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    fx.copy(atom, source, values, pred=inside)
    results.store(values.load() * factor)
    fx.copy(atom, results, target, pred=inside)


@flyc.jit
def scale(A: fx.Tensor, B: fx.Tensor, factor: fx.Float32, stream: fx.Stream = fx.Stream(None)):
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    threads = fx.make_ordered_layout((4, 16), order=(1, 0))
    tiled_copy = fx.make_tiled_copy_tv(atom, threads, fx.make_ordered_layout((1, 4), order=(0, 1)))
    m, n = tiled_copy.tile_mn.unpack()
    M, N = A.shape.unpack()
    grid = ((M + m - 1) // m, (N + n - 1) // n, 1)
    scale_kernel(A, B, factor, tiled_copy).launch(grid=grid, block=(BLOCK, 1, 1), stream=stream)


@flyc.kernel
def reverse_kernel(A: fx.Tensor, B: fx.Tensor):
    """Each block writes its part of A backwards."""
    a, b = (fx.logical_divide(one, fx.make_layout(BLOCK, 1)) for one in (A, B))
    a, b = (fx.slice(one, (None, fx.block_idx.x)) for one in (a, b))
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    held = fx.make_rmem_tensor(1, fx.Float32)
    one = fx.make_layout(1, 1)
    sources, targets = fx.logical_divide(a, one), fx.logical_divide(b, one)
    fx.copy_atom_call(atom, fx.slice(sources, (None, fx.thread_idx.x)), held)
    fx.copy_atom_call(atom, held, fx.slice(targets, (None, BLOCK - 1 - fx.thread_idx.x)))


@flyc.jit
def reverse(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    reverse_kernel(A, B).launch(grid=(n // BLOCK, 1, 1), block=(BLOCK, 1, 1), stream=stream)


def tell(name, found, wanted):
    told = "right" if torch.equal(found, wanted) else f"wrong: {found} instead of {wanted}"
    print(f"{name}: {told}", flush=True)


def main():
    hip = ctypes.CDLL("libamdhip64.so.7")
    a, b = torch.randn(37, 300), torch.zeros(37, 300)
    scale(a, b, 1.5)
    tell("scale", b, a * 1.5)
    stream = ctypes.c_void_p()
    assert hip.hipStreamCreate(ctypes.byref(stream)) == 0
    a, b = torch.randn(256), torch.zeros(256)
    for count in (256, 128):  # the second call is dispatched without compiling
        b.zero_()
        reverse(a, b, count, stream=fx.Stream(stream.value))
        wanted = torch.cat(
            [a[:count].reshape(-1, BLOCK).flip(1).reshape(-1), torch.zeros(256 - count)]
        )
        tell(f"reverse {count}", b, wanted)
    print("chip:", os.environ["FLYDSL_GPU_ARCH"])


if __name__ == "__main__":
    main()
