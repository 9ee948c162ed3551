"""A kernel of an NVIDIA image. Implements `fly_image.image.KernelInterface`."""

from __future__ import annotations

from dataclasses import dataclass

from fly_image.image import POINTER, VALUE, Triple
from fly_image.nvidia.entries import Parameter
from fly_image.nvidia.resources import Resources

WARP = 32


@dataclass(frozen=True)
class Argument:
    """A parameter of a kernel. PTX has no names for them. Whether one is a pointer is only known
    from PTX; a cubin without it has values."""

    offset: int
    size: int
    kind: str
    type_name: str
    space: str = ""
    name: str = ""

    @staticmethod
    def of(parameter: Parameter) -> Argument:
        pointer = parameter.pointer is not None
        return Argument(
            offset=parameter.offset,
            size=parameter.size,
            kind=POINTER if pointer else VALUE,
            type_name=parameter.type_name,
            space=parameter.pointer or "",
        )

    @property
    def description(self) -> str:
        """A description such as `a pointer (global)` or `4 bytes by value (f32)`."""
        if self.kind == POINTER:
            return f"a pointer{f' ({self.space})' if self.space else ''}"
        return f"{self.size} bytes by value{f' ({self.type_name})' if self.type_name else ''}"


@dataclass(frozen=True)
class Kernel:
    """See `fly_image.image.KernelInterface`."""

    name: str
    arguments: tuple[Argument, ...]
    argument_bytes: int
    shared_bytes: int
    max_threads: int
    required_block: Triple | None
    resources: Resources
    cluster: Triple | None = None
    dependent: bool = False  # by programmatic dependent launch

    @property
    def spilled(self) -> str:
        """The registers that did not suffice, as text; empty if all did."""
        said = self.resources
        return said.spills if said.spill_stores or said.spill_loads else ""

    def details(self) -> list[tuple[str, str]]:
        """See `KernelInterface`."""
        block = f"at most {self.max_threads} threads"
        if self.required_block:
            block = "×".join(map(str, self.required_block)) + " threads"
        clusters = ""
        if self.cluster:
            clusters = f", in clusters of {'×'.join(map(str, self.cluster))} blocks"
        rows = [("block", f"{block} in warps of {WARP}{clusters}")]
        if self.dependent:
            rows.append(("launch", "dependent: before the launch in front of it has ended"))
        said = self.resources
        if said.registers is not None:
            rows.append(("registers", f"{said.registers} a thread, {said.spills}"))
        stack = "" if said.stack is None else f", {said.stack} of stack a thread"
        arguments = f"{self.argument_bytes} of arguments"
        rows.append(("memory", f"{self.shared_bytes} bytes shared{stack}, {arguments}"))
        return rows

    def argument_rows(self) -> list[tuple[int, int, str]]:
        """See `KernelInterface`."""
        return [(one.offset, one.size, one.description) for one in self.arguments]
