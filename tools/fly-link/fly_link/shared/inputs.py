"""The images that a library holds: one for each target, of one host function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import fly_image
from fly_common import artifact
from fly_common.errors import InputError, Place
from fly_host.native.c_interface.results import outs
from fly_host.program import Assigned, Buffer, Call, Program, Tensor, every_step
from fly_host.refusals import describe
from fly_image.image import Image

from fly_link.options import Options

if TYPE_CHECKING:
    from fly_common.diagnostics import Warn

LINKED = (artifact.HSACO, artifact.CUBIN)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Held:
    """An image, the name of its input, its host program."""

    image: Image
    name: str
    program: Program


def images(
    inputs: Sequence[bytes],
    names: Sequence[str],
    options: Options,
    backend: str | None,
    warn: Warn | None,
) -> list[Held]:
    """The images of the inputs, which are linked if they are not yet. InputError for what a library
    can't hold, and for inputs that do not agree."""
    from fly_link.linker import link

    found: list[Held] = []
    for data, name in zip(inputs, names, strict=True):
        if artifact.identify(data) not in LINKED:
            data = link([data], [name], options=options, backend=backend, warn=warn)
        image = fly_image.read(data, name)
        found.append(Held(image, name, _program(image, name)))
    for held in found[1:]:
        _agree(found[0], held)
    seen: dict[str, str] = {}
    for held in found:
        first = seen.setdefault(held.image.variant, held.name)
        if first != held.name or sum(one.image.variant == held.image.variant for one in found) > 1:
            other = next(one for one in reversed(found) if one.image.variant == held.image.variant)
            raise InputError(
                f"{first} and {other.name} are both for {held.image.variant}",
                hint="a library has one input for each target",
            )
    return found


def _program(image: Image, name: str) -> Program:
    program = image.program
    if program is None:
        raise InputError(
            "there is no host program, whose function a library has",
            place=Place(name),
            hint="fly-opt-py writes it, for a function that fly-trace has traced",
        )
    entry = program.entry
    if not _IDENTIFIER.fullmatch(entry) or entry.startswith("fly_"):
        why = "begins with fly_, as the library's own do" if entry.isascii() else "is no name in C"
        raise InputError(f"the name of the host function, {entry}, {why}", place=Place(name))
    if not any(isinstance(parameter, Tensor) for parameter in program.parameters):
        raise InputError(
            f"{entry} has no tensor among its parameters, by which a library knows the device",
            place=Place(name),
        )
    for step in every_step(program.steps):
        if isinstance(step, Call):
            raise InputError(
                f"{entry} calls the library function {step.function}, which is Python's",
                place=Place(name),
                hint="a library runs without Python: call it before or after the library",
            )
    return program


def _agree(first: Held, other: Held) -> None:
    """InputError with both names where two inputs are not of one function."""
    for what, a, b in _compared(first.program, other.program):
        if a != b:
            raise InputError(
                f"{first.name} and {other.name} differ in {what}: {a}, and {b}",
                hint="a library has one host function, compiled for several targets",
            )


def _compared(a: Program, b: Program) -> Iterator[tuple[str, str, str]]:
    """What has to be the same: its name, and how it is in each of two programs."""
    yield "the host function", a.entry, b.entry
    given = [_names(parameter.name for parameter in one.parameters) for one in (a, b)]
    yield "its parameters", given[0], given[1]
    for one, two in zip(a.parameters, b.parameters, strict=True):
        yield f"the parameter {one.name}", describe(one), describe(two)
        # Strides and divisors, which people do not see in the line above.
        yield f"the parameter {one.name}", str(one), str(two)
    yield "its results", _names(_results(a)), _names(_results(b))
    kernels = [_names(dict.fromkeys(launch.kernel for launch in p.launches)) for p in (a, b)]
    yield "the kernels that it launches", kernels[0], kernels[1]


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _results(program: Program) -> Iterator[str]:
    every = (*program.tensors, *program.parameters)
    tensors = {one.name: one for one in every if isinstance(one, Buffer | Assigned | Tensor)}
    for name, operand in outs(program).items():
        if operand.kind == "integer":
            yield name
            continue
        view = operand.value if operand.kind == "view" else None
        tensor = tensors[view.tensor if view else operand.value]
        shape = view.shape if view else getattr(tensor, "shape", None)
        rank = tensor.rank if isinstance(tensor, Assigned) and shape is None else len(shape or ())
        yield f"{name} ({tensor.dtype} of rank {rank})"
