"""The types of the fly dialect as data, and their text. Imports no MLIR.

    IntTupleSpec       !fly.int_tuple<(4,?{i64})>
    LayoutSpec         !fly.layout<(4,8):(1,4)>
    ComposedLayoutSpec !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
    SwizzleSpec        !fly.swizzle<S<3,3,3>>
    CoordSwizzleSpec   !fly.coord_swizzle<CS<3,0,[0],0,[1]>>
    TileSpec           !fly.tile<[4|8:1|*]>
    PtrSpec            !fly.ptr<f32, shared, align<16>, S<3,3,3>>
    MemRefSpec         !fly.memref<f32, global, (16,?):(1,?)>
    CoordTensorSpec    !fly.coord_tensor<(0,0), (4,8):(1E0,1E1)>
    OtherSpec          any other type, by its text

Instructions, atoms and tiled copies and multiplications are in `fly_dialect.atoms`.

`parse_type` parses each of them, `str` prints it; the text is FlyDSL's. A type of another dialect
(`f32`, `vector<4xf32>`, `!llvm.ptr<1>`) is represented by its text, a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from fly_common.record import record

from fly_dialect.layouts.int_tuple import IntTuple, int_tuple, text
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.layouts.scanner import Scanner
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_dialect.layouts.tile import Tile

if TYPE_CHECKING:
    from fly_dialect.atoms import AtomOp
    from fly_dialect.atoms.specs import AtomSpec, TiledSpec

# Address space → LLVM's number on AMDGPU (AMDGPUUsage, "Address Spaces").
SPACES = {"generic": 0, "global": 1, "shared": 3, "register": 5}

_BITS = re.compile(r"[a-z]+?(\d+)")
_FLOAT_BITS = {"bf16": 16, "tf32": 19, "index": 64}
_NUMBER = re.compile(r"vector<((?:\d+x)+)(.+)>")


@lru_cache(maxsize=256)
def bits(element: str) -> int:
    """The width in bits of an element type: f32, bf16, i8, f8E4M3FN, vector<4xf16>."""
    if element in _FLOAT_BITS:
        return _FLOAT_BITS[element]
    if vector := _NUMBER.fullmatch(element):
        count = 1
        for extent in vector[1].rstrip("x").split("x"):
            count *= int(extent)
        return count * bits(vector[2])
    if match := _BITS.match(element):
        return int(match[1])
    raise ValueError(f"element type {element} has no width in bits")


def element_bytes(element: str) -> int:
    """The size of an element in memory in bytes, which is also its natural alignment."""
    return (bits(element) + 7) // 8


@record
class IntTupleSpec:
    value: IntTuple

    def __str__(self) -> str:
        return f"!fly.int_tuple<{text(self.value)}>"


@record
class LayoutSpec:
    layout: Layout

    def __str__(self) -> str:
        return f"!fly.layout<{self.layout}>"


@record
class ComposedLayoutSpec:
    layout: ComposedLayout

    def __str__(self) -> str:
        return f"!fly.composed_layout<{self.layout}>"


@record
class SwizzleSpec:
    swizzle: Swizzle

    def __str__(self) -> str:
        return f"!fly.swizzle<{self.swizzle}>"


@record
class CoordSwizzleSpec:
    swizzle: CoordSwizzle

    def __str__(self) -> str:
        return f"!fly.coord_swizzle<{self.swizzle}>"


@record
class TileSpec:
    tile: Tile

    def __str__(self) -> str:
        return f"!fly.tile<{self.tile}>"


@record
class PtrSpec:
    """A pointer to elements. `align` is in bytes; None is the element's own alignment. `space` is
    one of SPACES or a target's attribute (`#fly_rocdl.buffer_desc`)."""

    element: str
    space: str
    align: int | None = None
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        _check_pointer(self)

    @property
    def alignment(self) -> int:
        """The alignment in bytes that the type guarantees."""
        return self.align or element_bytes(self.element)

    def __str__(self) -> str:
        return f"!fly.ptr<{self.element}, {self.space}{_suffix(self)}>"

    @staticmethod
    def parse(source: str) -> PtrSpec:
        """Parses `!fly.ptr<f32, global>`, or the text between its brackets."""
        return _parse_as(PtrSpec, "ptr", source)


@record
class MemRefSpec:
    """A view of memory: elements, an address space and a layout that counts in elements."""

    element: str
    space: str
    layout: AnyLayout
    align: int | None = None
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        _check_pointer(self)

    @property
    def alignment(self) -> int:
        return self.align or element_bytes(self.element)

    @property
    def pointer(self) -> PtrSpec:
        """The type of its iterator."""
        return PtrSpec(self.element, self.space, self.align, self.swizzle)

    def __str__(self) -> str:
        return f"!fly.memref<{self.element}, {self.space}, {self.layout}{_suffix(self)}>"

    @staticmethod
    def parse(source: str) -> MemRefSpec:
        """Parses `!fly.memref<f32, global, 4:1>`, or the text between its brackets."""
        return _parse_as(MemRefSpec, "memref", source)


@record
class CoordTensorSpec:
    """A view of coordinates: the base plus the layout's offset, without memory."""

    base: IntTuple
    layout: AnyLayout

    def __str__(self) -> str:
        return f"!fly.coord_tensor<{text(self.base)}, {self.layout}>"


@record
class OtherSpec:
    """A fly type that is not parsed: its name and the text between the brackets."""

    name: str
    body: str

    def __str__(self) -> str:
        return f"!fly.{self.name}<{self.body}>" if self.body else f"!fly.{self.name}"


class BackendSpec:
    """Base of the types of backends' dialects, other than instructions; `str` is a type's text."""

    __slots__ = ()


_PlainSpec: TypeAlias = (
    IntTupleSpec
    | LayoutSpec
    | ComposedLayoutSpec
    | SwizzleSpec
    | CoordSwizzleSpec
    | TileSpec
    | PtrSpec
    | MemRefSpec
    | CoordTensorSpec
    | OtherSpec
    | BackendSpec
)
FlySpec: TypeAlias = "_PlainSpec | AtomOp | AtomSpec | TiledSpec"
# A fly type's spec, or the text of any other type.
Spec: TypeAlias = "FlySpec | str"


def int_tuple_spec(value: object) -> IntTupleSpec:
    """The int_tuple type of `value`. Python integers and lists are converted."""
    return IntTupleSpec(int_tuple(value))


def plain_layout(spec: MemRefSpec | CoordTensorSpec) -> Layout:
    """The layout of a view. Raises ValueError if it is composed."""
    if not isinstance(spec.layout, Layout):
        raise ValueError(f"{spec} has a composed layout")
    return spec.layout


def layout_spec(layout: AnyLayout) -> LayoutSpec | ComposedLayoutSpec:
    """The type of a value with this layout."""
    if isinstance(layout, Layout):
        return LayoutSpec(layout)
    return ComposedLayoutSpec(layout)


def _check_pointer(spec: PtrSpec | MemRefSpec) -> None:
    natural = element_bytes(spec.element)
    if not natural:
        raise ValueError(f"an element of type {spec.element} takes no memory")
    if spec.align is not None:
        if spec.align <= 0 or spec.align % natural:
            raise ValueError(
                f"alignment must be a positive multiple of {spec.element}'s {natural} bytes, "
                f"not {spec.align}"
            )
        if spec.align == natural:
            object.__setattr__(spec, "align", None)
    if spec.swizzle is not None and spec.swizzle.is_trivial:
        object.__setattr__(spec, "swizzle", None)
    if spec.space not in SPACES and not spec.space.startswith("#"):
        raise ValueError(f"address space {spec.space} is not one of {', '.join(SPACES)}")


def _suffix(spec: PtrSpec | MemRefSpec) -> str:
    align = f", align<{spec.align}>" if spec.align else ""
    return f"{align}, {spec.swizzle}" if spec.swizzle else align


_T = TypeVar("_T")


# -- text -----------------------------------------------------------------------------------------
_NAME = re.compile(r"\s*!(fly(?:_[a-z0-9]+)?)\.([A-Za-z_][\w.]*)\s*(?:<(.*)>)?\s*", re.DOTALL)
_SPACE_WORD = re.compile(r"\s*(#?[A-Za-z_][\w.]*)")
_ALIGN = re.compile(r"\s*align\s*<\s*(-?\d+)\s*>")


def split_type(source: str) -> tuple[str, str, str] | None:
    """Dialect, name and body of `!fly.name<body>` or a backend's type. None for other text."""
    match = _NAME.fullmatch(source)
    return (match[1], match[2], match[3] or "") if match else None


def reader(dialect: str, name: str) -> Callable[[Scanner], Spec] | None:
    """The parser for the text between the brackets of a type of this module, or None."""
    return _READERS.get(name) if dialect == "fly" else None


def read_body(read: Callable[[Scanner], _T], body: str) -> _T:
    """Parses all of the text between a type's brackets. Raises ValueError."""
    scanner = Scanner(body)
    spec = read(scanner)
    scanner.end()
    return spec


_S = TypeVar("_S", "PtrSpec", "MemRefSpec")


def _parse_as(kind: type[_S], name: str, source: str) -> _S:
    whole = source if source.lstrip().startswith("!") else f"!fly.{name}<{source}>"
    parts = split_type(whole)
    read = reader(*parts[:2]) if parts else None
    spec = read_body(read, parts[2]) if parts and read else None
    if not isinstance(spec, kind):
        raise ValueError(f"`{source}` is not a {name} type")
    return spec


def _read_int_tuple(scanner: Scanner) -> IntTupleSpec:
    return IntTupleSpec(scanner.int_tuple())


def _read_layout(scanner: Scanner) -> LayoutSpec:
    return LayoutSpec(scanner.layout())


def _read_composed_layout(scanner: Scanner) -> ComposedLayoutSpec:
    layout = scanner.any_layout()
    if isinstance(layout, Layout):
        raise scanner.fail("`o` and an offset")
    return ComposedLayoutSpec(layout)


def _read_swizzle(scanner: Scanner) -> SwizzleSpec:
    return SwizzleSpec(scanner.swizzle())


def _read_coord_swizzle(scanner: Scanner) -> CoordSwizzleSpec:
    return CoordSwizzleSpec(scanner.coord_swizzle())


def _read_tile(scanner: Scanner) -> TileSpec:
    return TileSpec(scanner.tile())


def _read_ptr(scanner: Scanner) -> PtrSpec:
    element, space = _read_element(scanner), _read_space(scanner)
    return PtrSpec(element, space, *_read_suffix(scanner))


def _read_memref(scanner: Scanner) -> MemRefSpec:
    element, space = _read_element(scanner), _read_space(scanner)
    scanner.expect(",")
    layout = scanner.any_layout()
    return MemRefSpec(element, space, layout, *_read_suffix(scanner))


def _read_coord_tensor(scanner: Scanner) -> CoordTensorSpec:
    base = scanner.int_tuple()
    scanner.expect(",")
    return CoordTensorSpec(base, scanner.any_layout())


def _read_element(scanner: Scanner) -> str:
    """Parses an MLIR type, up to the comma outside brackets."""
    depth = 0
    for index in range(scanner.at, len(scanner.source)):
        char = scanner.source[index]
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == "," and depth == 0:
            element = re.sub(r"\s+", " ", scanner.source[scanner.at : index].strip())
            scanner.at = index + 1
            if not element:
                break
            return element
    raise scanner.fail("an element type and an address space")


def _read_space(scanner: Scanner) -> str:
    match = _SPACE_WORD.match(scanner.source, scanner.at)
    if match is None:
        raise scanner.fail("an address space")
    scanner.at = match.end()
    return match[1]


def _read_suffix(scanner: Scanner) -> tuple[int | None, Swizzle | None]:
    align = swizzle = None
    if scanner.take(","):
        if match := _ALIGN.match(scanner.source, scanner.at):
            scanner.at = match.end()
            align = int(match[1])
            if not scanner.take(","):
                return align, None
        scanner.skip()
        if not scanner.source.startswith("S", scanner.at):
            raise scanner.fail("align<N> or S<mask,base,shift>")
        swizzle = scanner.swizzle()
    return align, swizzle


_READERS: dict[str, Callable[[Scanner], Spec]] = {
    "int_tuple": _read_int_tuple,
    "layout": _read_layout,
    "composed_layout": _read_composed_layout,
    "swizzle": _read_swizzle,
    "coord_swizzle": _read_coord_swizzle,
    "tile": _read_tile,
    "ptr": _read_ptr,
    "memref": _read_memref,
    "coord_tensor": _read_coord_tensor,
}
