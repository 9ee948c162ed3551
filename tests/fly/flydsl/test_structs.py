"""fx.struct, fx.union, fx.Storage and the allocators."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl.compiler.protocol import cache_signature, dsl_align_of, dsl_size_of


@fx.struct
class Pair:
    left: fx.Int32
    right: fx.Float32


@fx.struct
class Nested:
    pair: Pair
    count: fx.Constexpr[int]
    wide: fx.Align[fx.Int32, 16]


@fx.union
class Either:
    halves: fx.Array[fx.Float16, 6]
    word: fx.Int64


@pytest.fixture(autouse=True)
def target(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")


def test_values():
    one = Pair(1, right=2.5)
    assert one == Pair(1, 2.5)
    assert hash(one) == hash(Pair(1, 2.5))
    assert one != one.replace(left=3)
    assert (type(one.left), type(one.right)) == (fx.Int32, fx.Float32)
    assert one.__eq__(Nested) is NotImplemented
    with pytest.raises(FrozenInstanceError):
        one.left = 2
    with pytest.raises(FrozenInstanceError):
        del one.left
    nested = Nested(pair=one, count=4, wide=7)
    assert type(nested).__name__ == "Nested[count=4]"
    assert type(nested) is type(nested.replace(wide=8)) is not type(nested.replace(count=5))
    assert cache_signature(nested) == cache_signature(nested.replace(wide=8))
    assert cache_signature(nested) != cache_signature(nested.replace(count=5))


def test_layouts():
    assert (dsl_size_of(Pair), dsl_align_of(Pair)) == (8, 4)
    assert (dsl_size_of(Nested), dsl_align_of(Nested)) == (32, 16)
    assert (dsl_size_of(Either), dsl_align_of(Either)) == (16, 8)
    assert fx.Array[fx.Int32, 4] is fx.Array[fx.Int32, 4]


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Pair(1), TypeError, r"missing required field\(s\): right"),
        (lambda: Pair(1, 2, 3), TypeError, r"expected 2 field\(s\), got 3"),
        (lambda: Pair(1, 2, other=3), TypeError, r"unexpected field\(s\): other"),
        (lambda: Pair(1, 2, left=3), TypeError, "multiple values for field 'left'"),
        (lambda: Pair("x", 2), TypeError, "field 'left' expects Int32, got str"),
        (lambda: Nested(Pair(1, 2), 1.5, 3), TypeError, "'count' expects int, got float"),
        (lambda: Nested(3, 1, 3), TypeError, "'pair' expects Pair, got int"),
        (lambda: Either(word=1), TypeError, "no value form"),
        (lambda: fx.Struct["peek" : fx.Int32], ValueError, "'peek' is reserved"),
        (lambda: fx.Struct["_x" : fx.Int32], ValueError, "must not start with underscore"),
        (lambda: fx.Struct["a" : fx.Int32, "a" : fx.Int32], ValueError, "duplicate"),
        (lambda: fx.Struct[()], ValueError, "at least one field"),
        (lambda: dsl_size_of(fx.Boolean), TypeError, "sub-byte"),
        (lambda: dsl_size_of(fx.Struct["t" : fx.Tensor]), TypeError, "Storable"),
        (lambda: fx.Array[fx.Int32, 0], TypeError, "positive integer"),
        (lambda: fx.Align[fx.Int32, 2], ValueError, "smaller than natural alignment"),
        (lambda: fx.SharedAllocator(), RuntimeError, "made in a @kernel"),
        (lambda: fx.Storage[Pair](None).other, AttributeError, "has no field 'other'"),
        (lambda: fx.Storage[Nested](None).count, AttributeError, "compile-time only"),
    ],
)
def test_what_is_refused(make: Any, kind: type[Exception], said: str):
    with pytest.raises(kind, match=said):
        make()


@pytest.mark.parametrize("static", [True, False])
def test_shared_memory(static: bool):
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        tid = fx.thread_idx.x
        allocator = fx.SharedAllocator(static=static)
        pairs = allocator.allocate(fx.Struct["a" : fx.Array[fx.Int32, 64], "last":Pair])
        either = allocator.allocate(Either)
        assert allocator.allocated_bytes == 264 + 8 - 8 + 16
        pairs.peek().a[tid] = tid * 3
        if tid == 0:
            pairs.last.poke(Pair(40, 0.5))
            either.halves.peek()[1] = fx.Float16(1.0)
        fx.barrier()
        value = pairs.last.peek()
        bits = fx.Int32(either.word.peek())
        Out[tid] = (
            pairs.peek().a[63 - tid] + value.left + fx.Int32(value.right * 4.0) + (bits >> 16)
        )

    @flyc.jit
    def launch(Out: fx.Tensor):
        kernel(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    out = np.zeros(64, np.int32)
    launch(out)
    wanted = (63 - np.arange(64)) * 3 + 42 + np.float16(1.0).view(np.int16)
    assert out.tolist() == wanted.tolist()


def test_a_second_allocator_is_refused():
    @flyc.kernel
    def kernel(Out: fx.Tensor):
        fx.SharedAllocator()
        fx.SharedAllocator()

    @flyc.jit
    def launch(Out: fx.Tensor):
        kernel(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with pytest.raises(RuntimeError, match="Only one SharedAllocator"):
        launch(np.zeros(1, np.int32))


def test_kernels_take_structs_and_trees():
    """Their dynamic values are arguments, their constants specialize the kernel."""

    @flyc.kernel
    def kernel(io: Any, nested: Nested, Out: fx.Tensor):
        tid = fx.thread_idx.x
        total = nested.pair.left
        for _ in fx.range_constexpr(nested.count):
            total = total + nested.wide
        Out[tid] = io.A[tid] + io.more[0][tid] + io.more[1]["n"] + total

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor, n: fx.Int32, times: fx.Constexpr[int]):
        io = SimpleNamespace(A=A, more=(B, {"n": n}))
        nested = Nested(pair=Pair(n, 1.0), count=times, wide=n)
        kernel(io, nested, Out).launch(grid=(1, 1, 1), block=(8, 1, 1))

    a, b = np.arange(8, dtype=np.int32), np.full(8, 10, np.int32)
    for times in (0, 3):
        out = np.zeros(8, np.int32)
        launch(a, b, out, 100, times)
        assert out.tolist() == (a + b + 100 * (2 + times)).tolist()


@fx.struct()
class Complex:
    re: fx.Float32
    im: fx.Float32
    order: fx.Constexpr[int]

    @property
    def norm(self):
        return self.re * self.re + self.im * self.im

    @classmethod
    def of(cls, value, order):
        return cls(re=value, im=value + 1.0, order=order)

    @staticmethod
    def one(order):
        return Complex(1.0, 0.0, order)

    def __mul__(self, other):
        return Complex(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
            self.order,
        )

    def __rmul__(self, factor):
        return self.replace(re=self.re * factor, im=self.im * factor)

    def __getitem__(self, index):
        return (self.re, self.im)[index]

    def power(self, count):
        made = Complex.one(self.order)
        for _ in range(count):
            made = made * self
        return made

    def limited(self, most):
        made = self
        if self.norm > most:
            made = self.replace(im=0.0)
        return made

    def total(self):
        return sum(self.re * k for k in fx.range_constexpr(self.order))


@flyc.kernel
def member_kernel(X: fx.Tensor, Y: fx.Tensor, count: fx.Int32):
    t = fx.thread_idx.x
    one = Complex.of(X[t], 4)
    raised = one.power(count)
    Y[t, 0], Y[t, 1] = raised.re, raised.im
    Y[t, 2] = one.norm
    Y[t, 3] = one.limited(fx.Float32(3.0))[1]
    Y[t, 4] = (2.0 * one)[1] + raised.total() + raised.order


@flyc.jit
def member_values(X: fx.Tensor, Y: fx.Tensor, count: fx.Int32):
    member_kernel(X, Y, count).launch(grid=(1, 1, 1), block=(8, 1, 1))


@pytest.mark.parametrize("count", [0, 3])
def test_a_struct_has_the_members_of_its_class(count: int):
    """Operators, methods with dynamic control flow, properties, static and class methods; a field
    that is known while tracing stays so through a dynamic loop and branch."""
    x = np.arange(8, dtype=np.float32) / 2 - 1
    y = np.zeros((8, 5), np.float32)
    member_values(x, y, count)
    z = x + 1j * (x + 1)
    raised, norm = z**count, (z * z.conj()).real
    want = [raised.real, raised.imag, norm, np.where(norm > 3, 0, z.imag)]
    want.append(2 * z.imag + 6 * raised.real + 4)
    np.testing.assert_allclose(y, np.stack(want, 1), rtol=1e-6, atol=1e-6)


def test_members_that_a_struct_cannot_have():
    def both():
        @fx.struct
        class Both:
            size: fx.Int32

            def size(self):
                return 1

    def derived():
        @fx.struct
        class Wide(Pair):
            more: fx.Int32

    with pytest.raises(ValueError, match="members conflict with fields: \\['size'\\]"):
        both()
    with pytest.raises(TypeError, match="has the struct Pair as a base class; make that a field"):
        derived()


def staging(wide: bool) -> type:
    @fx.struct
    class Staging:
        one: fx.Array[fx.Float32, 8]
        spare: fx.Array[fx.Float32, 8, 16] if wide else fx.Align[fx.Empty, 16]
        last: fx.Int32

    return Staging


@flyc.kernel
def empty_kernel(X: fx.Tensor, Y: fx.Tensor, wide: fx.Constexpr[bool], static: fx.Constexpr[bool]):
    t = fx.thread_idx.x
    memory = fx.SharedAllocator(static=static)
    place = memory.allocate(staging(wide))
    nothing = memory.allocate(fx.Empty)
    nothing.poke(nothing.peek())
    one = place.one.peek()
    one[t] = X[t]
    if fx.const_expr(wide):
        place.spare.peek()[t] = X[t] * 2.0
    else:
        place.spare.poke(fx.Empty())
    if t == 0:
        place.last.poke(fx.Int32(memory.allocated_bytes))
    fx.gpu.barrier()
    Y[t, 0] = one[7 - t]
    Y[t, 1] = place.spare.peek()[7 - t] if fx.const_expr(wide) else 0.0
    Y[t, 2] = fx.Float32(place.last.peek())


@flyc.jit
def empty_values(X: fx.Tensor, Y: fx.Tensor, wide: fx.Constexpr[bool], static: fx.Constexpr[bool]):
    empty_kernel(X, Y, wide, static).launch(grid=(1, 1, 1), block=(8, 1, 1))


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_empty_takes_no_memory(wide: bool, static: bool):
    x = np.arange(8, dtype=np.float32)
    y = np.zeros((8, 3), np.float32)
    empty_values(x, y, wide, static)
    np.testing.assert_array_equal(y[:, 0], x[::-1])
    np.testing.assert_array_equal(y[:, 1], 2 * x[::-1] if wide else 0 * x)
    np.testing.assert_array_equal(y[:, 2], 80 if wide else 36)  # bytes
    assert (dsl_size_of(fx.Empty), dsl_align_of(fx.Empty), fx.Empty()) == (0, 1, fx.Empty())


def test_arrays_of_structs():
    """Each group of eight threads has an element of its own, with an array and a pair."""
    kind = fx.Struct["items" : fx.Array[fx.Int32, 8], "pair":Pair]
    many = fx.Array[kind, 8]
    assert (dsl_size_of(many), dsl_align_of(many)) == (8 * 40, 4)
    assert dsl_size_of(fx.Array[fx.Empty, 3]) == 0

    @flyc.kernel(known_block_size=[64, 1, 1])
    def kernel(Out: fx.Tensor):
        tid = fx.thread_idx.x
        allocator = fx.SharedAllocator()
        groups = allocator.allocate(many).peek()
        assert allocator.allocate(fx.Array[fx.Empty, 8]).peek()[tid // 8] == fx.Empty()
        pairs = allocator.allocate(fx.Array[Pair, 64]).peek()
        own = groups[tid // 8]
        own.items[tid % 8] = tid
        pairs[tid] = Pair(tid * 2, fx.Float32(tid))
        fx.barrier()
        other = pairs[63 - tid]
        Out[tid] = own.items[7 - tid % 8] * 1000 + other.left + fx.Int32(other.right)

    @flyc.jit
    def launch(Out: fx.Tensor):
        kernel(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    out, tid = np.zeros(64, np.int32), np.arange(64)
    launch(out)
    expected = (tid // 8 * 8 + 7 - tid % 8) * 1000 + (63 - tid) * 3
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: fx.Array[Pair, 4, 6], ValueError, "no multiple of 4"),
        (lambda: fx.Array[int, 4], TypeError, "or Storable, not <class 'int'>"),
    ],
)
def test_arrays_that_cannot_be(make: Any, kind: type, said: str):
    with pytest.raises(kind, match=said):
        make()


def test_questions():
    assert fx.is_struct_type(Pair)
    assert not fx.is_struct_type(Either)
    assert fx.is_composite_type(Either)
    assert not fx.is_composite_type(fx.Int32)
    assert fx.is_specializable_struct_type(Nested)
    assert fx.is_specializable_struct_type(fx.Align[Nested, 16])
    assert not fx.is_specializable_struct_type(Pair)
