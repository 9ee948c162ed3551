"""Kernels with the instructions of a test's plugin."""

from plugin_atoms import PLUGIN

import fly
import fly.expr as fx

BLOCK = 64


@fly.kernel
def products_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    tid = fx.thread_idx.x
    flip = fx.make_copy_atom(fx.twice.Flip(32), fx.Float32)
    plain = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    product = fx.make_mma_atom(fx.twice.Fma(fx.Float32))
    a, b, c = [fx.logical_divide(one, fx.make_layout(1, 1))[None, tid] for one in (A, B, C)]
    x, y, z = [fx.make_fragment_like(one) for one in (a, b, c)]
    fx.copy(flip, a, x)
    fx.copy(plain, b, y)
    z.fill(1.0)
    fx.mma_atom_call(product, z, x, y, z)
    fx.copy(plain, z, c)


@fly.jit(plugins=[PLUGIN])
def products(
    A: fx.Tensor[fx.Float32, 64], B: fx.Tensor[fx.Float32, 64], C: fx.Tensor[fx.Float32, 64]
):
    products_kernel(A, B, C).launch(grid=1, block=BLOCK)


@fly.kernel
def tiles_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, product: fx.TiledMma):
    """C = 2·(~A)·Bᵀ, an 8×8 tile: each thread computes an element."""
    thread = fx.thread_idx.x
    flip = fx.make_copy_atom(fx.twice.Flip(32), fx.Float32)
    plain = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy_a = fx.make_tiled_copy_A(flip, product).get_slice(thread)
    copy_b = fx.make_tiled_copy_B(plain, product).get_slice(thread)
    copy_c = fx.make_tiled_copy_C(plain, product).get_slice(thread)
    own = product.get_slice(thread)
    a, b, c = own.make_fragment_A(A), own.make_fragment_B(B), own.make_fragment_C(C)
    c.fill(0.0)
    fx.copy(flip, copy_a.partition_S(A), copy_a.retile(a))
    fx.copy(plain, copy_b.partition_S(B), copy_b.retile(b))
    fx.gemm(product, c, a, b, c)
    fx.copy(plain, copy_c.retile(c), copy_c.partition_D(C))


@fly.jit(plugins=[PLUGIN])
def tiles(
    A: fx.Tensor[fx.Float32, 8, 4], B: fx.Tensor[fx.Float32, 8, 4], C: fx.Tensor[fx.Float32, 8, 8]
):
    atom = fx.make_mma_atom(fx.twice.Fma(fx.Float32))
    product = fx.make_tiled_mma(atom, fx.make_layout((8, 8, 1), (1, 8, 0)))
    tiles_kernel(A, B, C, product).launch(grid=1, block=BLOCK)


@fly.kernel
def wrong_kernel(C: fx.Tensor):
    fx.make_mma_atom(fx.twice.Fma(fx.Float16))


@fly.jit(plugins=[PLUGIN])
def wrong(C: fx.Tensor[fx.Float32, 64]):
    wrong_kernel(C).launch(grid=1, block=BLOCK)
