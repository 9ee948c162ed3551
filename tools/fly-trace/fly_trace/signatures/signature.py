"""The types of a host function's parameters: from annotations or `--sig` text.

The grammar of `--sig`:

    signature := parameter (',' parameter)*
    parameter := NAME ':' DTYPE [ '[' extents [ ':' strides ] ']' [ aligned ] ]     a tensor, or a
                 scalar
               | NAME '=' LITERAL                                       a compile-time constant
    extents   := [ extent (',' extent)* ]     extent := NUMBER | (SYMBOL | '?') [notes]
    strides   := stride (',' stride)*         stride := NUMBER | '?' [notes]
    notes     := '{' ['i32' | 'i64'] ['div=' NUMBER] '}'
    aligned   := '{' 'align=' NUMBER '}'

A SYMBOL is an extent that several parameters share; `?` is any extent. Without strides the tensor
is C-contiguous: `f32[M,N]`. `f32[M,N:?,1]` accepts any row stride. `f32[]` is a tensor of one
element.

Dynamic numbers have 64 bits unless a note says that they fit 32: `N{i32}`. `N{div=16}` is a
multiple of 16. Both give better code, and both are checked at every launch. A note applies to the
extent where it is written; other extents with the same symbol have their own. The first element of
`f16[M,N]{align=16}` is at a multiple of 16 bytes, which is checked, too.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from fly_common.errors import InputError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record, replace
from fly_dialect.layouts.integers import Int

from fly_trace.core import locations
from fly_trace.signatures.annotations import Constexpr, MaybeNone, Stream, Tensor, TensorAnnotation
from fly_trace.signatures.extents import Extent, Step, Symbol, leaf_of, parse_extent, tensor_text
from fly_trace.signatures.strides import c_strides
from fly_trace.values.dtypes import EVERY, DType


@record
class TensorType:
    """`strides` are in elements. None means that the memory is C-contiguous. `align` is the
    alignment of the first element in bytes, where it is more than the element type's."""

    dtype: DType
    shape: tuple[Extent, ...]
    strides: tuple[Step, ...] | None = None
    align: int | None = None

    @property
    def contiguous(self) -> bool:
        return self.strides is None

    @property
    def extents(self) -> tuple[int | None, ...]:
        """The static extents, and None for the others."""
        return tuple(extent if isinstance(extent, int) else None for extent in self.shape)

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The static strides, and None for the others."""
        if self.strides is None:
            return c_strides(self.extents)
        return tuple(step if isinstance(step, int) else None for step in self.strides)

    @property
    def leaves(self) -> tuple[tuple[Int, ...], tuple[Int, ...]]:
        """Extents and strides as leaves of a layout."""
        steps = self.steps if self.strides is None else self.strides
        return tuple(map(leaf_of, self.shape)), tuple(map(leaf_of, steps))

    def __str__(self) -> str:
        return tensor_text(self.dtype.name, self.shape, self.strides, self.align)


@record
class ScalarType:
    dtype: DType
    default: Any = None

    def __str__(self) -> str:
        return self.dtype.name


@record
class Constant:
    """A compile-time constant."""

    value: Any

    def __str__(self) -> str:
        return f"the constant {quoted(self.value)}"


@record
class PointerType:
    """The address of elements of `dtype` in global memory, which begin at a multiple of `align`
    bytes. Nothing says how many there are."""

    dtype: DType
    align: int

    def __str__(self) -> str:
        return f"a pointer to {self.dtype.name}, aligned to {self.align} bytes"


@record
class StreamType:
    """A stream, which a call may leave out."""

    def __str__(self) -> str:
        return "a stream"


ParameterType: TypeAlias = TensorType | ScalarType | PointerType | StreamType | Constant

_NAME = re.compile(r"\s*([^\W\d]\w*)\s*")
_DTYPE = re.compile(r"\s*(\w+)\s*")
_ALIGNED = re.compile(r"(?<=\])\s*\{\s*align\s*=\s*([1-9]\d*)\s*\}\s*$")


def parse(text: str) -> dict[str, ParameterType]:
    """Parses a `--sig`. UsageError says what is wrong and where."""
    found: dict[str, ParameterType] = {}
    for part in _split(text):
        name = _NAME.match(part)
        if name is None:
            raise _wrong(part, "a parameter begins with its name")
        if name[1] in found:
            raise UsageError(f"--sig: {name[1]} is given twice")
        rest = part[name.end() :]
        if rest[:1] == "=":
            try:
                found[name[1]] = Constant(ast.literal_eval(rest[1:].strip()))
            except (ValueError, SyntaxError):
                raise _wrong(part, "a constant is a Python literal") from None
        elif rest[:1] == ":":
            found[name[1]] = _parse_type(part, rest[1:])
        else:
            raise _wrong(part, "a name is followed by `: TYPE` or `= VALUE`")
    return found


def _split(text: str) -> list[str]:
    """Splits the parameters at the commas outside brackets and quotation marks."""
    parts, depth, quote, start = [], 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def _parse_type(part: str, text: str) -> TensorType | ScalarType:
    name = _DTYPE.match(text)
    dtype = EVERY.get(name[1]) if name else None
    if name is None or dtype is None:
        raise _wrong(part, f"the element type is one of {' '.join(EVERY)}")
    rest = text[name.end() :].strip()
    if not rest:
        return ScalarType(dtype)
    align = None
    if found := _ALIGNED.search(rest):
        rest, align = rest[: found.start()].rstrip(), int(found[1])
        if align & (align - 1):
            raise _wrong(part, f"an alignment is a power of two, not {align}")
        align = align if align > dtype.bytes else None
    if not (rest[:1] == "[" and rest[-1] == "]"):
        raise _wrong(part, "extents must be in brackets, as in f32[M,N]")
    extents, colon, strides = rest[1:-1].partition(":")
    if not rest[1:-1].strip():
        return TensorType(dtype, (), None, align)
    shape = tuple(_extent(part, item) for item in extents.split(","))
    if not colon:
        return TensorType(dtype, shape, None, align)
    steps = tuple(_stride(part, item) for item in strides.split(","))
    if len(steps) != len(shape):
        raise _wrong(part, f"{len(shape)} extents need the same number of strides")
    return TensorType(dtype, shape, steps, align)


def _extent(part: str, text: str) -> Extent:
    try:
        found = parse_extent(text)
    except ValueError:
        found = 0
    if found == 0:
        raise _wrong(part, f"`{text.strip()}` is not an extent")
    return found


def _stride(part: str, text: str) -> Step:
    try:
        found = parse_extent(text)
    except ValueError:
        found = ""
    if isinstance(found, str | Symbol):
        raise _wrong(part, f"`{text.strip()}` is not a stride")
    return found


def _wrong(part: str, what: str) -> UsageError:
    return UsageError(
        f"--sig: `{part.strip()}`: {what}",
        hint="as in --sig 'A: f32[M,N], B: f32[?,128], n: i32, BLOCK = 256'",
    )


# -- annotations -----------------------------------------------------------------------------------


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """A function's parameters, with evaluated annotations; those annotated `T | None` are of the
    class MaybeNone."""
    try:
        found = inspect.signature(function, eval_str=True).parameters
        return {name: MaybeNone.of(parameter) for name, parameter in found.items()}
    except Exception as error:
        place = locations.place(definition(function))
        raise InputError(
            f"the annotations of {function.__name__} can't be read: {error}", place=place
        ) from None


def definition(function: Any) -> locations.Position:
    """The position of a function's `def` line, not of its decorators."""
    from fly_trace.rewrite import definition_of

    return definition_of(function)


def resolve(
    function: Any, given: Mapping[str, ParameterType], launched: bool = True
) -> dict[str, ParameterType]:
    """The type of every parameter, in order: the given type, checked against the annotation, or the
    annotation's. UsageError names what is missing, unknown or contradictory, or what a launch can't
    pass, if the function is `launched`."""
    parameters = parameters_of(function)
    for name in given:
        if name not in parameters:
            raise UsageError(
                f"{function.__name__} has no parameter {name!r}",
                hint=f"its parameters are {', '.join(parameters) or 'none'}",
            )
    found = {
        name: _resolve(function, parameter, given.get(name))
        for name, parameter in parameters.items()
    }
    if not launched:
        return found
    return {name: _passable(name, kind) for name, kind in found.items()}


def _passable(name: str, kind: ParameterType) -> ParameterType:
    """Returns `kind`, or raises UsageError if a launch cannot pass it."""
    if isinstance(kind, ScalarType) and kind.dtype.is_narrow:
        raise UsageError(
            f"{name} is a scalar of type {kind.dtype.name}, which has no arithmetic",
            hint="pass it as fx.Float32 or fx.Int32, and convert it in the kernel",
        )
    if isinstance(kind, ScalarType) and not kind.dtype.has_arrays:
        raise UsageError(
            f"{name} is a scalar of type {kind.dtype.name}, which launches can't pass",
            hint="pass its halves as fx.Int64, and join them in the kernel",
        )
    if isinstance(kind, TensorType) and not kind.dtype.is_packed and not kind.dtype.has_arrays:
        raise UsageError(
            f"{name} is a tensor of {kind.dtype.name}, of which there are no arrays",
            hint="pass a tensor of fx.Int64, and view it in the kernel:"
            f" fx.recast_iter(fx.{kind.dtype.title}, fx.get_iter({name}))",
        )
    if isinstance(kind, TensorType) and kind.dtype.is_packed:
        raise UsageError(
            f"{name} is a tensor of {kind.dtype.name}, whose elements are not whole bytes",
            hint="pass the bytes as fx.Uint8, and view them in the kernel:"
            f" fx.recast_iter(fx.{kind.dtype.title}, fx.get_iter({name}))",
        )
    return kind


def _resolve(
    function: Any, parameter: inspect.Parameter, given: ParameterType | None
) -> ParameterType:
    name, annotation, default = parameter.name, parameter.annotation, parameter.default
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise InputError(
            f"{function.__name__} takes *{name}: a host function's parameters are named",
            place=locations.place(definition(function)),
        )
    has_default = default is not parameter.empty
    is_none = isinstance(given, Constant) and given.value is None
    if isinstance(parameter, MaybeNone) and (is_none or (given is None and default is None)):
        return Constant(None)
    if isinstance(annotation, TensorAnnotation):
        if given is not None and not _admits(annotation, given):
            raise _contradiction(name, str(annotation), given)
        dtype = annotation.element_type or getattr(given, "dtype", None)
        declared: ParameterType | None = None
        if dtype is not None and annotation.shape is not None:
            declared = TensorType(dtype, annotation.shape, None, annotation.align)
    elif isinstance(annotation, DType):
        number = getattr(default, "number", default)
        declared = ScalarType(annotation, number if has_default else None)
    elif annotation is Stream or isinstance(default, Stream):
        return given if isinstance(given, Constant) else StreamType()
    else:
        declared = None
    if given is None:
        if declared is not None:
            return declared
        if has_default:
            return Constant(default)
        wants = " = VALUE" if _is_constexpr(annotation) else ": f32[?]"
        raise UsageError(
            f"the type of {name} is not known",
            hint=f"annotate it in the file, or give it with --sig '{name}{wants}', or --like"
            f" {name}=FILE.npy",
        )
    if isinstance(declared, ScalarType) and isinstance(given, ScalarType):
        given = replace(given, default=declared.default)
    if _is_constexpr(annotation) and not isinstance(given, Constant):
        raise _contradiction(name, "a compile-time constant", given)
    if annotation is Tensor and not isinstance(given, TensorType):
        raise _contradiction(name, "a tensor", given)
    if declared is not None and not _agree(declared, given):
        raise _contradiction(name, str(declared), given)
    if isinstance(annotation, TensorAnnotation) and isinstance(given, TensorType):
        given = replace(given, align=max(annotation.align or 0, given.align or 0) or None)
    return given


def _is_constexpr(annotation: Any) -> bool:
    return annotation is Constexpr or isinstance(annotation, Constexpr)


def _admits(annotation: TensorAnnotation, given: ParameterType) -> bool:
    return isinstance(given, TensorType) and annotation.admits(given.dtype)


def _agree(declared: ParameterType, given: ParameterType) -> bool:
    if type(declared) is not type(given) or declared.dtype is not given.dtype:  # type: ignore[union-attr]
        return False
    if not isinstance(declared, TensorType) or not isinstance(given, TensorType):
        return True
    return len(declared.shape) == len(given.shape) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(declared.shape, given.shape, strict=True)
    )


def _contradiction(name: str, declared: str, given: ParameterType) -> UsageError:
    one = isinstance(given, TensorType) and declared in EVERY
    return UsageError(
        f"{name} is {declared} in the file, but given as {given}",
        hint=f"pass a number: {name}.item()" if one else None,
    )
