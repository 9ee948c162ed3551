"""Describes the content of an image, as text for users and as JSON for programs."""

from __future__ import annotations

import json

from fly_host.integers import show
from fly_host.program import Program, Tensor
from fly_image.image import Image, KernelInterface

from fly_run.launch.parameters import describe


def text(image: Image, name: str) -> str:
    """Returns a page of text: the file, each kernel, the host program."""
    lines = [
        f"{name}: {image.variant}, {len(image.data)} bytes, {_count(len(image.kernels), 'kernel')}"
    ]
    for kernel in image.kernels.values():
        lines += ["", *_kernel(kernel)]
    lines += [
        "",
        *(_program(image.program) if image.program else ["no host program: run it with --kernel"]),
    ]
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _kernel(kernel: KernelInterface) -> list[str]:
    lines = [f"kernel {kernel.name}"]
    lines += [f"  {label:<10} {value}" for label, value in kernel.details()]
    rows = kernel.argument_rows()
    lines += ["  offset  size  argument"] if rows else []
    lines += [f"  {offset:6}  {size:4}  {told}" for offset, size, told in rows]
    return lines


def _program(program: Program) -> list[str]:
    lines = [f"program {program.entry}"]
    width = max((len(p.name) for p in program.parameters), default=0)
    for parameter in program.parameters:
        contiguous = isinstance(parameter, Tensor) and parameter.contiguous
        told = describe(parameter) + (", contiguous" if contiguous else "")
        lines.append(f"  {parameter.name:<{width}}  {told}")
    for launch in program.launches:
        grid, block = (_triple(program, sizes) for sizes in (launch.grid, launch.block))
        shared = show(program.expressions, launch.shared)
        told = f"  launch {launch.kernel}  grid {grid}  block {block}"
        lines.append(told + (f"  dynamic LDS {shared}" if shared != "0" else ""))
    return lines


def _triple(program: Program, sizes: tuple[int, int, int]) -> str:
    shown = [show(program.expressions, index) for index in sizes]
    while len(shown) > 1 and shown[-1] == "1":
        shown.pop()
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def as_json(image: Image) -> str:
    """Returns the same as JSON, with the host program as it is in the file."""
    from fly_host import text

    launched = json.loads(text.write(image.program)) if image.program else None
    return json.dumps({**image.document(), "program": launched}, indent=2) + "\n"
