"""Converts a call's arguments to the types that tracing needs and the values that a launch needs.

`read` computes both. A `Reader` is the fast path for calls that are already compiled: it inspects
the signature once, and returns a key that identifies the types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fly_common.errors import UsageError
from fly_trace.signatures import signature
from fly_trace.signatures.annotations import Constexpr, MaybeNone, Stream, Tensor, TensorAnnotation
from fly_trace.signatures.extents import Extent
from fly_trace.signatures.signature import Constant, ParameterType, ScalarType, TensorType
from fly_trace.values.dtypes import DType
from fly_trace.values.dtypes import named as named_type
from fly_trace.values.promotion import default

from fly.call.arrays.annotated_array import AnnotatedArray
from fly.call.arrays.views import (
    Array,
    as_array,
    as_value,
    dtype_of,
    is_array,
    is_numpy_scalar,
    view,
)
from fly.call.dispatch.dispatcher import ANY, Rules
from fly.call.specialisation import Places, Shapes, Steps
from fly.dependencies.hashing import dependency_hash


def read(
    function: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    shapes: Shapes | None = None,
) -> tuple[dict[str, ParameterType], dict[str, Any]]:
    """Returns (given, values), both by parameter name.

    `given` holds what the annotations leave open: the types of arrays that they do not describe,
    and the values of compile-time constants. A contiguous array with an annotation adds nothing, so
    the code is the same that `fly-trace` makes from the file alone; but for what the code is
    specialized for, by `shapes`. `values` is what `fly_run` binds and checks. Raises UsageError for
    a call that does not fit the function.
    """
    parameters = signature.parameters_of(function)
    given: dict[str, ParameterType] = {}
    values: dict[str, Any] = {}
    types: dict[str, DType] = {}
    for name, value in by_name(function.__name__, parameters, arguments, named).items():
        marked, value = (value, value.array) if isinstance(value, AnnotatedArray) else (None, value)
        annotation = parameters[name].annotation
        if is_stream(parameters[name]):
            continue
        optional = isinstance(parameters[name], MaybeNone)
        if is_constexpr(annotation) or (optional and value is None):
            given[name] = Constant(value)
        elif is_array(value):
            array = view(value, name)
            values[name], types[name] = array.data, named_type(array.dtype)
            if marked is not None and not isinstance(annotation, TensorAnnotation):
                given[name] = marked.type
            elif (found := type_of(array, annotation)) is not None:
                given[name] = found
            elif optional and (dtype := annotation.element_type):  # and not None
                shape = (None,) * array.data.ndim if annotation.shape is None else annotation.shape
                given[name] = TensorType(dtype, shape, None, annotation.align)
        elif isinstance(annotation, DType):
            values[name] = as_value(value, name)
            if optional:
                given[name] = ScalarType(annotation)
        elif annotation is Tensor or isinstance(annotation, TensorAnnotation):
            raise UsageError(
                f"argument {name} of {function.__name__} must be an array, not"
                f" {type(value).__name__}"
            )
        elif parameters[name].default is not parameters[name].empty:
            given[name] = Constant(value)
        else:
            values[name] = as_value(value, name)
            given[name] = scalar_type(function.__name__, name, value)
    if shapes is not None:
        places = Places(function.__name__, parameters, shapes)
        if (known := places.of(values)) is not None:
            given |= _specialized(parameters, places.layouts(known), types)
    return given, values


def check_missing(function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Raises UsageError for the first parameter that has no argument and needs one."""
    title, parameters = function.__name__, signature.parameters_of(function)
    held = by_name(title, parameters, arguments, named)
    for name, one in parameters.items():
        several = one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if name in held or several or one.default is not one.empty or is_stream(one):
            continue
        kind = one.annotation
        typed = f", {kind}" if isinstance(kind, TensorAnnotation) else ""
        typed = f", {kind.name}" if isinstance(kind, DType) else typed
        raise UsageError(
            f"{title} needs {name}{typed}", hint=f"its parameters are {', '.join(parameters)}"
        )


def _specialized(
    parameters: Mapping[str, Any],
    layouts: Mapping[str, tuple[Steps, Steps | None]],
    types: Mapping[str, DType],
) -> dict[str, ParameterType]:
    """The types of arrays of known extents and strides; `types` are those of their elements."""
    found: dict[str, ParameterType] = {}
    for name, (extents, strides) in layouts.items():
        annotation = parameters[name].annotation
        pairs = zip(extents, annotation.shape, strict=True)
        shape = tuple(stated if known is None else known for known, stated in pairs)
        found[name] = TensorType(annotation.element_type or types[name], shape, strides)
    return found


def originals(
    function: Any,
    parameters: Mapping[str, Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    viewed: Mapping[str, Any],
) -> dict[str, Any]:
    """The arguments that `viewed` has NumPy's views of, as the caller gave them; and streams."""
    found = dict(viewed)
    for name, value in by_name(function.__name__, parameters, arguments, named).items():
        if name in viewed:
            found[name] = value.array if isinstance(value, AnnotatedArray) else value
        elif is_stream(parameters[name]) and not isinstance(value, Stream | None):
            found[name] = value
    return found


def is_stream(parameter: Any) -> bool:
    annotation = parameter.annotation
    return (
        annotation is Stream
        or isinstance(annotation, Stream)
        or isinstance(parameter.default, Stream)
    )


class _Parameter(NamedTuple):
    """What a function's parameter asks of its argument: "array" (annotated as a tensor), "number"
    (annotated with its type), "constant", "stream", or "any". `dtype` is what an annotation says of
    an array; `default` tells that a value which is no array is a constant."""

    name: str
    role: str = "any"
    dtype: DType | None = None
    default: bool = False
    optional: bool = False  # None is a constant


class Reader:
    """Reads calls of `function` by its current signature and annotations."""

    def __init__(self, function: Any, shapes: Shapes | None = None):
        parameters, title = signature.parameters_of(function), function.__name__
        self._function, self._title, self._parameters = function, title, parameters
        self._places = None if shapes is None else Places(title, parameters, shapes)
        self._asked = {p.name: _asked(p) for p in parameters.values()}
        positional = (p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY)
        self._positional = tuple(self._asked[name] for name in positional)

    def originals(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], viewed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """See `originals`."""
        return originals(self._function, self._parameters, arguments, named, viewed)

    def read(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Returns (key, values) for a call, or None if only `read` can handle it. Calls with equal
        keys have equal types. `values` are the same as those of `read`."""
        key: list[Any]
        if named:
            given = by_name(self._title, self._parameters, arguments, named)
            key = [tuple(given)]
            pairs = [(self._asked[name], value) for name, value in given.items()]
        elif len(arguments) <= len(self._positional):
            key = [len(arguments)]
            pairs = zip(self._positional, arguments, strict=False)
        else:
            return None
        values: dict[str, Any] = {}
        for asked, value in pairs:
            # One entry per argument, so that the entries of two arguments cannot be confused.
            kind = self._entry(asked, value, values)
            if kind is UNKNOWN:
                return None
            key.append(kind)
        if self._places is not None:
            key.append(self._places.of(values))
        return tuple(key), values

    def is_settled(self, key: tuple[Any, ...]) -> bool:
        """Whether later calls that its code takes need no other: general code is not settled while
        extents may still get code of their own."""
        places = self._places
        return places is None or key[-1] is not None or places.are_all_taken

    def rules(self, arguments: tuple[Any, ...], passed: Sequence[str]) -> Rules:
        """What native code for a call like this one has to see to, where it gets the arguments of
        the names `passed`: constants must be the same, and numbers whose type nothing states of the
        same type."""
        positions, fixed = [], []
        for position, (asked, value) in enumerate(zip(self._positional, arguments, strict=False)):
            if asked.name in passed:
                positions.append(position)
                if asked.role == "any" and type(value) in _NUMBERS:
                    fixed.append((position, type(value), ANY))
            elif asked.role != "stream":
                fixed.append((position, type(value), value))
        return Rules(len(arguments), tuple(positions), tuple(fixed))

    def _entry(self, asked: _Parameter, value: Any, values: dict[str, Any]) -> Any:
        """Stores an argument's value in `values` and returns its entry of the key, or UNKNOWN if
        this class cannot compute one."""
        role = asked.role
        if role == "stream":
            return None
        if role == "constant" or (asked.optional and value is None):
            return _constant(value)
        if (array := as_array(value, asked.name)) is not None:
            values[asked.name] = data = array.data
            contiguous = data.flags.c_contiguous
            dtype = None if asked.dtype is not None else array.dtype
            return dtype, data.ndim if contiguous else _strides(data)
        kind = type(value)
        if role == "array":
            return UNKNOWN
        if kind in _NUMBERS:
            if asked.default:
                return _constant(value)
            values[asked.name] = value
            return None if role == "number" else default(value).name
        if is_numpy_scalar(value) and not asked.default:
            values[asked.name] = value.item()
            return None if role == "number" else dtype_of(value, asked.name)
        return UNKNOWN


UNKNOWN: Any = object()
_NUMBERS = frozenset((int, float, bool))
_CONSTANTS = frozenset((int, bool, str, type(None)))


def _asked(parameter: Any) -> _Parameter:
    name, annotation, default = parameter.name, parameter.annotation, parameter.default
    if is_stream(parameter):
        return _Parameter(name, "stream")
    if is_constexpr(annotation):
        return _Parameter(name, "constant")
    optional = isinstance(parameter, MaybeNone)
    if isinstance(annotation, TensorAnnotation):
        return _Parameter(name, "array", annotation.element_type, optional=optional)
    if annotation is Tensor:
        return _Parameter(name, "array", optional=optional)
    if isinstance(annotation, DType):
        return _Parameter(name, "number", optional=optional)
    return _Parameter(name, default=default is not parameter.empty)


def _constant(value: Any) -> Any:
    """Returns a key that identifies a constant, or UNKNOWN if only a digest can."""
    kind = type(value)
    if kind in _CONSTANTS:
        return kind, value
    if kind is float:
        return kind, value.hex()  # 0.0 and -0.0 compare equal but are different constants
    if isinstance(value, tuple) and not hasattr(value, "__dict__"):  # also a named tuple
        parts = tuple(map(_constant, value))
        return UNKNOWN if UNKNOWN in parts else (kind, parts)
    return UNKNOWN


def by_name(
    title: str,
    parameters: Mapping[str, Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Maps the call's arguments to parameter names. Defaults and missing ones are handled later."""
    places = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(arguments) > len(places):
        raise UsageError(
            f"{title} takes {len(places)} arguments, got {len(arguments)}",
            hint=f"its parameters are {', '.join(parameters) or 'none'}",
        )
    values = dict(zip(places, arguments, strict=False))
    for name, value in named.items():
        if name not in parameters:
            raise UsageError(
                f"{title} has no parameter {name!r}",
                hint=f"its parameters are {', '.join(parameters) or 'none'}",
            )
        if name in values:
            raise UsageError(f"{title} got {name} twice, by position and by name")
        values[name] = value
    return values


def type_of(array: Array, annotation: Any) -> TensorType | None:
    """The type of an array; None where the annotation says it all."""
    data, contiguous = array.data, bool(array.data.flags.c_contiguous)
    shape: tuple[Extent, ...] = (None,) * data.ndim
    dtype = named_type(array.dtype)
    if isinstance(annotation, TensorAnnotation):
        dtype = annotation.element_type or dtype
        if annotation.shape is not None:
            if len(annotation.shape) == data.ndim:
                shape = annotation.shape
            # The binder refuses another element type or rank: it can say how to fix the call.
            if annotation.element_type and (contiguous or shape is not annotation.shape):
                return None
    if contiguous:
        return TensorType(dtype, shape)
    return TensorType(dtype, shape, _strides(data))


def _strides(data: Any) -> tuple[int | None, ...]:
    """Returns the strides for the type of an array that is not contiguous. A stride of 1 is kept
    static, because addresses then need no multiplication."""
    ones = [i for i in range(data.ndim) if data.strides[i] == data.itemsize and data.shape[i] > 1]
    return tuple(1 if i in ones[-1:] else None for i in range(data.ndim))


def is_constexpr(annotation: Any) -> bool:
    return annotation is Constexpr or isinstance(annotation, Constexpr)


def _parts(value: Any) -> list[Any]:
    """What a container or an object holds."""
    if isinstance(value, (tuple, list)):
        return list(value)
    return list(
        value.values() if isinstance(value, dict) else getattr(value, "__dict__", {}).values()
    )


def scalar_type(title: str, name: str, value: Any) -> ScalarType:
    """The type of a number that has no annotation: NumPy's scalars have one, Python's take the
    language's default."""
    if is_numpy_scalar(value):
        return ScalarType(named_type(dtype_of(value, name)))
    if not isinstance(value, bool | int | float):
        hint = f"a compile-time constant is annotated: {name}: fx.Constexpr"
        if any(map(is_array, _parts(value))):
            hint = "pass each array as an argument of its own, and make the tuple in the function"
        raise UsageError(
            f"argument {name} of {title} must be an array or a number, not {type(value).__name__}",
            hint=hint,
        )
    return ScalarType(default(value))


def digest_of(given: Mapping[str, ParameterType]) -> str | None:
    """Returns the types of arguments as text, or None if a constant has no digest."""
    parts = []
    for name, kind in sorted(given.items()):
        # Different constants may print the same text.
        text = dependency_hash(kind.value).digest if isinstance(kind, Constant) else str(kind)
        if text is None:
            return None
        parts.append(f"{name}: {text}")
    return ", ".join(parts)
