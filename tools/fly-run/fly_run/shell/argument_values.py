"""Converts command-line arguments to arrays and numbers, and allocates results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError, UsageError
from fly_common.quoting import shortened
from fly_host.program import Program, Scalar, Stream, Tensor
from fly_host.refusals import describe
from fly_image.image import KernelInterface

from fly_run.launch import launch
from fly_run.launch.arrays import dtypes
from fly_run.launch.arrays.tensors import check_array, check_symbols
from fly_run.launch.launch import Lds
from fly_run.launch.parameters import check_names
from fly_run.shell import npy
from fly_run.shell.argument_text import (
    Address,
    Argument,
    LocalMemory,
    Made,
    Path,
    Source,
    Typed,
    make,
)

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Given:
    """The arguments of a call: `values` by name in the order of the parameters, our types of the
    arrays among them, the names that kernels write, the destinations of results, the names of the
    tensors that the program returned, and those of arrays that are given by their addresses."""

    values: dict[str, Any]
    dtypes: dict[str, str]
    written: frozenset[str]
    destinations: dict[str, str]
    returned: frozenset[str] = frozenset()
    addressed: frozenset[str] = frozenset()

    @property
    def arguments(self) -> list[Any]:
        """The values for `fly_run.launch.launch`, in order."""
        return [
            launch.Address(value) if name in self.addressed else value
            for name, value in self.values.items()
        ]

    def between_margins(self, margin: int) -> Given:
        """The same with `margin` bytes around each array."""
        from fly_run.shell import placement

        values = {
            name: placement.between_margins(value, margin) if name in self.dtypes else value
            for name, value in self.values.items()
        }
        return replace(self, values=values)

    def with_results(self, program: Program, results: Any) -> Given:
        """The same with what the program returned, by name."""
        by_name = dict(zip(program.result_names, _leaves(results), strict=True))
        made = {name: by_name[name] for name in program.named_results}
        tensors = _returned_tensors(program)
        return Given(
            {**self.values, **made},
            {**self.dtypes, **tensors},
            self.written | tensors.keys(),
            self.destinations,
            frozenset(tensors),
            self.addressed,
        )


def _leaves(results: Any) -> list[Any]:
    if isinstance(results, tuple):
        return [leaf for part in results for leaf in _leaves(part)]
    return [] if results is None else [results]


def for_program(program: Program, arguments: list[Argument]) -> Given:
    """Returns the arguments, by name, for a code object with a program.

    A tensor that the program returns, or that its kernels only write, may be given as the path of
    its result: its extents follow from the other arguments. UsageError for an invalid call,
    InputError for files that do not fit.
    """
    by_name: dict[str, Argument] = {}
    for argument in arguments:
        if argument.name is None:
            raise UsageError(
                f"{shortened(argument.text)}: the argument has no name",
                hint=f"arguments are given by name: {_usage(program)}",
            )
        by_name[argument.name] = argument
    results = _returned_tensors(program)
    destinations = {
        name: _destination(by_name.pop(name)) for name in list(by_name) if name in results
    }
    check_names(program, by_name, results)
    values: dict[str, Any] = {}
    pending: list[Tensor] = []
    tensors: dict[str, Tensor] = {}
    addressed: dict[str, str] = {}
    for parameter in program.parameters:
        argument = by_name.get(parameter.name)
        if argument is None:
            continue  # a scalar with a default, or a stream
        if isinstance(parameter, Stream):
            raise UsageError(
                f"{shortened(argument.text)}: a stream can't be given here",
                hint="leave it out: kernels are launched in the device's current stream",
            )
        if isinstance(parameter, Scalar) and isinstance(argument.source, Address):
            array = values[parameter.name] = _at_address(parameter, argument, argument.source)
            addressed[parameter.name] = dtypes.name_of(array.dtype)
            if argument.destination is not None:
                destinations[parameter.name] = argument.destination
            continue
        if isinstance(parameter, Scalar):
            values[parameter.name] = _scalar(parameter, argument)
            continue
        tensors[parameter.name] = parameter
        destination = argument.destination
        if parameter.access == "r" and destination is not None:
            raise UsageError(
                f"{shortened(argument.text)}: {parameter.name} is only read, so there is no"
                " result to write"
            )
        if parameter.access == "w" and destination is None and isinstance(argument.source, Path):
            destination = argument.source.path
            pending.append(parameter)
        else:
            array = _array(argument, argument.source, parameter)
            values[parameter.name] = check_array(parameter, array)
        if destination is not None:
            destinations[parameter.name] = destination
    shapes = {name: values[name].shape for name in tensors if name in values}
    symbols = check_symbols(tensors, shapes)
    for tensor in pending:
        values[tensor.name] = _allocate(tensor, symbols, destinations[tensor.name])
    return Given(
        {p.name: values[p.name] for p in program.parameters if p.name in values},
        {name: tensor.dtype for name, tensor in tensors.items()} | addressed,
        frozenset(name for name, tensor in tensors.items() if tensor.access != "r")
        | {name for name in addressed if name in destinations},
        destinations,
        addressed=frozenset(addressed),
    )


def _at_address(scalar: Scalar, argument: Argument, source: Address) -> np.ndarray:
    """The array whose address a parameter is."""
    if scalar.dtype not in ("i64", "u64"):
        raise UsageError(
            f"{shortened(argument.text)}: {scalar.name} is {describe(scalar)}, and an address has"
            " 64 bits"
        )
    of = source.of
    array = npy.load(of.path) if isinstance(of, Path) else _make(argument, of, None)
    return _native(argument, array)


def _native(argument: Argument, array: np.ndarray) -> np.ndarray:
    if not array.dtype.isnative:
        raise InputError(
            f"{shortened(argument.text)}: the array's byte order is not this machine's"
        )
    return array


def _destination(argument: Argument) -> str:
    """Where a result goes that the program allocates."""
    if isinstance(argument.source, Path) and argument.destination is None:
        return argument.source.path
    raise UsageError(
        f"{shortened(argument.text)}: {argument.name} is a result, which the program allocates",
        hint=f"name the file that it goes to: {argument.name}={argument.name}.npy",
    )


def _usage(program: Program) -> str:
    words: list[str] = []
    for parameter in program.parameters:
        if isinstance(parameter, Stream):
            continue
        is_tensor = isinstance(parameter, Tensor)
        words.append(f"{parameter.name}={parameter.name.lower()}.npy" if is_tensor
                     else f"{parameter.name}=1")  # fmt: skip
    words += [f"{name}={name.lower()}.npy" for name in _returned_tensors(program)]
    return " ".join(words)


def _returned_tensors(program: Program) -> dict[str, str]:
    """The dtypes of the tensors that the program returns, without its parameters, by name."""
    dtypes_of = {tensor.name: tensor.dtype for tensor in (*program.parameters, *program.tensors)
                 if not isinstance(tensor, Stream)}  # fmt: skip
    return {
        name: dtypes_of[operand.value.tensor if operand.kind == "view" else operand.value]
        for name, operand in program.named_results.items()
        if operand.kind in ("tensor", "view")
    }


def _scalar(scalar: Scalar, argument: Argument) -> int | float | bool:
    if isinstance(argument.source, int | float) and argument.destination is None:
        return argument.source
    raise UsageError(
        f"{shortened(argument.text)}: {scalar.name} is {describe(scalar)}: expected one number",
        hint=f"write {scalar.name}=1",
    )


def _array(argument: Argument, source: Source, tensor: Tensor) -> Any:
    """Returns the array of a source; a number is returned as is, for check_array to reject."""
    if isinstance(source, Path):
        return npy.load(source.path)
    if isinstance(source, Made):
        return _make(argument, source, tensor.dtype)
    if isinstance(source, Typed | LocalMemory | Address):
        raise UsageError(
            f"{shortened(argument.text)}: {tensor.name} is {describe(tensor)}, an array"
        )
    return source


def _make(argument: Argument, made: Made, dtype: str | None) -> np.ndarray:
    try:
        return make(made, dtype)
    except OverflowError:
        raise UsageError(
            f"{shortened(argument.text)}: {made.value} does not fit in {made.dtype or dtype}"
        ) from None


def _allocate(tensor: Tensor, symbols: Mapping[str, int], path: str) -> np.ndarray:
    """Allocates a result whose extents the program gives."""
    import numpy as np

    shape: list[int] = []
    for dimension, extent in enumerate(tensor.shape):
        found = symbols.get(extent) if isinstance(extent, str) else extent
        if found is None:
            # Known extents are filled in, unknown ones keep their names, as in the message.
            known = [symbols.get(e, e) if isinstance(e, str) else e for e in tensor.shape]
            extents = ",".join("N" if e is None else str(e) for e in known)
            comma = "," if len(tensor.shape) == 1 else ""
            raise UsageError(
                f"{tensor.name}={path}: extent {dimension} of {tensor.name} can't be computed from"
                " the other arguments",
                hint=f"specify it: {tensor.name}=zeros(({extents}{comma}),{tensor.dtype}):{path}",
            )
        shape.append(found)
    return np.zeros(shape, dtypes.numpy_dtype(tensor.dtype))


def for_kernel(kernel: KernelInterface, arguments: list[Argument]) -> Given:
    """Returns the arguments, in order, for a kernel without a program; names are labels. Which
    arguments the kernel writes is unknown: those with a destination count as written."""
    explicit = kernel.arguments
    values: dict[str, Any] = {}
    types: dict[str, str] = {}
    destinations: dict[str, str] = {}
    addressed: set[str] = set()
    for number, argument in enumerate(arguments):
        taken = explicit[number].name if number < len(explicit) else ""
        name = argument.name or taken or f"#{number}"
        if name in values:
            name = f"{name}#{number}"
        source = argument.source
        if isinstance(source, Address):
            addressed.add(name)
            source = source.of
        if isinstance(source, Path):
            values[name] = npy.load(source.path)
        elif isinstance(source, Made):
            values[name] = _make(argument, source, None)
        elif isinstance(source, Typed):
            values[name] = source.content
        elif isinstance(source, LocalMemory):
            values[name] = Lds(source.nbytes)
        else:
            raise UsageError(
                f"{shortened(argument.text)}: the size of a number is not known without a program",
                hint="give its type: i32:5, f32:2.5",
            )
        if isinstance(source, Path | Made):
            stated = source.dtype if isinstance(source, Made) else None
            types[name] = stated or dtypes.name_of(values[name].dtype)
            _native(argument, values[name])
        if argument.destination is not None:
            if name not in types:
                raise UsageError(f"{shortened(argument.text)}: only an array can be written")
            destinations[name] = argument.destination
    return Given(
        values, types, frozenset(destinations), destinations, addressed=frozenset(addressed)
    )
