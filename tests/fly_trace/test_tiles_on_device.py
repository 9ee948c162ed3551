"""What the tiled language says of vectors, views, structs and predicates, on the emulator."""

# ruff: noqa: F821  (extents are named by strings)

import numpy as np
import pytest
from fly_common.errors import FlyError

import fly
import fly.expr as fx

LANES = 64


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@fly.kernel
def vector_kernel(X: fx.Tensor, N: fx.Tensor, Y: fx.Tensor, J: fx.Tensor):
    t = fx.thread_idx.x
    v = X[t, None].load()
    w = fx.Float32x4(0.0)
    for _ in range(3):
        w = w + v * 2.0 + fx.Float32(1)
    if t % 2 == 0:
        w = -w
    else:
        w = w - 1
    Y[t, 0] = w.reduce("add")
    Y[t, 1] = fx.maximum(w, v).reduce("max")
    Y[t, 2] = fx.where(v > 0, v, -v).reduce("min", 0.5)
    Y[t, 3] = w.to(fx.Float16).to(fx.Float32).shuffle(v, [3, 4, 1, 6])[t % 4]
    Y[t, 4] = fx.exp(v)[1] ** 2
    i = N[t, None].load()
    J[t, 0] = (i // 3 + i % 3).reduce("add")
    J[t, 1] = ((i & 7) << 2).reduce("max")
    J[t, 2] = (i >= 0).to(fx.Int32).reduce("add")
    J[t, 3] = v.bitcast(fx.Int32)[2]
    square = i.reshape((2, 2))
    J[t, 4] = square[0, 1] - square[None, 1][0]
    J[t, 5] = (square + square[None, 0].reshape((2, 1)))[1, 1]


@fly.jit
def vectors(
    X: fx.Tensor[fx.Float32, 64, 4],
    N: fx.Tensor[fx.Int32, 64, 4],
    Y: fx.Tensor[fx.Float32, 64, 5],
    J: fx.Tensor[fx.Int32, 64, 6],
):
    vector_kernel(X, N, Y, J).launch(grid=1, block=LANES)


def test_vectors_compute_as_numpy():
    x = normal(1, LANES, 4)
    i = np.random.default_rng(2).integers(-100, 100, (LANES, 4), dtype=np.int32)
    y, j = np.zeros((LANES, 5), np.float32), np.zeros((LANES, 6), np.int32)
    vectors(x, i, y, j)
    even = (np.arange(LANES) % 2 == 0)[:, None]
    w = 3 * (2 * x + 1)
    w = np.where(even, -w, w - 1)
    np.testing.assert_allclose(y[:, 0], w.sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y[:, 1], np.maximum(w, x).max(1), rtol=1e-6)
    np.testing.assert_array_equal(y[:, 2], np.minimum(abs(x).min(1), 0.5))
    mixed = np.concatenate([w, x], 1)[:, [3, 4, 1, 6]][np.arange(LANES), np.arange(LANES) % 4]
    np.testing.assert_allclose(y[:, 3], mixed, rtol=1e-3)
    np.testing.assert_allclose(y[:, 4], np.exp(x[:, 1]) ** 2, rtol=1e-5)
    np.testing.assert_array_equal(j[:, 0], (i // 3 + i % 3).sum(1))
    np.testing.assert_array_equal(j[:, 1], ((i & 7) << 2).max(1))
    np.testing.assert_array_equal(j[:, 2], (i >= 0).sum(1))
    np.testing.assert_array_equal(j[:, 3], x[:, 2].view(np.int32))
    # (2, 2) counts its first mode fastest: [0, 1] is element 2, [None, 1] are elements 2 and 3.
    np.testing.assert_array_equal(j[:, 4], 0)
    np.testing.assert_array_equal(j[:, 5], i[:, 3] + i[:, 1])


@fx.struct
class Sample:
    weight: fx.Float32
    count: fx.Int32


@fx.union
class Scratch:
    words: fx.Array[fx.Int32, LANES]
    floats: fx.Array[fx.Float32, LANES, 16]


@fx.struct
class Shared:
    samples: Sample
    scratch: Scratch


@fly.kernel
def struct_kernel(X: fx.Tensor, Y: fx.Tensor, static: fx.Constexpr[bool]):
    t = fx.thread_idx.x
    place = fx.SharedAllocator(static=static).allocate(Shared)
    floats = place.scratch.floats.peek()
    floats[t] = X[t]
    if t == 5:
        place.samples.poke(Sample(X[t], 3))
    fx.barrier()
    sample = place.samples.peek()
    for _ in range(2):
        sample = sample.replace(count=sample.count + 1)
    words = place.scratch.words.peek().view(fx.make_layout((8, 8), (8, 1)))
    Y[t, 0] = floats[LANES - 1 - t] * sample.weight
    Y[t, 1] = fx.Float32(sample.count)
    Y[t, 2] = words[t // 8, t % 8].bitcast(fx.Float32)


@fx.struct
class Running:
    best: fx.Float32
    place: fx.Int32
    step: fx.Constexpr[int]

    BIG = 1000

    def __add__(self, other):
        if other.best > self.best:
            return Running(other.best, other.place, self.step)
        return self

    @property
    def far(self):
        return self.place * self.step + self.BIG


@fly.kernel
def member_kernel(X: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x
    found = Running(fx.Float32(-1.0), fx.Int32(-1), 3)
    for i in range(t, X.shape[0]):
        found = found + Running(X[i], fx.Int32(i), 3)
    Y[t] = found.far + (1 if found.step == 3 else 0)


@fly.jit
def members(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Int32, "n"]):
    member_kernel(X, Y).launch(grid=1, block=LANES)


def test_a_struct_has_methods_and_constants():
    x = np.random.default_rng(0).random(LANES, dtype=np.float32)
    y = np.zeros(LANES, np.int32)
    members(x, y)
    places = [t + int(np.argmax(x[t:])) for t in range(LANES)]
    np.testing.assert_array_equal(y, 3 * np.array(places) + 1001)


@fly.kernel
def constant_kernel(X: fx.Tensor):
    one = Running(fx.Float32(1), fx.Int32(1), 1)
    if X[0] > 0:
        one = Running(fx.Float32(2), fx.Int32(2), 2)
    X[0] = one.best


@fly.jit
def constants(X: fx.Tensor[fx.Float32, "n"]):
    constant_kernel(X).launch(grid=1, block=1)


def test_a_field_known_while_tracing_is_the_same_on_all_paths():
    with pytest.raises(FlyError, match=r"the field is annotated fx\.Constexpr") as caught:
        constants(np.zeros(4, np.float32))
    assert "`one.step` is the Python int 2 on one side of the `if`" in str(caught.value)


@fly.jit
def structs(
    X: fx.Tensor[fx.Float32, 64], Y: fx.Tensor[fx.Float32, 64, 3], static: fx.Constexpr[bool]
):
    struct_kernel(X, Y, static).launch(grid=1, block=LANES, smem=0 if static else 1024)


def test_structs_and_unions_in_lds():
    x = normal(3, LANES)
    for static in (True, False):
        y = np.zeros((LANES, 3), np.float32)
        structs(x, y, static)
        np.testing.assert_array_equal(y[:, 0], x[::-1] * x[5])
        np.testing.assert_array_equal(y[:, 1], 5)
        np.testing.assert_array_equal(y[:, 2], x)


@fly.kernel
def border_kernel(A: fx.Tensor, B: fx.Tensor, copy: fx.TiledCopy):
    i, j = fx.block_idx.x, fx.block_idx.y
    own = copy.get_slice(fx.thread_idx.x)
    extents = A.shape.unpack()
    coords = fx.make_view((0, 0), fx.make_identity_layout(extents))
    tiles = [fx.flat_divide(t, copy.tile_mn)[None, None, i, j] for t in (A, B, coords)]
    source, target = own.partition_S(tiles[0]), own.partition_D(tiles[1])
    where = own.partition_S(tiles[2])[(0, None), None, None]
    inside = fx.make_fragment_like(where, fx.Boolean)
    for k in fx.range_constexpr(fx.size(inside)):
        inside[k] = fx.elem_less(where[k], extents)
    held = fx.make_fragment_like(source)
    held.fill(0)
    fx.copy(copy, source, held, pred=inside)
    held.store(held.load() * 2)
    fx.copy(copy, held, target, pred=inside)


@fly.jit
def border(A: fx.Tensor[fx.Float32, "M", "N"], B: fx.Tensor[fx.Float32, "M", "N"]):
    atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(
        atom, fx.make_ordered_layout((4, 16), (1, 0)), fx.make_layout((2, 2), (2, 1))
    )
    m, n = copy.tile_mn.unpack()
    grid = (fx.ceildiv(A.shape[0], m), fx.ceildiv(A.shape[1], n))
    border_kernel(A, B, copy).launch(grid=grid, block=LANES)


def test_predicates_keep_a_copy_within_the_tensor():
    """13×42 is no multiple of the 8×32 tile; the emulator faults on what lies outside."""
    a = normal(4, 13, 42)
    b = np.full_like(a, -1)
    border(a, b)
    np.testing.assert_array_equal(b, 2 * a)


@fly.kernel
def walk_kernel(A: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x
    row = A[0, None]
    total = fx.Float32(0)
    for i in range(3):
        total = total + row[t]
        row = A[i + 1, None]
    if t < 32:
        row = A[0, None]
    else:
        row = A[3, None]
    Y[t] = total + row[t]


@fly.jit
def walk(A: fx.Tensor[fx.Float32, 4, 64], Y: fx.Tensor[fx.Float32, 64]):
    walk_kernel(A, Y).launch(grid=1, block=LANES)


def test_views_are_carried_by_loops_and_branches():
    a, y = normal(5, 4, LANES), np.zeros(LANES, np.float32)
    walk(a, y)
    np.testing.assert_allclose(y, a[:3].sum(0) + np.where(np.arange(LANES) < 32, a[0], a[3]))


@fly.kernel
def atomic_kernel(X: fx.Tensor, total: fx.Tensor):
    t = fx.thread_idx.x
    held = fx.make_rmem_tensor(1, fx.Float32)
    held[0] = X[t]
    add = fx.make_copy_atom(fx.UniversalAtomicAdd(fx.Float32, fx.rocdl.SyncScope.Agent), fx.Float32)
    fx.copy_atom_call(add, held, fx.make_view(fx.get_iter(total), fx.make_layout(1, 1)))


@fly.jit
def atomic(X: fx.Tensor[fx.Float32, 64], total: fx.Tensor[fx.Float32, 1]):
    atomic_kernel(X, total).launch(grid=1, block=LANES)


def test_an_atomic_copy_adds():
    x, total = np.arange(LANES, dtype=np.float32), np.ones(1, np.float32)
    atomic(x, total)
    assert total == 1 + x.sum()


@fly.kernel
def stateful_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    load = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    tiled = fx.make_tiled_copy_tv(load, fx.make_layout(LANES, 1), fx.make_layout(1, 1))
    rows = fx.rocdl.make_buffer_tensor(X)
    thread = tiled.get_slice(t)
    whole = thread.partition_S(rows)
    held = fx.make_fragment_like(whole[None, 0, 0])
    moved = tiled
    total = fx.Float32(0)
    for i in range(n):
        fx.copy(moved, whole[None, 0, 0], held)
        total = total + held[0]
        fx.copy(thread, thread.partition_S(rows)[None, 0, 0], held)
        total = total + 100 * held[0]
        moved = moved.set_value("soffset", LANES * (fx.Int32(i) + 1))
        if i < 2:
            thread = thread.set_value("soffset", LANES * (fx.Int32(i) + 2))
        else:
            thread = tiled.get_slice(LANES - 1 - t)
        if i % 2 == 1:
            load = load.set_value("soffset", LANES * fx.Int32(i))
    Y[t, 0] = total
    fx.copy(load, whole[None, 0, 0], held)
    Y[t, 1] = held[0]
    fx.copy(moved.copy_atom, whole[None, 0, 0], held)
    Y[t, 2] = held[0]


@fly.jit
def stateful(X: fx.Tensor[fx.Float32, 1, 512], Y: fx.Tensor[fx.Float32, 64, 3], n: fx.Int32):
    stateful_kernel(X, Y, n).launch(grid=1, block=LANES)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_the_state_of_atoms_and_tiled_copies_is_carried(n: int):
    """An atom is as it was made before its state is set: in the loop, in one way of the `if`. What
    a thread does of a tiled copy is carried with the thread's number."""
    x, y = np.arange(512, dtype=np.float32).reshape(1, 512), np.zeros((LANES, 3), np.float32)
    stateful(x, y, n)
    rows = x.reshape(8, LANES)
    of_thread = [rows[0], rows[2], rows[3], rows[0][::-1], rows[0][::-1]]
    np.testing.assert_array_equal(y[:, 0], rows[:n].sum(0) + 100 * sum(of_thread[:n]))
    np.testing.assert_array_equal(y[:, 1], rows[0 if n < 2 else 3 if n > 3 else 1])
    np.testing.assert_array_equal(y[:, 2], rows[n])


@fly.kernel
def along_kernel(Y: fx.Tensor, n: fx.Int32):
    places = fx.make_view(fx.make_coord((16, n), 3), fx.make_identity_layout(((4, 2), 4)))
    columns, inner = fx.get_(places, 1), fx.get_(places, (0, 1))
    column, second, both = columns[2], inner[1], fx.get_(places, 0)[5]
    Y[0], Y[1], Y[2] = column[0][0], column[0][1], column[1]
    Y[3], Y[4], Y[5] = second[0][0], second[0][1], second[1]
    Y[6], Y[7], Y[8] = both[0][0], both[0][1], both[1]
    c = fx.make_coord(n)
    if n > 3:
        c = fx.make_coord(2 * n)
    Y[9] = fx.get_scalar(c)


@fly.jit
def along(Y: fx.Tensor[fx.Int32, 10], n: fx.Int32):
    along_kernel(Y, n).launch(grid=1, block=1)


def test_a_mode_of_a_coordinate_tensor_begins_where_the_tensor_does():
    y = np.zeros(10, np.int32)
    along(y, 7)
    assert y.tolist() == [16, 7, 5, 16, 8, 3, 17, 8, 3, 14]
