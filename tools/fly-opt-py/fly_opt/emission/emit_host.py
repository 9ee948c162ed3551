"""The host program of a module as text for people: the element `fly-emit-host` of a pipeline."""

from __future__ import annotations

from typing import Any

from fly_common.errors import InputError
from fly_host import text
from fly_host.listing import listing


def emit(module: Any) -> str:
    """The listing. InputError where the module has no host program."""
    attributes = module.operation.attributes
    if "fly.host_program" not in attributes:
        raise InputError(
            "the module has no host program",
            hint="--target X extracts that of its host function",
        )
    return listing(text.read(attributes["fly.host_program"].value))
