"""The key of a call: what its winner is kept under.

A key consists of the values of the expressions in `key=`, the element types of the arguments, the
compile-time constants that the caller gives, the target and the device.

An expression is Python's, over the names of the function: a number is its value, a tensor is its
shape (`A[0]` is an extent, `len(A)` its rank), and a symbol of an annotation is the extent that it
names. `abs`, `bool`, `int`, `len`, `max` and `min` can be called, and methods of numbers:

    key=["n", "A[0] // 1024", "m.bit_length()"]
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fly_common import environment
from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_trace.signatures.annotations import Tensor, TensorAnnotation
from fly_trace.signatures.extents import Symbol
from fly_trace.signatures.signature import Constant
from fly_trace.values.dtypes import DType, named

from fly.call import arguments
from fly.call.arrays.annotated_array import AnnotatedArray
from fly.call.arrays.views import as_array
from fly.tune.config import as_text, is_constant, portable

FUNCTIONS = {"abs": abs, "bool": bool, "int": int, "len": len, "max": max, "min": min}


@record
class Case:
    """The key of a call, as JSON has it: `key` by expression or constant, `types` by argument."""

    key: Mapping[str, Any]
    types: Mapping[str, str]
    target: str
    device: str

    @property
    def as_json(self) -> dict[str, Any]:
        return {
            "key": dict(self.key),
            "types": dict(self.types),
            "target": self.target,
            "device": self.device,
        }

    @property
    def text(self) -> str:
        return as_text(self.as_json)

    def __str__(self) -> str:
        pairs = " ".join(f"{name}={as_text(value)}" for name, value in self.key.items())
        types = " ".join(f"{name}:{dtype}" for name, dtype in self.types.items())
        where = f"{self.target} on {self.device}"
        return ", ".join(part for part in (pairs, types, where) if part)


class KeyReader:
    """Reads keys of calls of `function`. `parameters` are those that a caller gives, in order;
    configurations set the others. Keys of different values of the environment's `variables`
    differ."""

    def __init__(
        self,
        function: Any,
        parameters: Mapping[str, inspect.Parameter],
        expressions: Sequence[str],
        variables: Sequence[str] = (),
    ):
        self.parameters = parameters
        self._title, self._expressions = function.__name__, tuple(expressions)
        symbols = _symbols(parameters)
        trees = [_parsed(function.__name__, text, parameters, symbols) for text in expressions]
        namespace: dict[str, Any] = {**FUNCTIONS, "__builtins__": {}, "fly_getattr": getattr}
        names = [name for name, one in parameters.items() if not arguments.is_stream(one)]
        written = [ast.unparse(tree) for tree in trees]
        self._names = names
        self._values = eval(f"lambda {', '.join(names)}: ({_listed(written)})", namespace)
        # What a call's key is made of, without a look at anything else: a winner is found by it.
        namespace["fly_get"], keys = environment.mapping(*variables)
        namespace.update({f"fly_{number}": key for number, key in enumerate(keys)})
        watched = [f"fly_get(fly_{number})" for number in range(len(keys))]
        quick = [*written, *_kinds(parameters), *watched]
        self.quick: Callable[..., tuple[Any, ...]] = eval(
            f"lambda {signature_text(parameters, namespace)}: ({_listed(quick)})", namespace
        )

    def read(
        self, types: Mapping[str, Any], given: Mapping[str, Any], viewed: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Returns (key, types) of a call, as JSON has them. `types` are those that
        `fly.call.arguments.read` gives, `given` the arguments by name, `viewed` NumPy's views."""
        held = {name: viewed.get(name, given.get(name)) for name in self._names}
        for name in self._names:
            if name not in given and name not in viewed:
                held[name] = _default(self.parameters[name])
        try:
            values = self._values(**held)
        except Exception as error:  # the expressions are the user's
            raise UsageError(f"key={list(self._expressions)} of {self._title}: {error}") from None
        key = dict(zip(self._expressions, values, strict=True))
        for name, kind in types.items():
            if isinstance(kind, Constant):
                key[name] = kind.value
        found: dict[str, str] = {}
        for name, parameter in self.parameters.items():
            annotation = parameter.annotation
            if isinstance(annotation, TensorAnnotation) and annotation.element_type:
                found[name] = annotation.element_type.name
            elif name in given and (array := as_array(_plain(given[name]), name)) is not None:
                found[name] = named(array.dtype).name
            elif (kind := types.get(name)) is not None and not isinstance(kind, Constant):
                found[name] = str(kind)
        return {name: portable(value, name) for name, value in key.items()}, found


def signature_text(parameters: Mapping[str, inspect.Parameter], namespace: dict[str, Any]) -> str:
    """The parameters of a generated function. Default values are put into its `namespace`."""
    parts, is_keyword = [], False
    for name, parameter in parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            parts.append("*")
            is_keyword = True
        if parameter.default is parameter.empty:
            parts.append(name)
        else:
            namespace[f"fly_default_{name}"] = parameter.default
            parts.append(f"{name}=fly_default_{name}")
    return ", ".join(parts)


def _plain(value: Any) -> Any:
    return value.array if isinstance(value, AnnotatedArray) else value


def _default(parameter: inspect.Parameter) -> Any:
    return None if parameter.default is parameter.empty else parameter.default


def _listed(parts: Sequence[str]) -> str:
    return "".join(f"{part}, " for part in parts)


def _kinds(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """Expressions of what annotations leave open: element types, constants, the tensors' place."""
    found: list[str] = []
    for name, parameter in parameters.items():
        annotation = parameter.annotation
        if arguments.is_stream(parameter) or isinstance(annotation, DType):
            continue
        if isinstance(annotation, TensorAnnotation) and annotation.element_type:
            continue
        if is_constant(parameter):
            found += [f"{name}.__class__", name]
        elif _is_tensor(parameter):
            found.append(f"{name}.dtype")
        else:
            found.append(f"fly_getattr({name}, 'dtype', {name}.__class__)")
    tensors = [name for name, one in parameters.items() if _is_tensor(one)]
    if tensors:
        found.append(f"fly_getattr({tensors[0]}, 'device', None)")
    return found


def _is_tensor(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    return annotation is Tensor or isinstance(annotation, TensorAnnotation)


def _symbols(parameters: Mapping[str, inspect.Parameter]) -> dict[str, tuple[str, int]]:
    """The tensor and the dimension of each symbol."""
    found: dict[str, tuple[str, int]] = {}
    for name, parameter in parameters.items():
        annotation = parameter.annotation
        shape = annotation.shape if isinstance(annotation, TensorAnnotation) else None
        for dimension, extent in enumerate(shape or ()):
            symbol = extent.name if isinstance(extent, Symbol) else extent
            if isinstance(symbol, str):
                found.setdefault(symbol, (name, dimension))
    return found


def _parsed(
    title: str,
    text: Any,
    parameters: Mapping[str, inspect.Parameter],
    symbols: Mapping[str, tuple[str, int]],
) -> ast.expr:
    """Parses an expression, and puts shapes in the place of tensors and symbols."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, TypeError, ValueError):
        raise UsageError(
            f"key={quoted(text)} of {title}: is not an expression",
            hint='as in key=["n", "A[0] // 1024"]',
        ) from None

    class Shapes(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            name = node.id
            if name in parameters:
                numbers = isinstance(parameters[name].annotation, DType)
                if numbers or is_constant(parameters[name]):
                    return node
                # A parameter without annotation may be a number or a tensor.
                shape = f"fly_getattr({name}, 'shape', {name})"
                made = f"{name}.shape" if _is_tensor(parameters[name]) else shape
            elif name in symbols:
                made = "{}.shape[{}]".format(*symbols[name])
            elif name in FUNCTIONS:
                return node
            else:
                known = [*parameters, *(one for one in symbols if one not in parameters)]
                raise UsageError(
                    f"key={quoted(text)} of {title}: there is no {name!r}",
                    hint=f"names: {', '.join(known)}; functions: {', '.join(FUNCTIONS)}",
                )
            return ast.parse(made, mode="eval").body

    return Shapes().visit(tree)
