"""The element types and their names in each library: one row per type.

Types with a long name are computed with or stored in arrays. NumPy lacks bf16 and 8-bit floats:
arrays of these are unsigned integers of the same width (`numpy`), or types of the package
ml_dtypes, which uses the `long_name`.
"""

from __future__ import annotations

from fly_common.record import record


@record
class ElementType:
    """`kind` is bool, int, uint or float. `numpy` is the type string of arrays that hold it.
    `struct` is its format character in Python's `struct` module, or "". `long_name` is the name in
    NumPy, ml_dtypes and torch. `computes` says whether there is arithmetic in the type; otherwise
    it is only a storage format."""

    name: str
    kind: str
    bits: int
    numpy: str = ""
    struct: str = ""
    long_name: str = ""
    computes: bool = True

    @property
    def bytes(self) -> int:
        """The size of a single element in memory."""
        return max(1, self.bits // 8)

    @property
    def is_numpys(self) -> bool:
        """Whether the type is NumPy's own."""
        return bool(self.struct)


ELEMENT_TYPES = {
    row.name: row
    for row in (
        #           name           kind    bits numpy  struct long name
        ElementType("bool", "bool", 1, "|b1", "?", "bool"),
        ElementType("i8", "int", 8, "|i1", "b", "int8"),
        ElementType("i16", "int", 16, "<i2", "h", "int16"),
        ElementType("i32", "int", 32, "<i4", "i", "int32"),
        ElementType("i64", "int", 64, "<i8", "q", "int64"),
        # NumPy and torch have no arrays of 128-bit integers.
        ElementType("i128", "int", 128),
        ElementType("u8", "uint", 8, "|u1", "B", "uint8"),
        ElementType("u16", "uint", 16, "<u2", "H", "uint16"),
        ElementType("u32", "uint", 32, "<u4", "I", "uint32"),
        ElementType("u64", "uint", 64, "<u8", "Q", "uint64"),
        ElementType("u128", "uint", 128),
        ElementType("f16", "float", 16, "<f2", "e", "float16"),
        ElementType("bf16", "float", 16, "<u2", "", "bfloat16"),
        ElementType("f32", "float", 32, "<f4", "f", "float32"),
        ElementType("f64", "float", 64, "<f8", "d", "float64"),
        # MLIR's names.
        ElementType("f8E4M3FN", "float", 8, "|u1", "", "float8_e4m3fn", False),
        ElementType("f8E4M3FNUZ", "float", 8, "|u1", "", "float8_e4m3fnuz", False),
        ElementType("f8E5M2", "float", 8, "|u1", "", "float8_e5m2", False),
        ElementType("f8E5M2FNUZ", "float", 8, "|u1", "", "float8_e5m2fnuz", False),
        ElementType("f8E8M0FNU", "float", 8, "|u1", "", "float8_e8m0fnu", False),
        # Several elements share a byte, so there are no arrays of these.
        ElementType("f6E2M3FN", "float", 6, computes=False),
        ElementType("f6E3M2FN", "float", 6, computes=False),
        ElementType("f4E2M1FN", "float", 4, computes=False),
        ElementType("i4", "int", 4, computes=False),
        ElementType("u4", "uint", 4, computes=False),
    )
}
