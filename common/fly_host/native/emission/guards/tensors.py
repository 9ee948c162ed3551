"""Reading tensors: whether an object is the tensor that a parameter asks for, and what it is like.

A guard that fails is a miss. The words for what is wrong are Python's
(`fly_run.launch.arrays.tensors`), and what holds there holds here: native code takes no tensor that
Python refuses. It refuses some that Python takes, written tensors above all whose dimensions lie in
an unusual order (`specialisation.Array`).

NumPy's arrays are read where they lie: the fields of PyArrayObject_fields (numpy/ndarraytypes.h)
are part of NumPy's binary interface. torch's tensors are read by the function that they publish as
`__dlpack_c_exchange_api__`, which fills a DLTensor (dlpack.h, version 1.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host import refusals
from fly_host.native.emission.frame import ERROR, MISS, UNREADABLE, Frame, Value
from fly_host.native.emission.guards.function import call, guard
from fly_host.native.emission.guards.layout import Layout
from fly_host.native.emission.marks import integer, mark
from fly_host.native.probing import OBJECT_TYPE
from fly_host.native.specialisation import Array
from fly_host.program import Tensor

# PyArrayObject_fields
DATA, ND, DIMENSIONS, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64
ALIGNED, WRITEABLE = 0x100, 0x400
# DLTensor
DL_DATA, DL_DEVICE, DL_NDIM, DL_SHAPE, DL_STRIDES, DL_OFFSET, DL_SIZE = 0, 8, 16, 24, 32, 40, 48
# DLDataTypeCode of what is no plain int, uint or float.
CODES = {
    "bool": 6, "bf16": 4, "f8E4M3FN": 10, "f8E4M3FNUZ": 11, "f8E5M2": 12, "f8E5M2FNUZ": 13,
    "f8E8M0FNU": 14,
}  # fmt: skip


def dlpack_dtype(dtype: str) -> int:
    """A DLDataType as a 32-bit integer: code, bits, lanes."""
    row = ELEMENT_TYPES[dtype]
    code = CODES.get(dtype, {"int": 0, "uint": 1, "float": 2}.get(row.kind, 0))
    return code | 8 * row.bytes << 8 | 1 << 16


@dataclass(frozen=True)
class _Read:
    """What is known of the extents and strides of arguments when the code is made: their values;
    None for those that the guard reads."""

    shape: tuple[str | None, ...]
    strides: tuple[str | None, ...]


class Reader:
    """Reads the tensor parameters of a frame, in order."""

    def __init__(self, frame: Frame):
        self.frame, self.code = frame, frame.code
        self.symbols: dict[str, str] = {}

    def parameter(self, tensor: Tensor, object: str) -> None:
        """Guards a tensor parameter."""
        code, frame, rank = self.code, self.frame, len(tensor.shape)
        array = frame.specialisation.arrays[tensor.name]
        name, known = guard(frame, _key(tensor, array), lambda inner: _write(inner, tensor, array))
        room = code.room(f"[{1 + 2 * rank} x i64]")
        dtype = frame.slot("dtype", tensor.name) if array.kind == "numpy" else "null"
        call(frame, name, object, room, dtype)
        found = [
            code.load("i64", room, 8 * place) if number is None else number
            for place, number in enumerate((*known.shape, *known.strides), 1)
        ]
        shape, strides = tuple(found[:rank]), tuple(found[rank:])
        self._same(tensor, shape)
        held = "null" if frame.way.for_c else object
        value = Value(held, code.load("ptr", room), shape, strides, tensor.dtype)
        frame.tensors[tensor.name] = value

    def _same(self, tensor: Tensor, shape: tuple[str, ...]) -> None:
        """Extents of one name are equal."""
        together: str | None = None
        for stated, extent in zip(tensor.shape, shape, strict=True):
            if isinstance(stated, str):
                first = self.symbols.setdefault(stated, extent)
                if first != extent:
                    same = self.code.value(f"icmp eq i64 {extent}, {first}")
                    together = self.code.both(together, same)
        if together is not None:
            self.code.require(together, MISS)


def _key(tensor: Tensor, array: Array) -> tuple[Any, ...]:
    """What decides about the guard of a tensor."""
    shape = tuple(extent if isinstance(extent, int) else None for extent in tensor.shape)
    layout = (tensor.contiguous, tensor.strides, tensor.multiples, tensor.access == "r")
    layout = (*layout, tensor.alignment)
    kind = (array.kind, array.device, array.order)
    if array.kind == "dlpack":  # it says which parameter is wrong
        kind = (*kind, tensor.name)
    return ("tensor", *kind, tensor.dtype, shape, *layout)


def _write(frame: Frame, tensor: Tensor, array: Array) -> _Read:
    """The guard of a tensor: it stores the address of element zero, extents and strides."""
    return _Guard(frame, tensor, array).write()


class _Guard:
    """Writes the guard of one kind of tensors."""

    def __init__(self, frame: Frame, tensor: Tensor, array: Array):
        self.frame, self.code = frame, frame.code
        self.tensor, self.array = tensor, array

    def write(self) -> _Read:
        code, tensor = self.code, self.tensor
        conditions: list[str] = []
        kinds = {"torch": self._torch, "numpy": self._numpy, "dlpack": self._dlpack}
        data, shape, strides = kinds[self.array.kind](conditions)
        extents = self._extents(shape, conditions)
        layout = Layout(self.frame, tensor, extents, strides, conditions, self.array.order)
        layout.check()
        itemsize = ELEMENT_TYPES[tensor.dtype].bytes
        if self.array.kind != "numpy" and itemsize > 1:  # NumPy's flags tell
            self._aligned(conditions, data, itemsize, refusals.alignment(tensor.name))
        if tensor.alignment:
            words = refusals.alignment(tensor.name, tensor.alignment)
            self._aligned(conditions, data, tensor.alignment, words)
        self._all(conditions)
        seen = layout.seen()
        code.store("ptr", data, "%out")
        for place, number in enumerate((*extents, *seen), 1):
            if number.startswith("%"):
                code.store("i64", number, "%out", 8 * place)
        return _Read(_constants(extents), _constants(seen))

    def _aligned(self, conditions: list[str], data: str, nbytes: int, words: str) -> None:
        low = self.code.value(f"ptrtoint ptr {data} to i64")
        low = self.code.value(f"and i64 {low}, {nbytes - 1}")
        aligned = self.code.value(f"icmp eq i64 {low}, 0")
        self._expect(conditions, aligned, lambda: words)

    def _torch(self, conditions: list[str]) -> tuple[str, list[str], list[str]]:
        code, frame, tensor, array = self.code, self.frame, self.tensor, self.array
        rank, object = len(tensor.shape), "%object"
        kind = code.load("ptr", object, OBJECT_TYPE)
        usual = code.value(f"icmp eq ptr {kind}, {frame.slot('torch.Tensor')}")
        other = code.value(f"icmp eq ptr {kind}, {frame.slot('torch.nn.Parameter')}")
        code.require(code.value(f"or i1 {usual}, {other}"), MISS)
        assert frame.torch is not None
        if frame.torch.tensor_at is not None:
            # A tensor whose elements stand for their negatives: x.conj().imag is one.
            where = code.at(object, frame.torch.tensor_at)
            call = f"call zeroext i1 {frame.slot('is_neg')}(ptr {where})"
            conditions.append(code.value(f"xor i1 {code.value(call)}, true"))
        else:
            made = code.value(
                f"call ptr @PyObject_CallOneArg(ptr {frame.slot('is_neg')}, ptr {object})"
            )
            code.require(code.value(f"icmp ne ptr {made}, null"), UNREADABLE)
            code.do(f"call void @Py_DecRef(ptr {made})")  # True and False outlive it
            conditions.append(code.value(f"icmp eq ptr {made}, @_Py_FalseStruct"))
        room = code.room(f"[{DL_SIZE} x i8]")
        status = code.value(f"call i32 {frame.slot('dltensor')}(ptr {object}, ptr {room})")
        code.require(code.value(f"icmp eq i32 {status}, 0"), UNREADABLE)
        device = array.device[0] | array.device[1] << 32
        conditions.append(code.value(f"icmp eq i64 {code.load('i64', room, DL_DEVICE)}, {device}"))
        # Rank and dtype lie side by side.
        wanted = rank | dlpack_dtype(tensor.dtype) << 32
        same = code.value(f"icmp eq i64 {code.load('i64', room, DL_NDIM)}, {wanted}")
        self._all([*conditions, same])
        conditions.clear()
        data = _dlpack_data(frame, room)
        shape, strides = code.load("ptr", room, DL_SHAPE), code.load("ptr", room, DL_STRIDES)
        return data, self._several(shape, rank), self._several(strides, rank)

    def _numpy(self, conditions: list[str]) -> tuple[str, list[str], list[str]]:
        code, frame, tensor = self.code, self.frame, self.tensor
        rank, object = len(tensor.shape), "%object"
        kind = code.load("ptr", object, OBJECT_TYPE)
        code.require(code.value(f"icmp eq ptr {kind}, {frame.slot('numpy.ndarray')}"), MISS)
        nd = code.value(f"icmp eq i32 {code.load('i32', object, ND)}, {rank}")
        descr = code.load("ptr", object, DESCR)
        same = code.value(f"icmp eq ptr {descr}, %dtype")
        wanted = ALIGNED if tensor.access == "r" else ALIGNED | WRITEABLE
        flags = code.value(f"and i32 {code.load('i32', object, FLAGS)}, {wanted}")
        self._all([nd, same, code.value(f"icmp eq i32 {flags}, {wanted}")])
        shape = self._several(code.load("ptr", object, DIMENSIONS), rank)
        strides = self._several(code.load("ptr", object, STRIDES), rank)
        return code.load("ptr", object, DATA), shape, self._elements(strides, conditions)

    def _dlpack(self, conditions: list[str]) -> tuple[str, list[str], list[str]]:
        """A DLTensor of a caller without Python."""
        code, tensor = self.code, self.tensor
        rank, name, object = len(tensor.shape), tensor.name, "%object"
        first = next(p.name for p in self.frame.program.parameters if isinstance(p, Tensor))
        usual, here = code.load("i64", "%table"), code.load("i64", object, DL_DEVICE)
        self._expect(
            conditions,
            code.value(f"icmp eq i64 {here}, {usual}"),
            lambda: refusals.places(first, mark("place", usual), name, mark("place", here)),
        )
        dtype, dimensions = code.load("i32", object, DL_NDIM + 4), code.load("i32", object, DL_NDIM)
        self._expect(
            conditions,
            code.value(f"icmp eq i32 {dtype}, {dlpack_dtype(tensor.dtype)}"),
            lambda: refusals.dtype(name, tensor.dtype, mark("dtype", dtype)),
        )
        count = code.value(f"sext i32 {dimensions} to i64")
        shape = code.load("ptr", object, DL_SHAPE)
        self._expect(
            conditions,
            code.value(f"icmp eq i64 {count}, {rank}"),
            lambda: refusals.rank(name, rank, integer(count), mark("array", shape, count)),
        )
        if rank:
            there = code.value(f"icmp ne ptr {shape}, null")
            self._expect(conditions, there, lambda: f"{name} has no shape: it is a null pointer")
        extents = self._several(shape, rank)
        for dimension, extent in enumerate(extents):
            self._expect(
                conditions,
                code.value(f"icmp sge i64 {extent}, 0"),
                lambda extent=extent, at=dimension: f"extent {at} of {name} is {integer(extent)}",
            )
        room = code.room(f"[{max(rank, 1)} x i64]")
        strides = code.value(f"call ptr @fly_strides(ptr {object}, ptr {room})")
        return _dlpack_data(self.frame, object), extents, self._several(strides, rank)

    def _expect(self, conditions: list[str], condition: str, words: Callable[[], str]) -> None:
        self.frame.expect(conditions, condition, words)

    def _elements(self, strides: list[str], conditions: list[str]) -> list[str]:
        """Strides in bytes as strides in elements, whose size is a power of two."""
        itemsize = ELEMENT_TYPES[self.tensor.dtype].bytes
        if itemsize == 1:
            return strides
        code, found = self.code, []
        for stride in strides:
            rest = code.value(f"and i64 {stride}, {itemsize - 1}")
            conditions.append(code.value(f"icmp eq i64 {rest}, 0"))
            found.append(code.value(f"ashr i64 {stride}, {itemsize.bit_length() - 1}"))
        return found

    def _several(self, base: str, count: int) -> list[str]:
        return [self.code.load("i64", base, 8 * position) for position in range(count)]

    def _extents(self, shape: list[str], conditions: list[str]) -> list[str]:
        """Extents: those that are stated are known when the code is made."""
        found: list[str] = []
        for dimension, (stated, extent) in enumerate(zip(self.tensor.shape, shape, strict=True)):
            if isinstance(stated, int):
                same = self.code.value(f"icmp eq i64 {extent}, {stated}")
                self._expect(
                    conditions,
                    same,
                    lambda dimension=dimension, stated=stated: refusals.extent(
                        self.tensor.name, dimension, stated, mark("tuple", *shape)
                    ),
                )
                extent = str(stated)
            found.append(extent)
        return found

    def _all(self, conditions: list[str]) -> None:
        """Goes on where all conditions hold."""
        together: str | None = None
        for condition in conditions:
            together = self.code.both(together, condition)
        if together is not None:
            self.code.require(together, MISS)


def _constants(values: list[str]) -> tuple[str | None, ...]:
    return tuple(None if value.startswith("%") else value for value in values)


def _dlpack_data(frame: Frame, room: str) -> str:
    data = frame.code.load("ptr", room, DL_DATA)
    offset = frame.code.load("i64", room, DL_OFFSET)
    return frame.code.value(f"getelementptr i8, ptr {data}, i64 {offset}")


def data_of(frame: Frame, array: Array, object: str) -> str:
    """The address of element zero of a tensor that was just made. An error is the tensor's."""
    code = frame.code
    if array.kind == "numpy":
        return code.load("ptr", object, DATA)
    room = code.room(f"[{DL_SIZE} x i8]")
    status = code.value(f"call i32 {frame.slot('dltensor')}(ptr {object}, ptr {room})")
    code.require(code.value(f"icmp eq i32 {status}, 0"), ERROR)
    return _dlpack_data(frame, room)
