"""Describes the content of an image, as text for users and as JSON for programs."""

from __future__ import annotations

import json

from fly_host.listing import listing
from fly_image.image import Image, KernelInterface


def text(image: Image, name: str) -> str:
    """Returns a page of text: the file, each kernel, the host program."""
    lines = [
        f"{name}: {image.variant}, {len(image.data)} bytes, {_count(len(image.kernels), 'kernel')}"
    ]
    for kernel in image.kernels.values():
        lines += ["", *_kernel(kernel)]
    program = image.program
    told = listing(program) if program else "no host program: run it with --kernel\n"
    return "\n".join([*lines, "", told])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _kernel(kernel: KernelInterface) -> list[str]:
    lines = [f"kernel {kernel.name}"]
    lines += [f"  {label:<10} {value}" for label, value in kernel.details()]
    rows = kernel.argument_rows()
    lines += ["  offset  size  argument"] if rows else []
    lines += [f"  {offset:6}  {size:4}  {told}" for offset, size, told in rows]
    return lines


def as_json(image: Image) -> str:
    """Returns the same as JSON, with the host program as it is in the file."""
    from fly_host import text

    launched = json.loads(text.write(image.program)) if image.program else None
    return json.dumps({**image.document(), "program": launched}, indent=2) + "\n"
