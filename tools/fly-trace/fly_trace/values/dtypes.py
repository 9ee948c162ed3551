"""The element types. `promotion` has the type of an operation on two of them.

The types in STORED are only formats for memory and matrix instructions: their values are loaded,
stored, moved and converted, but there is no arithmetic in them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted
from fly_numerics.element_types import ELEMENT_TYPES, ElementType
from fly_numerics.small_floats import FORMATS

from fly_trace.values.scalars import Scalar


class PromotionError(TypeError):
    """Two types that cannot be combined, or a Python number that does not fit."""


class Family(type):
    """The metaclass of types of numbers: an instance of one is a number whose `dtype` is a subclass
    of it."""

    def __instancecheck__(cls, value: Any) -> bool:
        return getattr(type(value), "is_number", False) and issubclass(value.dtype, cls)


class Numeric(metaclass=Family):
    """All types of numbers."""

    __slots__ = ()


class Integer(Numeric):
    """The integer types, without Boolean."""

    __slots__ = ()


class Float(Numeric):
    """The floating-point types."""

    __slots__ = ()


class DType(Family):
    """The metaclass of the element types: `fx.Float32` is a class. A call converts:
    `fx.Float32(x)`. `kind` is bool, int, uint or float."""

    name: str  # f32, as in signatures
    title: str  # Float32, as in kernels
    kind: str
    bits: int

    @property
    def width(cls) -> int:
        """The number of bits."""
        return cls.bits

    @property
    def is_float(cls) -> bool:
        return cls.kind == "float"

    @property
    def is_integer(cls) -> bool:
        return cls.kind in ("int", "uint")

    @property
    def is_narrow(cls) -> bool:
        """Whether there is no arithmetic in it: a float of 8 bits or less, an integer of 4."""
        return cls.name in STORED

    @property
    def is_packed(cls) -> bool:
        """Whether several elements share a byte of memory. (A bool takes a whole byte.)"""
        return cls.is_narrow and cls.bits < 8

    @property
    def has_arrays(cls) -> bool:
        """Whether there are arrays of it, if only of its bits: what launches can pass."""
        return bool(ELEMENT_TYPES[cls.name].numpy)

    @property
    def is_signed(cls) -> bool:
        return cls.kind != "uint"

    @property
    def is_bool(cls) -> bool:
        return cls.kind == "bool"

    @property
    def bytes(cls) -> int:
        """The size of a single element in memory; several of less than 8 bits share a byte."""
        return max(1, cls.bits // 8)

    def bytes_of(cls, count: Any) -> Any:
        """The size of `count` consecutive elements in memory, for a number or a Scalar."""
        return -(-count * cls.bits // 8) if cls.is_packed else count * cls.bytes

    @property
    def ir(cls) -> str:
        """The MLIR type of a value in registers; integers are signless."""
        return cls.name if cls.is_float else f"i{cls.bits}"

    @property
    def memory(cls) -> str:
        """The MLIR type of an element in memory: a bool is a byte."""
        return "i8" if cls.is_bool else cls.ir

    @property
    def range(cls) -> tuple[int, int]:
        """The least and the greatest integer."""
        if cls.kind == "int":
            return -(1 << (cls.bits - 1)), (1 << (cls.bits - 1)) - 1
        return 0, (1 << cls.bits) - 1

    if TYPE_CHECKING:
        # Installed by `operators`.
        def __call__(cls, value: Any) -> Any: ...

    def __repr__(cls) -> str:
        return f"fx.{cls.title}"


def _of_numbers_only(name: str) -> property:
    """An attribute that a type's numbers have, and the type itself has not."""

    def read(cls: DType) -> Any:
        raise AttributeError(f"{cls!r} is a type: only its numbers have {name}")

    return property(read)


for _name in (*Scalar.__slots__, "ssa", "is_static"):
    setattr(DType, _name, _of_numbers_only(_name))


# The bits of a float's fraction, with the implicit one: integers up to 2**bits are exact.
FRACTION_BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}

# The least magnitude that rounds to infinity, by type.
OVERFLOW = {"f16": 65520.0, "bf16": 3.3961775292304957e38, "f32": 3.4028235677973366e38}


def greatest(dtype: DType) -> float:
    """The greatest finite number of a float with arithmetic."""
    most = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}[dtype.name]
    return (2 - 2.0 ** (1 - FRACTION_BITS[dtype.name])) * 2.0**most


_TITLES = {"int": "Int", "uint": "Uint", "float": "Float"}


def _title(row: ElementType) -> str:
    """The name in kernels, as in FlyDSL: Float32, BFloat16, Uint8, Float8E4M3FN."""
    if row.kind == "bool":
        return "Boolean"
    if row.name == "bf16":
        return "BFloat16"
    return _TITLES[row.kind] + row.name[1:]


_BASES = {"bool": Numeric, "int": Integer, "uint": Integer, "float": Float}


def element_type(
    title: str, family: type, module: str, fields: dict[str, Any], kind: type[DType] = DType
) -> DType:
    """Makes an element type: its instances are Scalars, which `Scalar(dtype, …)` makes."""
    return kind(title, (family, Scalar), {"__module__": module, "__slots__": (), **fields})


def _made(row: ElementType) -> DType:
    title = _title(row)
    fields = {"name": row.name, "title": title, "kind": row.kind, "bits": row.bits}
    made = element_type(title, _BASES[row.kind], __name__, fields)
    globals()[title] = made  # where pickle and others look a class up
    return made


def _rows(computes: bool) -> tuple[DType, ...]:
    return tuple(_made(row) for row in ELEMENT_TYPES.values() if row.computes == computes)


_TYPES = _rows(computes=True)
# The types with arithmetic.
DTYPES = {dtype.name: dtype for dtype in _TYPES}
BOOL, I8, I16, I32, I64, I128, U8, U16, U32, U64, U128, F16, BF16, F32, F64 = _TYPES
STORED = {dtype.name: dtype for dtype in _rows(computes=False)}


# All types by their short names.
EVERY = DTYPES | STORED


def named(name: str) -> DType:
    """The type with the short name `name`."""
    return EVERY[name]


def rounded(number: float, dtype: DType) -> float:
    """The value of `dtype` nearest to `number`, ties to even."""
    if small := FORMATS.get(dtype.name):
        code = small.encode(number)
        return float(number) if code is None else small.decode(code)
    if dtype.name == "f64" or number != number or abs(number) == float("inf"):
        return float(number)
    if dtype.name == "bf16":
        low = struct.unpack("<Q", struct.pack("<d", number))[0]
        # A double has 52 fraction bits, a bf16 seven; subnormals (below 2**-126) have fewer.
        if abs(number) < 2.0**-126:
            return round(number * 2.0**133) * 2.0**-133
        low += (1 << 44) - 1 + (low >> 45 & 1)
        return struct.unpack("<d", struct.pack("<Q", low >> 45 << 45))[0]
    code = "<f" if dtype.name == "f32" else "<e"
    return struct.unpack(code, struct.pack(code, number))[0]


def check_fits(number: bool | int | float, dtype: DType) -> None:
    """Raises PromotionError unless `dtype` can hold the number (a float may round, not
    overflow)."""
    if small := FORMATS.get(dtype.name):
        if small.encode(float(number)) is None:
            raise PromotionError(f"{quoted(number)} doesn't fit in {dtype.name}")
    elif dtype.is_float:
        limit = OVERFLOW.get(dtype.name, 2**1024)
        finite = isinstance(number, int) or abs(number) < float("inf")
        if finite and abs(number) >= limit:
            raise PromotionError(
                f"{quoted(number)} doesn't fit in {dtype.name}: it would be infinite"
            )
    elif isinstance(number, float):
        raise PromotionError(f"{quoted(number)} is a float, but {dtype.name} is an integer type")
    elif dtype.is_bool:
        if number not in (0, 1):
            raise PromotionError(f"{quoted(number)} is not a bool")
    else:
        low, high = dtype.range
        if not low <= number <= high:
            raise PromotionError(f"{quoted(number)} doesn't fit in {dtype.name} ({low} to {high})")
