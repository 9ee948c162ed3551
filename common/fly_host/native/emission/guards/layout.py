"""The strides of a tensor argument: whether they are those that its parameter asks for."""

from __future__ import annotations

from collections.abc import Callable

from fly_host import refusals
from fly_host.native.emission.frame import Frame
from fly_host.native.emission.marks import integer, mark
from fly_host.program import Tensor
from fly_host.refusals import describe


class Layout:
    """Conditions on the strides of a tensor parameter. Strides of dimensions with less than two
    elements, and those of tensors without elements, are free."""

    def __init__(
        self,
        frame: Frame,
        tensor: Tensor,
        extents: list[str],
        strides: list[str],
        conditions: list[str],
        order: tuple[int, ...] | None,
    ):
        self.frame, self.code, self.tensor, self.order = frame, frame.code, tensor, order
        self.extents, self.strides, self.conditions = extents, strides, conditions
        self._empty: str | None = None
        self.canonical = self._canonical() if tensor.contiguous else []

    def check(self) -> None:
        wanted = self.canonical if self.tensor.contiguous else self.tensor.strides
        name, contiguous = self.tensor.name, self.tensor.contiguous
        for at, (want, have, extent) in enumerate(
            zip(wanted, self.strides, self.extents, strict=True)
        ):
            if want is not None:
                same = self.code.value(f"icmp eq i64 {have}, {want}")
                self._either(
                    lambda at=at, want=str(want), have=have: refusals.stride(
                        name, contiguous, at, integer(want), integer(have)
                    ),
                    same,
                    self._single(extent),
                    self.empty,
                )
        for at, (divisor, extent) in enumerate(
            zip(self.tensor.multiples, self.extents, strict=False)
        ):
            self._multiple("extent", at, extent, divisor)
        rank = len(self.extents)
        for at, (divisor, extent, stride) in enumerate(
            zip(self.tensor.multiples[rank:], self.extents, self.strides, strict=False)
        ):
            free = self.code.value(f"or i1 {self._single(extent)}, {self.empty}")
            step = self.code.value(f"select i1 {free}, i64 0, i64 {stride}")
            self._multiple("stride", at, step, divisor)
        if self.tensor.access != "r" and not self.tensor.contiguous and rank:
            self._either(self._overlap, *self._all_apart(rank), self.empty)

    def seen(self) -> list[str]:
        """The strides that the program sees."""
        if self.tensor.contiguous:
            return self.canonical
        found: list[str] = []
        for stated, extent, stride in zip(
            self.tensor.strides, self.extents, self.strides, strict=True
        ):
            if stated is not None:
                found.append(str(stated))
            elif self.tensor.multiples:
                single = self._single(extent)
                found.append(self.code.value(f"select i1 {single}, i64 0, i64 {stride}"))
            else:
                found.append(stride)
        return found

    def _canonical(self) -> list[str]:
        """Strides in C order. Those of a tensor without elements may leave 64 bits."""
        found, step = ["1"], "1"
        for extent in reversed(self.extents[1:]):
            if not extent.startswith("%") and not step.startswith("%"):
                step = str(int(step) * max(int(extent), 1))
                if int(step) >= 1 << 63:
                    self._expect("false", self._too_large)
                    step = "1"
            else:
                count = self.code.value(f"call i64 @llvm.smax.i64(i64 {extent}, i64 1)")
                pair = self.code.value(
                    f"call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 {step}, i64 {count})"
                )
                step = self.code.value(f"extractvalue {{i64, i1}} {pair}, 0")
                left = self.code.value(f"extractvalue {{i64, i1}} {pair}, 1")
                self._expect(self.code.value(f"xor i1 {left}, true"), self._too_large)
            found.append(step)
        return found[::-1][-len(self.extents) :] if self.extents else []

    @property
    def empty(self) -> str:
        """Whether there are no elements."""
        if self._empty is None:
            together = "false"
            for extent in self.extents:
                none = self.code.value(f"icmp eq i64 {extent}, 0")
                together = none if together == "false" else self._or(together, none)
            self._empty = together
        return self._empty

    def _single(self, extent: str) -> str:
        return self.code.value(f"icmp slt i64 {extent}, 2")

    def _or(self, a: str, b: str) -> str:
        return self.code.value(f"or i1 {a}, {b}")

    def _expect(self, condition: str, words: Callable[[], str]) -> None:
        self.frame.expect(self.conditions, condition, words)

    def _either(self, words: Callable[[], str], first: str, *others: str) -> None:
        for other in others:
            first = self._or(first, other)
        self._expect(first, words)

    def _multiple(self, what: str, at: int, value: str, divisor: int) -> None:
        if divisor > 1:
            rest = self.code.value(f"srem i64 {value}, {divisor}")
            whole = self.code.value(f"icmp eq i64 {rest}, 0")
            name = self.tensor.name
            self._expect(whole, lambda: refusals.multiple(name, what, at, divisor, integer(value)))

    def _overlap(self) -> str:
        shape, strides = mark("tuple", *self.extents), mark("tuple", *self.strides)
        return refusals.overlap(self.tensor.name, describe(self.tensor), shape, strides)

    def _too_large(self) -> str:
        return f"the strides of {self.tensor.name} do not fit in 64 bits"

    def _all_apart(self, rank: int) -> list[str]:
        """Conditions, each of which says that no two elements are in one place."""
        if not self.frame.way.for_c:
            return [self._apart(order) for order in self._orders(rank)]
        shape, strides = self.code.integers(self.extents), self.code.integers(self.strides)
        call = f"call zeroext i1 @fly_apart(i64 {rank}, ptr {shape}, ptr {strides})"
        return [self.code.value(call)]

    def _orders(self, rank: int) -> list[list[int]]:
        inner_first = list(range(rank))[::-1]
        orders = [inner_first] if rank == 1 else [inner_first, inner_first[::-1]]
        return orders if self.order is None else [*orders, list(self.order)]

    def _apart(self, order: list[int]) -> str:
        """Whether each dimension, taken in this order, steps over all elements of those before it:
        then no two elements are in one place."""
        code, reach, together = self.code, "1", None
        for dimension in order:
            extent, stride = self.extents[dimension], self.strides[dimension]
            step = code.value(f"call i64 @llvm.abs.i64(i64 {stride}, i1 false)")
            over = code.value(f"icmp sge i64 {step}, {reach}")
            together = code.both(together, self._or(over, self._single(extent)))
            rest = code.value(f"sub i64 {extent}, 1")
            reach = code.value(f"add i64 {reach}, {code.value(f'mul i64 {step}, {rest}')}")
        assert together is not None
        return together
