"""The walk through a host function: from its operations to the steps of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from fly_common.record import field, record
from fly_dialect.types import MemRefSpec
from fly_host.program import Assigned, Buffer, Check, Step

from fly_opt.passes.base import refuse
from fly_opt.passes.host.clusters import Clusters
from fly_opt.passes.host.tensors import TensorValue
from fly_opt.passes.host.values import Values

Handler: TypeAlias = "Callable[[Walk, Any], None]"
TERMINATORS = ("func.return", "scf.yield", "scf.condition")


@record(frozen=False)
class Walk:
    """What has been made so far. `handlers` are functions for the operations that become steps, by
    name; other operations compute."""

    values: Values
    clusters: Clusters
    handlers: Mapping[str, Handler]
    tensors: list[Buffer | Assigned] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)  # of the block where the walk is
    variables: int = 0
    dtypes: dict[str, str] = field(default_factory=dict)  # of tensors by name

    def block(self, block: Any) -> tuple[tuple[Step, ...], Any]:
        """The steps of a block, and the operation that ends it."""
        outer, self.steps = self.steps, []
        end = None
        for child in block:
            op = child.operation
            if op.name in TERMINATORS:
                end = op
            elif op.name in self.handlers:
                self.handlers[op.name](self, op)
            else:
                self.values.compute(op)
        steps, self.steps = tuple(self.steps), outer
        return steps, end

    # -- names

    def name(self, wanted: str) -> str:
        """The name, or one like it that nothing in the program has."""
        taken = {p.name for p in self.values.parameters} | {one.name for one in self.tensors}
        number, name = 0, wanted
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def variable(self) -> int:
        self.variables += 1
        return self.variables - 1

    def buffer(self, buffer: Buffer, spec: MemRefSpec) -> TensorValue:
        """Takes up a buffer, whose name is new."""
        self.tensors.append(buffer)
        self.dtypes[buffer.name] = buffer.dtype
        return TensorValue(buffer.name, spec, len(buffer.shape), buffer.shape, buffer.strides)

    def assigned(self, like: TensorValue) -> TensorValue:
        """A new variable for tensors like one."""
        name = self.name(like.name)
        dtype = self.dtypes[like.name]
        self.tensors.append(Assigned(name, dtype, like.rank))
        self.dtypes[name] = dtype
        return TensorValue(name, like.spec, like.rank)

    def check(self, condition: int, message: Iterable[str | int]) -> None:
        """A check, unless it always holds. Integers of the message that are known become text."""
        graph = self.values.graph
        if graph.constant(condition) == 1:
            return
        parts: list[str | int] = []
        for part in message:
            known = part if isinstance(part, str) else graph.constant(part)
            if known is None:
                parts.append(part)
            elif parts and isinstance(parts[-1], str):
                parts[-1] += str(known)
            else:
                parts.append(str(known))
        self.steps.append(Check(condition, tuple(parts)))

    # -- operands

    def tensor(self, op: Any, value: Any) -> TensorValue:
        """The tensor of an operand of `op`."""
        held = self.values.held.get(value)
        if not isinstance(held, TensorValue):
            raise refuse(op, f"{op.name} takes a value that is no tensor of the program")
        return held
