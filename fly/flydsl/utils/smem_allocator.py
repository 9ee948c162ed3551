"""`flydsl.utils.smem_allocator`: shared memory by offsets in one array of bytes, as programs had it
before `fx.SharedAllocator`; and how much a workgroup has.

    allocator = SmemAllocator(None, arch="gfx942")
    offset = allocator._align(allocator.ptr, 16)
    allocator.ptr = offset + 64 * 4

In the kernel `SmemPtr(allocator.get_base(), offset, T.f32, shape=(64,))` is an array of it. The
host function finalizes the allocator at an insertion point in `CompilationContext.gpu_module_body`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fly_common.errors import InputError
from fly_target import registry
from fly_trace.values.dtypes import DType

from fly.flydsl._mlir import ir
from fly.flydsl._mlir.dialects import arith, memref
from fly.flydsl._mlir.extras import types as T
from fly.flydsl.expr.gpu import smem_space
from fly.flydsl.expr.typing import as_ir_value
from fly.flydsl.numbers.raw import lower
from fly.flydsl.numbers.types import dtype_of

GRANULE = 128  # bytes: the size of the array is a multiple
ALIGNMENT = 1024  # bytes, of the array


class SmemAllocator:
    """The array of bytes. `ptr` is its size so far, which the program increases; before the first
    kernel that uses it is traced, all is allocated."""

    def __init__(self, ctx: Any, arch: str | None = None, global_sym_name: str = "smem_storage"):
        self.ctx, self.arch, self.global_sym_name = ctx, arch, global_sym_name
        self.ptr = self.max_size = 0
        self.alignment = GRANULE
        self.finalized = False
        self.base_buffer_val: Any = None
        self.global_op: Any = None

    def _align(self, ptr: int, align: int) -> int:
        return -(-ptr // align) * align

    def _type(self) -> Any:
        size = max(self._align(self.ptr, GRANULE), GRANULE)
        return T.memref(size, T.i8(), memory_space=smem_space())

    def finalize(self) -> Any:
        """Declares the array, once until `finalized` is reset."""
        if self.finalized:
            return None
        if self.arch is not None:
            check_smem_capacity(self.ptr, self.arch)
        named = {"sym_name": self.global_sym_name, "type_": self._type(), "alignment": ALIGNMENT}
        self.global_op = memref.global_(**named)
        self.finalized = True
        return self.global_op

    def get_base(self) -> Any:
        """The array, in a kernel: a memref of bytes."""
        return memref.get_global(self._type(), self.global_sym_name)


class SmemPtr:
    """An array of elements, or one without a shape, from `byte_offset` on. `load` and `store` take
    indices, and none for the first element."""

    def __init__(
        self,
        base_memref: Any,
        byte_offset: Any,
        element_type: Any,
        shape: Sequence[int] | None = None,
    ):
        self.base_memref, self.byte_offset = base_memref, byte_offset
        self.element_type = element_type
        self.shape = None if shape is None else tuple(shape)
        self._view_cache: Any = None

    def get(self) -> Any:
        """The array as a memref. It is made where this is called first; the program resets
        `_view_cache` where that place does not dominate another one."""
        if self._view_cache is None:
            shape, element = self.shape or (1,), lower(self.element_type)
            kind = T.memref(*shape, element, memory_space=smem_space())
            offset = get_index_value(self.byte_offset)
            self._view_cache = memref.view(kind, self.base_memref, offset, sizes=[])
        return self._view_cache

    def _places(self, indices: Sequence[Any] | None) -> list[Any]:
        given = [0] * len(self.shape or (1,)) if indices is None else indices
        return [get_index_value(one) for one in given]

    def load(self, idxs: Sequence[Any] | None = None) -> Any:
        return memref.load(self.get(), self._places(idxs))

    def store(self, val: Any, idxs: Sequence[Any] | None = None) -> None:
        memref.store(get_op_result_or_value(val), self.get(), self._places(idxs))


def get_op_result_or_value(op_or_val: Any) -> Any:
    """The value of MLIR that something stands for: a number of the language, or a builder's
    result."""
    return as_ir_value(op_or_val)


def get_index_value(op_or_val: Any) -> Any:
    """An index of MLIR: of a number of Python, or of an integer."""
    if isinstance(op_or_val, int):
        return as_ir_value(arith.constant(T.index(), op_or_val))
    value = as_ir_value(op_or_val)
    return value if isinstance(value.type, ir.IndexType) else arith.index_cast(T.index(), value)


def get_mlir_type_size(mlir_type: Any) -> int:
    """The bytes of a number or a vector of MLIR."""
    if isinstance(mlir_type, ir.VectorType):
        count = 1
        for extent in mlir_type.shape:
            count *= extent
        return count * get_mlir_type_size(mlir_type.element_type)
    dtype = mlir_type if isinstance(mlir_type, DType) else dtype_of(mlir_type)
    return 4 if dtype is None else dtype.bytes


def get_mlir_type_align(mlir_type: Any) -> int:
    """The alignment of a type in bytes: its size, up to 16."""
    return min(get_mlir_type_size(mlir_type), 16)


class _Capacities(Mapping[str, int]):
    """Bytes of a workgroup's shared memory, by chip."""

    def __getitem__(self, chip: str) -> int:
        row = registry.get(chip)
        if row is None:
            raise KeyError(chip)
        return row.lds

    def __iter__(self) -> Iterator[str]:
        return iter(registry.BUILT_IN)

    def __len__(self) -> int:
        return len(registry.BUILT_IN)


SMEM_CAPACITY_MAP = _Capacities()


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Raises InputError if a chip has less shared memory for a workgroup."""
    most = SMEM_CAPACITY_MAP.get(arch) if arch is not None else None
    if most is not None and allocated_bytes > most:
        raise InputError(
            f"{allocated_bytes} bytes of shared memory, but a workgroup of {arch} has at most"
            f" {most}"
        )
