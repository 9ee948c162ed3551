"""Tensors: indexable views of global memory, shared memory or registers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.quoting import quoted
from fly_dialect.types import IntTupleSpec, MemRefSpec

from fly_trace.core import tracing
from fly_trace.core.dialect_value import says_all, values_of
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import IntTuple, has_none, int_tuple, scalar_of
from fly_trace.layouts.views import View, linear, static_shape
from fly_trace.memory.pointers import Access, converted, dtype_of
from fly_trace.signatures.annotations import Tensor as TensorName
from fly_trace.values.dtypes import BOOL, I8, I32, I64, DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.value_ranges import of_type
from fly_trace.values.vector.vectors import Vector
from fly_trace.values.vector_shapes import count, vector_ir

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

INT32_MAX = 2**31 - 1

Known = tuple[int | None, ...]  # extents or strides, None if dynamic


@values_of(MemRefSpec)
class Tensor(View, TensorName):
    """A tensor indexed by coordinates of its layout's shape.

    An **array** (a function's argument, an array in shared memory) has flat extents, and takes as
    many integers as it has dimensions. A tensor made by a layout operation (a tile, partition or
    fragment) takes any coordinate of its shape, including one integer that counts with the first
    mode fastest.
    """

    __slots__ = (
        "access",
        "dtype",
        "extents",
        "is_array",
        "is_contiguous",
        "name",
        "parts",
        "strides",
    )

    def __init__(
        self,
        spec: Any,
        ssa: ir.Value | None = None,
        dtype: Any = None,
        name: str = "a tensor",
        *,
        access: Access | None = None,
        is_array: bool = False,
        rank: int | None = None,
        is_contiguous: bool = False,
    ):
        if spec is self:
            return  # fx.Tensor(view) is the view, as in FlyDSL
        super().__init__(spec, ssa)
        self.dtype: DType = dtype
        self.name = name
        self.access: Access = access or Access()
        self.is_array = is_array
        # Whether the elements of an array are known to lie as in C: each stride is the product of
        # the extents behind it, though these are arguments.
        self.is_contiguous = is_contiguous
        layout = linear(spec)
        # A tensor of rank 0 has one element at offset 0, and is represented with the layout 1:0.
        self.extents: Known = () if rank == 0 else _modes(layout.shape)
        self.strides: Known = () if rank == 0 else _modes(layout.stride)
        self.parts: dict[tuple[str, int], Scalar] = {}  # an array's extents and strides read so far

    @classmethod
    def wrapped(cls, spec: MemRefSpec, ssa: ir.Value | None, origin: Any) -> Tensor:
        dtype = dtype_of(spec.element, getattr(origin, "dtype", None))
        name = getattr(origin, "name", "a tensor")
        return cls(spec, ssa, dtype, name, access=getattr(origin, "access", None))

    def with_ssa(self, ssa: Any) -> Tensor:
        builder = tracing.active()
        if not self.is_array or builder is None or not builder.host:
            return super().with_ssa(ssa)
        made = Tensor(self.spec, ssa, self.dtype, self.name, is_array=True, rank=self.rank)
        made.access = self.access
        return made

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def element_type(self) -> DType:
        return self.dtype

    @property
    def space(self) -> str:
        return self.spec.space

    address_space = memspace = space

    @property
    def alignment(self) -> int:
        """The alignment in bytes."""
        return self.spec.alignment

    @property
    def shape(self) -> Any:
        """The extents: Python ints if static, otherwise integers of 64 or 32 bits."""
        return Parts(self, "shape")

    @property
    def stride(self) -> Any:
        """The strides in elements: Python ints if static, otherwise integers of 64 or 32 bits."""
        return Parts(self, "stride")

    def describe(self) -> str:
        if not self.is_array:
            return str(self.spec).removeprefix("!fly.memref")
        return f"{self.dtype.name}[{','.join('?' if e is None else str(e) for e in self.extents)}]"

    @property
    def described(self) -> str:
        return f"a tensor ({self.describe()})"

    def __repr__(self) -> str:
        return f"<tensor {self.name}: {self.describe()}>"

    # -- elements

    def __getitem__(self, index: Any) -> Any:
        """Loads an element. With None in the index, returns the view of that part and loads
        nothing."""
        if has_none(index):
            return self.part(index)
        builder = tracing.kernel(f"an element of {self.name}")
        coordinate = self.coordinate(builder, index)
        self.access.reads = True
        value = builder.fly_op("memref.load", [self.value(builder), coordinate], {})
        if self.dtype is BOOL and self.spec.element != "i1":
            return Scalar(I8, value).to(BOOL)
        return Scalar(self.dtype, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        if has_none(index):
            self.part(index).store(value)
            return
        builder = tracing.kernel(f"an element of {self.name}")
        coordinate = self.coordinate(builder, index)
        stored = builder.ssa(converted(value, self.dtype, self.name))
        if self.dtype is BOOL and self.spec.element != "i1":
            stored = builder.one("arith.extui", "i8", stored)
        self.access.writes = True
        builder.fly_op("memref.store", [stored, self.value(builder), coordinate], {})

    def coordinate(self, builder: Builder, index: Any) -> Any:
        """The int_tuple of an index. Raises InputError for a wrong rank, a slice, or a static index
        that is out of bounds."""
        from fly_dialect.builders import ops

        items = index if isinstance(index, tuple) else (index,)
        for item in items:
            if isinstance(item, slice) or item is Ellipsis:
                tracing.refuse(
                    f"{self.name} is indexed by integers, one per dimension, or by None",
                    "None takes the whole dimension: A[i, None] is row i",
                )
        if not self.is_array:
            return int_tuple(index, f"an index of {self.name}").value(builder)
        if len(items) != self.rank:
            hint = None
            if self.rank == 0:
                hint = f"its one element is {self.name}[()]"
            elif len(items) < self.rank:
                hint = "None takes the whole dimension: A[i, None] is row i"
            tracing.refuse(
                f"{self.name} has {self.rank} dimension{'s' if self.rank != 1 else ''}"
                f" ({self.describe()}), but is indexed by {len(items)}",
                hint,
            )
        if self.rank == 0:
            return builder.fly(ops.make_int_tuple, 0)
        leaves = [self._leaf(builder, mode, item) for mode, item in enumerate(items)]
        return builder.fly(ops.make_int_tuple, *leaves)

    def _leaf(self, builder: Builder, mode: int, item: Any) -> Any:
        extent = self.extents[mode]
        if isinstance(item, Scalar) and item.number is not None and item.dtype.is_integer:
            item = item.number
        if not isinstance(item, Scalar):
            try:
                number = operator.index(item)
            except TypeError:
                tracing.refuse(f"an index of {self.name} must be an integer, not {describe(item)}")
            if isinstance(item, bool):
                tracing.refuse(f"an index of {self.name} must be an integer, not a bool")
            if number < 0:
                last = f"{self.name}.shape[{mode}] - {quoted(-number)}"
                tracing.refuse(
                    f"index {quoted(number)} of {self.name} is negative",
                    f"count from the end: {last}",
                )
            if extent is not None and number >= extent:
                tracing.refuse(
                    f"index {quoted(number)} is out of bounds: dimension {mode} of {self.name} has"
                    f" {extent} element{'s' if extent != 1 else ''}"
                )
            if number >= 1 << 63:
                tracing.refuse(f"index {quoted(number)} of {self.name} does not fit in 64 bits")
            return number
        if not item.dtype.is_integer:
            tracing.refuse(
                f"an index of {self.name} must be an integer, not {describe(item)}",
                "convert it, as in fx.Int32(x)",
            )
        wide = self.space == "global" and (
            item.dtype.bits == 64 or item.dtype.name == "u32" or self._needs_64_bits(mode)
        )
        return builder.ssa(item.to(I64 if wide else I32))

    def _needs_64_bits(self, mode: int) -> bool:
        """Whether an index times this static stride can exceed 32 bits. A dynamic stride is a
        64-bit leaf, so its product has 64 bits anyway."""
        stride = self.strides[mode]
        if stride is None or stride == 1:
            return False
        reach = 1
        for extent, step in zip(self.extents, self.strides, strict=True):
            if extent is None or step is None:
                return True
            reach += (extent - 1) * step
        return reach > INT32_MAX

    # -- all elements at once

    def load(self) -> Vector:
        """Loads the elements as a vector. The shape must be static."""
        shape = static_shape(self, "load")
        builder = tracing.kernel(f"{self.name}.load")
        self.access.reads = True
        value = builder.fly_op("memref.load_vec", [self.value(builder)], {})
        if self.dtype is BOOL and self.spec.element != "i1":
            return Vector(value, shape, I8).to(BOOL)
        return Vector(value, shape, self.dtype)

    def store(self, vector: Any) -> None:
        """Stores a vector with as many elements, or a number to all elements."""
        shape = static_shape(self, "store")
        if not isinstance(vector, Vector):
            vector = Vector.filled(shape, converted(vector, self.dtype, self.name), self.dtype)
        if vector.numel != count(shape):
            tracing.refuse(
                f"{self.name} has {count(shape)} elements, but the vector has {vector.numel}"
            )
        builder = tracing.kernel(f"{self.name}.store")
        stored = converted(vector, self.dtype, self.name).value
        if self.dtype is BOOL and self.spec.element != "i1":
            stored = builder.one("arith.extui", vector_ir(I8, vector.numel), stored)
        self.access.writes = True
        builder.fly_op("memref.store_vec", [stored, self.value(builder)], {})

    def fill(self, value: Any) -> None:
        """Stores a number to all elements."""
        self.store(converted(value, self.dtype, self.name))

    # -- extents and strides

    def leaf(self, what: str, mode: int) -> int | Scalar:
        """The extent or stride `mode` of an array."""
        known = (self.extents if what == "shape" else self.strides)[mode]
        if known is not None:
            return known
        if (what, mode) not in self.parts:
            builder = tracing.current(f"{self.name}.{what}[{mode}]")

            def read() -> Scalar:
                return self._read(builder, what, mode)

            # Where the part is used again it has to be there: a kernel's tensors are its arguments,
            # and the host function makes some on its way.
            ssa = self.ssa if builder.host else None
            made = builder.at_start(read) if ssa is None else builder.after(ssa, read)
            self.parts[what, mode] = made
        return self.parts[what, mode]

    def _read(self, builder: Builder, what: str, mode: int) -> Scalar:
        from fly_dialect.builders import ops

        layout = linear(self.spec)
        tree = layout.shape if what == "shape" else layout.stride
        leaves = builder.fly_op(f"get_{what}", [self.value(builder)], {})
        if self.rank > 1:
            leaves = builder.fly(ops.get, leaves, mode)
            tree = tree[mode]
        value = builder.fly(ops.get_scalar, leaves)
        if (
            what == "shape" and self.space == "global"
        ):  # an argument's; that of shared memory is set by the kernel
            builder.intervals[value] = (0, of_type(tree.width)[1])
        return scalar_of(tree, value)

    def __len__(self) -> NoReturn:
        tracing.refuse("a tensor has no length", f"use {self.name}.shape[0]")

    def __iter__(self) -> NoReturn:
        tracing.refuse("a tensor can't be iterated or unpacked", f"loop over {self.name}.shape[0]")

    def __eq__(self, other: Any) -> Any:
        if other is None or isinstance(other, (str, type)):
            return False
        tracing.refuse(
            f"{self.described} can't be compared with {describe(other)} as a whole",
            "compare elements, as in A[i] == B[i], vectors, as in A.load() == B.load(), or ask"
            " `A is B`",
        )

    __hash__ = View.__hash__

    def __bool__(self) -> NoReturn:
        tracing.refuse("a tensor has no truth value")

    def __contains__(self, _: Any) -> NoReturn:
        tracing.refuse("a tensor can't be searched with `in`")


def _modes(tree: Any) -> Known:
    modes = tree if isinstance(tree, tuple) else (tree,)
    return tuple(getattr(mode, "value", None) for mode in modes)


class Parts(IntTuple):
    """The extents or strides of a tensor, read on use: `A.shape[0]`."""

    __slots__ = ("tensor", "what")

    def __init__(self, tensor: Tensor, what: str):
        layout = linear(tensor.spec)
        super().__init__(IntTupleSpec(layout.shape if what == "shape" else layout.stride))
        self.tensor = tensor
        self.what = what

    @property
    def rank(self) -> int:
        return self.tensor.rank

    @property
    def is_static(self) -> bool:
        return says_all(self.spec)

    def value(self, builder: Builder) -> ir.Value:
        if self.is_static:
            return super().value(builder)
        return builder.fly_op(f"get_{self.what}", [self.tensor.ssa], {})

    def part(self, path: tuple[int, ...]) -> Any:
        if self.tensor.is_array and len(path) == 1:
            return self.tensor.leaf(self.what, path[0])
        return super().part(path)

    def unpack(self) -> Any:
        if self.tensor.is_array:
            return self[:]
        return super().unpack()

    to_py_value = unpack

    def missing(self, path: tuple[int, ...]) -> NoReturn:
        where = ", ".join(map(str, path))
        tracing.refuse(
            f"{self.what}[{where}] of {self.tensor.name}, which is {self.tensor.describe()},"
            " does not exist"
        )

    def __repr__(self) -> str:
        return f"{self.tensor.name}.{self.what}"
