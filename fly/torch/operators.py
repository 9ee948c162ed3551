"""`fly.torch.register`: a function as an operator of torch.

The operator's schema comes from the function's parameters and from its host program: which tensors
its kernels write, and what it returns. Its fake kernel, by which `torch.compile` learns shapes, is
the same host program on symbolic shapes (`fly.torch.shapes`): nothing is declared twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_host import program as steps
from fly_host.program import Program, Scalar, Stream, Tensor
from fly_numerics.element_types import ELEMENT_TYPES
from fly_trace.signatures import signature
from fly_trace.signatures.annotations import Constexpr
from fly_trace.signatures.signature import Constant, ParameterType
from fly_trace.values.dtypes import DType

from fly.call import arguments
from fly.call.arrays.views import Array
from fly.call.function import JitFunction
from fly.torch.shapes import Layout, check, results
from fly.tune.function import TunedFunction

NAMESPACE = "fly"
# How schemas spell the types of constants.
_SCHEMA = {bool: "bool", int: "int", float: "float", str: "str"}


def register(
    function: JitFunction | TunedFunction,
    name: str | None = None,
    *,
    example: Sequence[object] = (),
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., Any] | None = None,
) -> Any:
    """Registers a function that `@fly.jit` decorates as the operator `name` ("fly::" and its own
    name, if None), and returns the operator: torch's CustomOpDef. That of a function with
    `@fly.autotune` above selects a configuration for each call; what it mutates and returns is
    decided by the default one.

    `example` holds arguments to compile it for, now, where the annotations do not say all types. It
    decides what the operator mutates and returns; calls may have other shapes and element types.
    `backward` and `setup_context` are those of `CustomOpDef.register_autograd`; without them the
    operator has no gradient. What it returns must be new tensors and integers.

    UsageError for functions that can't be operators, and says why.
    """
    if not isinstance(function, JitFunction | TunedFunction):
        raise UsageError(f"fly.torch.register takes a @fly.jit function, not {quoted(function)}")
    compiled = function.compile(*example)
    program = compiled.program
    assert program is not None
    check(program)
    qualified = name or f"{NAMESPACE}::{function.name}"
    if "::" not in qualified:
        qualified = f"{NAMESPACE}::{qualified}"
    if not all(part.isidentifier() for part in qualified.split("::", 1)):
        raise UsageError(
            f"{quoted(qualified)} can't be the name of an operator", hint="as in 'mine::scaled'"
        )
    every = signature.parameters_of(function.function)
    parameters = function.parameters if isinstance(function, TunedFunction) else every
    taken = [p for p in parameters.values() if not arguments.is_stream(p)]
    schema = f"({', '.join(_argument(p, program) for p in taken)}) -> {_returned(program)}"
    mutated = {p.name for p in program.parameters if isinstance(p, Tensor) and p.access != "r"}

    def run(*given: Any) -> Any:
        return _as_schema(function(*given))

    made = torch.library.custom_op(qualified, run, mutates_args=tuple(mutated), schema=schema)
    names = [p.name for p in taken]

    def fake(*given: Any) -> Any:
        return _fake(function, names, given)

    made.register_fake(fake)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context)
    return made


def _argument(parameter: inspect.Parameter, program: Program) -> str:
    """An argument of the schema."""
    name, annotation = parameter.name, parameter.annotation
    known = program.parameter(name)
    if isinstance(known, Tensor):
        alias = "" if known.access == "r" else f"(a{program.parameters.index(known)}!)"
        return f"Tensor{alias} {name}"
    default = "" if parameter.default is parameter.empty else f"={_default(parameter)}"
    if isinstance(annotation, DType):
        kind = "float" if annotation.is_float else "bool" if annotation.is_bool else "SymInt"
        return f"{kind} {name}{default}"
    kind = type(parameter.default)
    if annotation is Constexpr or isinstance(annotation, Constexpr) or default:
        if default and kind not in _SCHEMA:
            raise UsageError(f"{name}={quoted(parameter.default)}: operators have no such argument")
        # A constant decides about the code: it can't be symbolic.
        return f"{_SCHEMA.get(kind, 'int')} {name}{default}"
    if known is not None and not isinstance(known, Stream):
        return f"{'float' if ELEMENT_TYPES[known.dtype].kind == 'float' else 'SymInt'} {name}"
    raise UsageError(
        f"the operator's argument {name} has no type", hint=f"annotate it: {name}: fx.Tensor"
    )


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _returned(program: Program) -> str:
    """The results of the schema: a flat tuple, whatever the function nests. Schemas have no tuples
    of one."""
    kinds = [
        "Tensor" if operand.kind in ("tensor", "view") else "SymInt"
        for operand in steps.leaves(program.results)
    ]
    return kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"


def _as_schema(result: Any) -> Any:
    """A result as `_returned` describes it."""
    if not isinstance(result, tuple):
        return result
    flat: list[Any] = []
    for part in result:
        made = _as_schema(part)
        flat += made if isinstance(made, tuple) else () if made is None else (made,)
    return flat[0] if len(flat) == 1 else tuple(flat)


def _fake(function: JitFunction | TunedFunction, names: list[str], given: Sequence[Any]) -> Any:
    """What a call returns, as tensors without elements."""
    by_name = dict(zip(names, given, strict=False))
    tensors = {name: value for name, value in by_name.items() if isinstance(value, torch.Tensor)}
    program = function.compile_types(_types(function, by_name)).program
    assert program is not None
    scalars = {p.name: p.default for p in program.parameters if isinstance(p, Scalar)}
    scalars |= {name: value for name, value in by_name.items() if name not in tensors}
    made = [_empty(one, tensors) for one in results(program, tensors, scalars)]
    if program.results is None:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def _empty(one: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if not isinstance(one, Layout):
        return one
    dtype = getattr(torch, ELEMENT_TYPES[one.dtype].long_name)
    device = next((tensor.device for tensor in tensors.values()), torch.device("cpu"))
    return torch.empty_strided(one.shape, one.strides, dtype=dtype, device=device)


def _types(
    function: JitFunction | TunedFunction, given: dict[str, Any]
) -> dict[str, ParameterType]:
    """The types of arguments without elements: what `fly.call.arguments.read` says of real ones."""
    types: dict[str, ParameterType] = {}
    for name, parameter in signature.parameters_of(function.function).items():
        if name not in given:
            continue
        value, annotation = given[name], parameter.annotation
        if isinstance(value, torch.Tensor):
            if (found := arguments.type_of(_stand_in(value), annotation)) is not None:
                types[name] = found
        elif arguments.is_constexpr(annotation):
            types[name] = Constant(value)
        elif not isinstance(annotation, DType):
            number = _plain(value)
            has_default = parameter.default is not parameter.empty
            made = arguments.scalar_type(function.name, name, number)
            types[name] = Constant(number) if has_default else made
    return types


def _stand_in(tensor: torch.Tensor) -> Array:
    """An array of the tensor's element type, rank and contiguity, with two elements a dimension."""
    dtype = next(
        name
        for name, row in ELEMENT_TYPES.items()
        if row.long_name and f"torch.{row.long_name}" == str(tensor.dtype)
    )
    data = np.empty((2,) * tensor.dim(), f"u{tensor.element_size()}")
    if not tensor.is_contiguous():
        steps_of = list(tensor.stride())
        order = sorted(range(tensor.dim()), key=lambda at: -int(steps_of[at]))
        apart = np.empty((4,) * tensor.dim(), data.dtype)[(slice(0, 2),) * tensor.dim()]
        data = apart.transpose(np.argsort(order))
    return Array(data, dtype)


def _plain(value: Any) -> Any:
    """A number as Python's: a symbolic one stands for any."""
    if isinstance(value, torch.SymInt):
        return 1
    return 1.0 if isinstance(value, torch.SymFloat) else value
