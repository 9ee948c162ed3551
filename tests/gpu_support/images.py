"""Images without a file, for devices in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from fly_host.program import Program
from fly_image.image import POINTER, VALUE, find_kernel


class Argument(NamedTuple):
    name: str
    offset: int
    size: int
    kind: str
    type_name: str = ""
    description: str = ""


@dataclass(frozen=True)
class Kernel:
    name: str
    arguments: tuple[Argument, ...]
    argument_bytes: int
    shared_bytes: int = 0
    max_threads: int = 1024
    required_block: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    dependent: bool = False

    def details(self) -> list[tuple[str, str]]:
        return []

    def argument_rows(self) -> list[tuple[int, int, str]]:
        return []


@dataclass(frozen=True)
class FakeImage:
    """An image of `data`, whatever that is."""

    kernels: Mapping[str, Kernel]
    target: str = "sm_90a"
    program: Program | None = None
    data: bytes = b"code"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return sha256(self.data + self.target.encode() + repr(self.program).encode()).hexdigest()

    @property
    def variant(self) -> str:
        return self.target

    def kernel(self, name: str | None) -> Kernel:
        return find_kernel(self.kernels, name)

    def document(self) -> dict[str, Any]:
        return {"target": self.target}

    def same_code(self, other: Any) -> bool:
        return self.data == other.data

    def line(self, pc: int) -> None:
        return None


def kernel(name: str, *sizes: int | str, **limits: Any) -> Kernel:
    """A kernel with arguments of these sizes; "p" is a pointer."""
    at, arguments = 0, []
    for number, size in enumerate(sizes):
        kind, nbytes = (POINTER, 8) if size == "p" else (VALUE, int(size))
        at = -(-at // nbytes) * nbytes
        arguments.append(Argument(f"a{number}", at, nbytes, kind))
        at += nbytes
    return Kernel(name, tuple(arguments), at, **limits)
