"""The arguments of a call → the types that tracing needs, and the values that a launch needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fly_common.errors import UsageError
from fly_trace.signatures import signature
from fly_trace.signatures.annotations import Constexpr, Stream, Tensor, TensorAnnotation
from fly_trace.signatures.extents import Extent
from fly_trace.signatures.signature import Constant, ParameterType, ScalarType, TensorType
from fly_trace.values.dtypes import DType, default, named

from fly.call.annotated_array import Marked
from fly.call.arrays import Array, as_value, is_array, view


def read(
    function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[dict[str, ParameterType], dict[str, Any]]:
    """(given, values) by parameter name.

    `given` holds what the annotations leave open: the types of arrays they don't describe, the
    values of compile-time constants. Contiguous arrays that are annotated give nothing: then the
    code is the one that `fly-trace` makes of the file alone. `values` is what `fly_run` binds and
    checks.
    UsageError for a call that doesn't fit the function.
    """
    parameters = signature.parameters_of(function)
    given: dict[str, ParameterType] = {}
    values: dict[str, Any] = {}
    for name, value in _by_name(function.__name__, parameters, arguments, named).items():
        marked, value = (value, value.array) if isinstance(value, Marked) else (None, value)
        annotation, fallback = parameters[name].annotation, parameters[name].default
        if annotation is Stream or isinstance(annotation, Stream) or isinstance(fallback, Stream):
            continue
        if _is_constexpr(annotation):
            given[name] = Constant(value)
        elif is_array(value):
            array = view(value, name)
            values[name] = array.data
            if marked is not None and not isinstance(annotation, TensorAnnotation):
                given[name] = marked.type
            elif (found := _type_of(array, annotation)) is not None:
                given[name] = found
        elif isinstance(annotation, DType):
            values[name] = as_value(value, name)
        elif annotation is Tensor or isinstance(annotation, TensorAnnotation):
            raise UsageError(
                f"argument {name} of {function.__name__} must be an array, not"
                f" {type(value).__name__}"
            )
        elif parameters[name].default is not parameters[name].empty:
            given[name] = Constant(value)
        else:
            values[name] = as_value(value, name)
            given[name] = _scalar_type(function.__name__, name, value)
    return given, values


def _by_name(
    title: str,
    parameters: Mapping[str, Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """The arguments that the call gives. What it leaves out has a default, or is missed later."""
    places = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(arguments) > len(places):
        raise UsageError(
            f"{title} takes {len(places)} arguments, {len(arguments)} are given",
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


def _type_of(array: Array, annotation: Any) -> TensorType | None:
    """The type of an array; None where the annotation says it all."""
    data, contiguous = array.data, bool(array.data.flags.c_contiguous)
    shape: tuple[Extent, ...] = (None,) * data.ndim
    dtype = named(array.dtype)
    if isinstance(annotation, TensorAnnotation):
        dtype = annotation.dtype
        if annotation.shape is not None:
            # Another element type or rank is the binder's to refuse: it knows what to do about it.
            if contiguous or len(annotation.shape) != data.ndim:
                return None
            shape = annotation.shape
    if contiguous:
        return TensorType(dtype, shape)
    # One stride may be known to be 1, and is worth knowing: addresses then need no multiplication.
    ones = [i for i in range(data.ndim) if data.strides[i] == data.itemsize and data.shape[i] > 1]
    strides = tuple(1 if i in ones[-1:] else None for i in range(data.ndim))
    return TensorType(dtype, shape, strides)


def _is_constexpr(annotation: Any) -> bool:
    return annotation is Constexpr or isinstance(annotation, Constexpr)


def _scalar_type(title: str, name: str, value: Any) -> ScalarType:
    """The type of a number that has no annotation: NumPy's scalars have one, Python's take the
    language's default."""
    if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        from fly.call.arrays import dtype_of

        return ScalarType(named(dtype_of(value, name)))
    if not isinstance(value, bool | int | float):
        raise UsageError(
            f"argument {name} of {title} must be an array or a number, not {type(value).__name__}",
            hint=f"a compile-time constant is annotated: {name}: fx.Constexpr",
        )
    return ScalarType(default(value))
