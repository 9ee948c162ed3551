"""Describes the content of an image, as text for users and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fly_host.listing import listing
from fly_image.image import Image, KernelInterface


def text(images: Sequence[Image], name: str) -> str:
    """Returns a page of text for each image."""
    return "\n".join(_text(image, name) for image in images)


def _text(image: Image, name: str) -> str:
    """The file, each kernel, the host program."""
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


def as_json(images: Sequence[Image]) -> str:
    """Returns the same as JSON, with the host program as it is in the file; a list if there are
    several images."""
    found = [_document(image) for image in images]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2) + "\n"


def _document(image: Image) -> dict[str, Any]:
    from fly_host import text

    launched = json.loads(text.write(image.program)) if image.program else None
    return {**image.document(), "program": launched}
