"""Describes the content of an image, as text for users and as JSON for programs."""

from __future__ import annotations

import json

from fly_host.evaluation import show
from fly_host.plan import Plan, Tensor
from fly_image.image import Image, KernelInterface

from fly_run.launch.parameters import describe


def text(image: Image, name: str) -> str:
    """Returns a page of text: the file, each kernel, the launch plan."""
    lines = [
        f"{name}: {image.variant}, {len(image.data)} bytes, {_count(len(image.kernels), 'kernel')}"
    ]
    for kernel in image.kernels.values():
        lines += ["", *_kernel(kernel)]
    lines += ["", *(_plan(image.plan) if image.plan else ["no launch plan: run it with --kernel"])]
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


def _plan(plan: Plan) -> list[str]:
    lines = [f"plan {plan.entry}"]
    width = max((len(p.name) for p in plan.parameters), default=0)
    for parameter in plan.parameters:
        contiguous = isinstance(parameter, Tensor) and parameter.contiguous
        told = describe(parameter) + (", contiguous" if contiguous else "")
        lines.append(f"  {parameter.name:<{width}}  {told}")
    for launch in plan.launches:
        grid, block = (_triple(plan, sizes) for sizes in (launch.grid, launch.block))
        lds = show(plan, launch.lds)
        told = f"  launch {launch.kernel}  grid {grid}  block {block}"
        lines.append(told + (f"  dynamic LDS {lds}" if lds != "0" else ""))
    return lines


def _triple(plan: Plan, sizes: tuple[int, int, int]) -> str:
    shown = [show(plan, index) for index in sizes]
    while len(shown) > 1 and shown[-1] == "1":
        shown.pop()
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def as_json(image: Image) -> str:
    """Returns the same as JSON, with the launch plan as it is in the file."""
    from fly_host import plan

    launched = json.loads(plan.to_text(image.plan)) if image.plan else None
    return json.dumps({**image.document(), "plan": launched}, indent=2) + "\n"
