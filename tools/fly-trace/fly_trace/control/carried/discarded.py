"""Branches and loops that are traced again in another way: their ops are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder


class TracedAgain(InputError):
    """A dynamic branch or loop, `region`, or one around it, has to be traced in another way. It is
    the error to report if none of them can be."""

    region: Any = None


def discard(builder: Builder, op: ir.Operation, allocated: int) -> None:
    """Removes the op of a branch or loop, and the shared memory that it allocated: all but the
    first `allocated` allocations."""
    block = next(block for region in op.regions for block in region.blocks)
    waiting = builder.allocations[allocated:]
    del builder.allocations[allocated:]
    while waiting:
        one = waiting.pop()
        users = (use.owner.operation for result in one.results for use in result.uses)
        waiting += (user for user in users if user.block == builder.block)
        block.append(one)
    for key, array in list(builder.scratch.items()):
        if array.ssa.owner.operation.block != builder.block:
            del builder.scratch[key]
    op.detach_from_parent()
    # Other values must not get the addresses of what it holds.
    builder.discarded.append(op)
