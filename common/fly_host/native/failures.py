"""Errors behind the first step: the words are the interpreter's, which is asked again for the one
expression, check or launch that failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fly_common.errors import FlyError, InputError

from fly_host.native.emission.frame import Site
from fly_host.native.unavailable import Unavailable
from fly_host.program import Buffer, Program, Scalar, every_step, needs
from fly_host.program import Call as CallStep
from fly_host.readers.interpreter import endless, wrong_count
from fly_host.readers.machine import Services
from fly_host.readers.values import Extents, Values


class Failures:
    """What a launcher calls when something fails."""

    def __init__(self, program: Program, sites: tuple[Site, ...], machine: Services | None):
        self.program, self.sites, self.machine = program, sites, machine

    def fail(self, number: int, numbers: tuple[int, ...]) -> NoReturn:
        """Raises for a site."""
        site = self.sites[number]
        values = self._values(site, numbers)
        kind, what = site.what
        if kind == "check":
            if not values[what.condition]:
                shown = (
                    part if isinstance(part, str) else str(values[part]) for part in what.message
                )
                raise InputError("".join(shown))
        elif kind == "value":
            values[what]
        elif kind == "endless":
            endless(self.program)
        elif kind == "layout":
            self._layout(what, values)
        else:
            self._launch(what, values)
        raise FlyError(f"a launcher of {self.program.entry} refused what Python takes: {site.what}")

    def _values(self, site: Site, numbers: tuple[int, ...]) -> Values:
        """The values of leaves, as the interpreter has them."""
        variables: dict[int, int] = {}
        scalars: dict[str, int] = {}
        found: dict[str, dict[tuple[str, int], int]] = {}
        for (kind, *operands), value in zip(site.leaves, numbers, strict=True):
            if kind == "variable":
                variables[operands[0]] = value
            elif kind == "scalar":
                scalars[operands[0]] = self._scalar(operands[0], value)
            else:
                found.setdefault(operands[0], {})[kind, operands[1]] = value
        tensors: dict[str, Extents] = {}
        for name, parts in found.items():
            rank = 1 + max(dimension for _, dimension in parts)
            shape, strides = (
                tuple(parts.get((kind, dimension), 0) for dimension in range(rank))
                for kind in ("extent", "stride")
            )
            tensors[name] = Extents(shape, strides)
        return Values(self.program, tensors, scalars, variables)

    def _scalar(self, name: str, value: int) -> int:
        parameter = self.program.parameter(name)
        unsigned = isinstance(parameter, Scalar) and parameter.dtype == "u64"
        return value % (1 << 64) if unsigned else value

    def _layout(self, name: str, values: Values) -> None:
        buffer = next(tensor for tensor in self.program.tensors if tensor.name == name)
        assert isinstance(buffer, Buffer)
        shape, strides = values.several(buffer.shape), values.several(buffer.strides)
        elements = values[buffer.elements]
        if self.machine is not None:
            self.machine.allocate(buffer, shape, strides, elements)
        raise InputError(
            f"tensor {name} can't be allocated: shape {shape}, strides {strides},"
            f" {elements} elements"
        )

    def _launch(self, number: int, values: Values) -> None:
        launch = self.program.launches[number]
        values.several(needs(launch))
        integers = [
            [
                values[word.expression]
                if word.kind == "integer" and word.expression is not None
                else None
                for word in words
            ]
            for words in launch.arguments
        ]
        grid, block = values.triple(launch.grid), values.triple(launch.block)
        if self.machine is not None:
            self.machine.look_at(launch, grid, block, values[launch.shared], integers)
        raise InputError(f"{launch.kernel}: a grid of {grid}, a block of {block}")


def raising(error: Callable[[int, int], object]) -> Callable[[int, tuple[int]], NoReturn]:
    """What a launcher calls for a status of the driver."""

    def raise_(launch: int, status: tuple[int]) -> NoReturn:
        error(launch, status[0])
        raise RuntimeError(f"launch {launch} failed: the driver's status is {status[0]}")

    return raise_


def library_calls(
    program: Program, machine: Services | None, check: Callable[[Any, str], None]
) -> list[Callable[..., tuple[Any, ...]]]:
    """For each library call: what makes its results and checks them."""
    steps = [step for step in every_step(program.steps) if isinstance(step, CallStep)]
    if steps and machine is None:
        raise Unavailable(f"nothing is there that could call {steps[0].function}")
    return [_library_call(program, machine, step, check) for step in steps if machine is not None]


def _library_call(
    program: Program, machine: Services, step: CallStep, check: Callable[[Any, str], None]
) -> Callable[..., tuple[Any, ...]]:
    first, names = len(step.arguments), [name for name, _ in step.keywords]
    last = first + len(names)
    declared = {tensor.name: tensor for tensor in program.tensors}
    buffers = [declared[name] for name in step.results]

    def call(*given: Any) -> tuple[Any, ...]:
        keywords = dict(zip(names, given[first:last], strict=True))
        made = tuple(machine.call(step, list(given[:first]), keywords))
        if len(made) != len(buffers):
            wrong_count(step, made)
        for buffer, tensor, layout in zip(buffers, made, given[last:], strict=True):
            assert isinstance(buffer, Buffer)
            rank = len(buffer.shape)
            machine.check_made(buffer, tensor, layout[:rank], layout[rank:])
            check(tensor, buffer.name)
        return made

    return call
