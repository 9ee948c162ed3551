"""Counts of a kernel by blocks: how the blocks of its machine code belong to those of its LLVM IR.

Each machine block names the block of LLVM IR that it was made from. A machine block that passes
have added, on an edge of the control-flow graph, is executed as often as the edge. Whatever is not
as simple as that, such as a block that was duplicated, makes a kernel's counts unknown.
"""

from __future__ import annotations

import re

from fly_llc import mir

from fly_roofline import llvm
from fly_roofline.instructions import NOTHING, Cost, Unknown, cost

_LABEL = re.compile(r"^  bb\.\d+(?:\.(?P<name>[^\s(:]+))?(?: \((?P<attributes>[^)]*)\))?:")
_NUMBERED = re.compile(r"%ir-block\.([\w.$-]+)")

Edge = tuple[str, str]


def block_of(block: mir.Block) -> str | None:
    """The name of the LLVM IR block of a machine block, or None."""
    found = _LABEL.match(block.label)
    assert found is not None, block.label
    if found["name"]:
        return found["name"]
    numbered = _NUMBERED.search(found["attributes"] or "")
    return numbered[1] if numbered else None


def cost_of(block: mir.Block) -> Cost:
    """The cost of one execution of a machine block."""
    total = NOTHING
    for one in block.instructions:
        # A bundle's first line is BUNDLE, which lists what is in it.
        for inner in (one, *one.bundled):
            total = total.plus(cost(inner.opcode))
    return total


class Costs:
    """The costs of a kernel by blocks of its LLVM IR and by edges between them."""

    def __init__(self, machine: mir.Function, function: llvm.Function):
        self.function = function
        self.machine = {block.number: block for block in machine.blocks}
        self.predecessors = machine.predecessors
        self.names = {number: block_of(block) for number, block in self.machine.items()}
        self.numbers: dict[str, list[int]] = {}
        for number, name in self.names.items():
            if name is not None:
                self.numbers.setdefault(name, []).append(number)
        self.blocks: dict[str, Cost] = {}
        self.edges: dict[Edge, Cost] = {}
        for number, block in self.machine.items():
            found = cost_of(block)
            if found == NOTHING:
                continue
            name = self.names[number]
            if name is None:
                edge = self._edge(number)
                self.edges[edge] = self.edges.get(edge, NOTHING).plus(found)
            else:
                self._check(name)
                self.blocks[name] = self.blocks.get(name, NOTHING).plus(found)

    def _check(self, name: str) -> None:
        """Raises Unknown if a block of LLVM IR is not executed exactly as often as its machine
        block."""
        if name not in self.function.blocks:
            raise Unknown(f"the machine code has a block {name} that LLVM IR has not")
        numbers = self.numbers[name]
        # A block that was split is a chain.
        for number in numbers[1:]:
            before = self.predecessors[number]
            if len(before) != 1 or before[0] not in numbers:
                raise Unknown(f"the machine code has {len(numbers)} blocks {name}")
            if self.machine[before[0]].successors != [number]:
                raise Unknown(f"the machine code branches within the block {name}")
        for other in self.function.predecessors[name]:
            ends = self.function.blocks[other].successors
            if len(ends) == 1 and other in self.numbers:
                reached = self._reached(self.numbers[other][-1])
                if numbers[0] not in reached:
                    raise Unknown(f"the machine code has the block {name} more than once")

    def _reached(self, number: int) -> set[int]:
        """The machine blocks with a name that are reached through those without one."""
        found: set[int] = set()
        waiting, seen = list(self.machine[number].successors), {number}
        while waiting:
            one = waiting.pop()
            if self.names[one] is not None:
                found.add(one)
            elif one not in seen:
                seen.add(one)
                waiting += self.machine[one].successors
        return found

    def _edge(self, number: int) -> Edge:
        """The edge of LLVM IR on which a machine block without a name is."""
        start, end = number, number
        while self.names[start] is None:
            if len(self.predecessors[start]) != 1:
                raise Unknown(f"bb.{number} of the machine code belongs to no block of LLVM IR")
            (start,) = self.predecessors[start]
        while self.names[end] is None:
            if len(self.machine[end].successors) != 1:
                raise Unknown(f"bb.{number} of the machine code belongs to no block of LLVM IR")
            (end,) = self.machine[end].successors
        source, target = str(self.names[start]), str(self.names[end])
        # Blocks that the machine code lacks were merged or empty.
        for first in self.function.blocks[source].successors:
            last = first
            while last != target and last not in self.numbers:
                ends = self.function.blocks[last].successors
                if len(ends) != 1:
                    break
                (last,) = ends
            if last == target and end not in self.machine[start].successors:
                return source, first
        raise Unknown(f"bb.{number} of the machine code is on no edge of LLVM IR")
