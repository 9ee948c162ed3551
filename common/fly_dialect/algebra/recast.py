"""Recasting: a layout of the same memory in elements of another width."""

from __future__ import annotations

from math import gcd

from fly_common.record import record, replace

from fly_dialect.algebra import leaf
from fly_dialect.layouts.int_tuple import Tree, static_value
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle


def recast_layout(layout: AnyLayout, old_bits: int, new_bits: int) -> AnyLayout:
    """The layout of the same memory in elements of `new_bits` instead of `old_bits`.

    The contiguous mode becomes shorter or longer; the strides of the others are scaled. Extents
    that the ratio does not divide are rounded up. Raises ValueError if strides, offsets or swizzles
    are not multiples of a new element.
    """
    if old_bits <= 0 or new_bits <= 0:
        raise ValueError(f"element widths must be positive, not {old_bits} and {new_bits} bits")
    common = gcd(old_bits, new_bits)
    try:
        for cast in (_Wider(new_bits // common), _Narrower(old_bits // common)):
            if cast.factor != 1:
                layout = _recast(layout, cast)
    except ValueError as error:
        raise ValueError(f"{layout} in {new_bits} instead of {old_bits} bits: {error}") from None
    return layout


@record
class _Wider:
    """Recasts to elements `factor` times as wide."""

    factor: int

    def pair(self, shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
        """A leaf of the shape and its stride, in the new elements."""
        step = static_value(stride)
        if step == 0:
            return shape, stride
        if step is None:
            return shape, leaf.exact_divide(stride, self.factor)
        if step % self.factor and self.factor % step:
            raise ValueError(f"neither of the stride {step} and {self.factor} divides the other")
        # The number of old elements along this mode that form a new one.
        merged = max(1, self.factor // abs(step))
        far = max(1, abs(step) // self.factor)
        return leaf.ceil_divide(shape, Int(merged)), Int(far if step > 0 else -far)

    def offset(self, offset: Tree) -> Tree:
        return leaf.exact_divide(leaf.integer(offset), self.factor)

    def swizzle(self, swizzle: Swizzle | CoordSwizzle) -> Swizzle | CoordSwizzle:
        return _shifted(swizzle, -_exponent(self.factor))


@record
class _Narrower:
    """Recasts to elements `factor` times as narrow."""

    factor: int

    def pair(self, shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
        if static_value(stride) in (1, -1):
            return leaf.multiply(shape, Int(self.factor)), stride
        return shape, leaf.multiply(stride, Int(self.factor))

    def offset(self, offset: Tree) -> Tree:
        return leaf.multiply(leaf.integer(offset), Int(self.factor))

    def swizzle(self, swizzle: Swizzle | CoordSwizzle) -> Swizzle | CoordSwizzle:
        return _shifted(swizzle, _exponent(self.factor))


def _recast(layout: AnyLayout, cast: _Wider | _Narrower) -> AnyLayout:
    if isinstance(layout, Layout):
        return Layout(*_pairs(layout.shape, layout.stride, cast))
    inner = layout.inner
    if isinstance(inner, (Layout, ComposedLayout)):
        inner = _recast(inner, cast)
    else:
        inner = cast.swizzle(inner)
    return ComposedLayout(inner, cast.offset(layout.offset), _recast(layout.outer, cast))


def _pairs(shape: Tree, stride: Tree, cast: _Wider | _Narrower) -> tuple[Tree, Tree]:
    if isinstance(shape, tuple):
        pairs = [_pairs(*pair, cast) for pair in zip(shape, stride, strict=True)]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if isinstance(stride, Basis):
        extent, scale = cast.pair(shape, stride.scale)
        return extent, Basis(scale, stride.modes)
    return cast.pair(shape, stride)


def _shifted(swizzle: Swizzle | CoordSwizzle, by: int) -> Swizzle | CoordSwizzle:
    """The swizzle with its bits shifted up by `by`."""
    if isinstance(swizzle, Swizzle):
        bases = {"base": swizzle.base + by}
    else:
        bases = {"base_row": swizzle.base_row + by, "base_col": swizzle.base_col + by}
    if min(bases.values()) < 0:
        raise ValueError(f"{swizzle} permutes within the new elements")
    return replace(swizzle, **bases)


def _exponent(factor: int) -> int:
    if factor & (factor - 1):
        raise ValueError(f"a swizzle can only be recast by a power of two, not by {factor}")
    return factor.bit_length() - 1
