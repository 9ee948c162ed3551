"""Reading tensors: whether an object is the tensor that a parameter asks for, and what it is like.

A guard that fails is a miss. The words for what is wrong are Python's (`fly_run.launch.tensors`),
and what holds there holds here: native code takes no tensor that Python refuses. It refuses some
that Python takes, written tensors above all whose dimensions lie in an unusual order
(`specialisation.Array`).

NumPy's arrays are read where they lie: the fields of PyArrayObject_fields (numpy/ndarraytypes.h)
are part of NumPy's binary interface. torch's tensors are read by the function that they publish as
`__dlpack_c_exchange_api__`, which fills a DLTensor (dlpack.h, version 1.3).
"""

from __future__ import annotations

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.frame import ERROR, MISS, Frame, Value
from fly_host.native.specialisation import Array
from fly_host.program import Tensor

OB_TYPE = 8  # of a PyObject
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
UNREADABLE = "%unreadable"  # a miss; Python has an error, which is dropped


def dlpack_dtype(dtype: str) -> int:
    """A DLDataType as a 32-bit integer: code, bits, lanes."""
    row = ELEMENT_TYPES[dtype]
    code = CODES.get(dtype, {"int": 0, "uint": 1, "float": 2}.get(row.kind, 0))
    return code | 8 * row.bytes << 8 | 1 << 16


class Reader:
    """Reads the tensor parameters of a frame, in order."""

    def __init__(self, frame: Frame):
        self.frame, self.code = frame, frame.code
        self.symbols: dict[str, str] = {}

    def parameter(self, tensor: Tensor, object: str) -> None:
        """Guards a tensor parameter."""
        array = self.frame.specialisation.arrays[tensor.name]
        torch = array.kind == "torch"
        conditions: list[str] = []
        if torch:
            data, shape, strides = self._torch(tensor.name, array, tensor, object, conditions)
        else:
            data, shape, strides = self._numpy(tensor.name, tensor, object, conditions)
        itemsize = ELEMENT_TYPES[tensor.dtype].bytes
        if torch and itemsize > 1:
            low = self.code.value(f"ptrtoint ptr {data} to i64")
            low = self.code.value(f"and i64 {low}, {itemsize - 1}")
            conditions.append(self.code.value(f"icmp eq i64 {low}, 0"))
        extents = self._extents(tensor, shape, conditions)
        layout = _Layout(self.frame, tensor, extents, strides, conditions, array.order)
        layout.check()
        if conditions:
            self._all(conditions)
        value = Value(object, data, tuple(extents), tuple(layout.seen()), tensor.dtype)
        self.frame.tensors[tensor.name] = value

    def _torch(
        self, name: str, array: Array, tensor: Tensor, object: str, conditions: list[str]
    ) -> tuple[str, list[str], list[str]]:
        code, frame, rank = self.code, self.frame, len(tensor.shape)
        kind = code.load("ptr", object, OB_TYPE)
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

    def _numpy(
        self, name: str, tensor: Tensor, object: str, conditions: list[str]
    ) -> tuple[str, list[str], list[str]]:
        code, frame, rank = self.code, self.frame, len(tensor.shape)
        kind = code.load("ptr", object, OB_TYPE)
        code.require(code.value(f"icmp eq ptr {kind}, {frame.slot('numpy.ndarray')}"), MISS)
        nd = code.value(f"icmp eq i32 {code.load('i32', object, ND)}, {rank}")
        descr = code.load("ptr", object, DESCR)
        same = code.value(f"icmp eq ptr {descr}, {frame.slot('dtype', name)}")
        wanted = ALIGNED if tensor.access == "r" else ALIGNED | WRITEABLE
        flags = code.value(f"and i32 {code.load('i32', object, FLAGS)}, {wanted}")
        self._all([nd, same, code.value(f"icmp eq i32 {flags}, {wanted}")])
        shape = self._several(code.load("ptr", object, DIMENSIONS), rank)
        strides = self._several(code.load("ptr", object, STRIDES), rank)
        return code.load("ptr", object, DATA), shape, self._elements(tensor, strides, conditions)

    def _elements(self, tensor: Tensor, strides: list[str], conditions: list[str]) -> list[str]:
        """Strides in bytes as strides in elements, whose size is a power of two."""
        itemsize = ELEMENT_TYPES[tensor.dtype].bytes
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

    def _extents(self, tensor: Tensor, shape: list[str], conditions: list[str]) -> list[str]:
        """Extents: those that are stated are known when the code is made."""
        found: list[str] = []
        for stated, extent in zip(tensor.shape, shape, strict=True):
            if isinstance(stated, int):
                wanted = str(stated)
            elif isinstance(stated, str) and stated in self.symbols:
                wanted = self.symbols[stated]
            else:
                if isinstance(stated, str):
                    self.symbols[stated] = extent
                found.append(extent)
                continue
            conditions.append(self.code.value(f"icmp eq i64 {extent}, {wanted}"))
            found.append(wanted)
        return found

    def _all(self, conditions: list[str]) -> None:
        """Goes on where all conditions hold."""
        together: str | None = None
        for condition in conditions:
            together = self.code.both(together, condition)
        if together is not None:
            self.code.require(together, MISS)


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


class _Layout:
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
        self.code, self.tensor, self.order = frame.code, tensor, order
        self.extents, self.strides, self.conditions = extents, strides, conditions
        self._empty: str | None = None
        self.canonical = self._canonical() if tensor.contiguous else []

    def check(self) -> None:
        wanted = self.canonical if self.tensor.contiguous else self.tensor.strides
        for want, have, extent in zip(wanted, self.strides, self.extents, strict=True):
            if want is not None:
                same = self.code.value(f"icmp eq i64 {have}, {want}")
                self._either(same, self._single(extent), self.empty)
        for divisor, extent in zip(self.tensor.multiples, self.extents, strict=False):
            self._multiple(extent, divisor)
        rank = len(self.extents)
        for divisor, extent, stride in zip(
            self.tensor.multiples[rank:], self.extents, self.strides, strict=False
        ):
            free = self.code.value(f"or i1 {self._single(extent)}, {self.empty}")
            self._multiple(self.code.value(f"select i1 {free}, i64 0, i64 {stride}"), divisor)
        if self.tensor.access != "r" and not self.tensor.contiguous and rank:
            self._either(*(self._apart(order) for order in self._orders(rank)), self.empty)

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
                    self.conditions.append("false")
                    step = "1"
            else:
                count = self.code.value(f"call i64 @llvm.smax.i64(i64 {extent}, i64 1)")
                pair = self.code.value(
                    f"call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 {step}, i64 {count})"
                )
                step = self.code.value(f"extractvalue {{i64, i1}} {pair}, 0")
                left = self.code.value(f"extractvalue {{i64, i1}} {pair}, 1")
                self.conditions.append(self.code.value(f"xor i1 {left}, true"))
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

    def _either(self, first: str, *others: str) -> None:
        for other in others:
            first = self._or(first, other)
        self.conditions.append(first)

    def _multiple(self, value: str, divisor: int) -> None:
        if divisor > 1:
            rest = self.code.value(f"srem i64 {value}, {divisor}")
            self.conditions.append(self.code.value(f"icmp eq i64 {rest}, 0"))

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
