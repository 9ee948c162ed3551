"""fly-dynamic-shared: shared memory beyond 48 KB is dynamic.

A module's variables of shared memory take at most 48 KB in a kernel. A launch can ask for more, up
to the chip's limit, so a kernel that needs more gets all of its shared memory from the launch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from fly_common.record import record, replace
from fly_dialect.bindings import ir
from fly_host import text
from fly_host.graph import Graph
from fly_host.program import Branch, Launch, Loop, Step
from fly_target.nvidia.facts import nvidia_facts_of
from fly_target.target import Target

from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

_PROGRAM = "fly.host_program"
_BYTES = re.compile(r"!llvm\.array<(\d+) x i8>")
_SHARED = 3  # the address space
ALIGNMENT = 1024  # of dynamic shared memory, which the type of fly.get_dyn_shared promises


@record
class Variable:
    """A variable of shared memory: `size` and `alignment` in bytes. A size of 0 stands for the
    memory that launches ask for."""

    op: ir.Operation
    size: int
    alignment: int


@record
class DynamicShared(Pass):
    """Makes the shared memory of kernels that have more than 48 KB dynamic.

    The kernel's variables become offsets in its dynamic shared memory, in front of what the launch
    asks for. Launches in the host program ask for so much more.
    """

    name: ClassVar[str] = "fly-dynamic-shared"

    def run(self, op: ir.Operation) -> None:
        target = target_of(op)
        if target is None:
            raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
        sizes: dict[str, int] = {}
        for module in op.regions[0].blocks[0]:
            if module.operation.name == "gpu.module":
                sizes |= _Module(module.operation, target).run()
        if sizes and _PROGRAM in op.attributes:
            program = text.read(ir.StringAttr(op.attributes[_PROGRAM]).value)
            graph = Graph(program.expressions)

            def more(launch: Launch) -> Launch:
                size = sizes.get(launch.kernel, 0)
                if not size:
                    return launch
                shared = graph.make("add", launch.shared, graph.const(size))
                return replace(launch, shared=shared)

            steps = _launches(program.steps, more)
            program = replace(program, steps=steps, expressions=tuple(graph.expressions))
            op.attributes[_PROGRAM] = ir.StringAttr.get(text.write(program))


def _launches(steps: tuple[Step, ...], change: Callable[[Launch], Launch]) -> tuple[Step, ...]:
    """Returns the steps with each launch replaced by what `change` returns for it."""
    made: list[Step] = []
    for step in steps:
        if isinstance(step, Launch):
            step = change(step)
        elif isinstance(step, Loop):
            step = replace(step, body=_launches(step.body, change))
        elif isinstance(step, Branch):
            then, other = (_launches(side, change) for side in (step.then, step.otherwise))
            step = replace(step, then=then, otherwise=other)
        made.append(step)
    return tuple(made)


class _Module:
    def __init__(self, module: ir.Operation, target: Target):
        self.module, self.target = module, target
        self.variables: dict[str, Variable] = {}
        self.used: dict[str, list[ir.Operation]] = {}  # by kernel: what takes an address
        self.kernels: dict[str, ir.Operation] = {}
        for child in module.regions[0].blocks[0]:
            one = child.operation
            if one.name == "llvm.mlir.global":
                self._variable(one)
            elif one.name == "gpu.func":
                name = ir.StringAttr(one.attributes["sym_name"]).value
                self.kernels[name] = one
                self.used[name] = [op for op in operations(one) if op.name == "llvm.mlir.addressof"]

    def _variable(self, op: ir.Operation) -> None:
        space = op.attributes.get("addr_space")
        match = _BYTES.fullmatch(str(ir.TypeAttr(op.attributes["global_type"]).value))
        if space is None or ir.IntegerAttr(space).value != _SHARED or match is None:
            return
        alignment = (
            ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 1
        )
        name = ir.StringAttr(op.attributes["sym_name"]).value
        self.variables[name] = Variable(op, int(match[1]), alignment)

    def run(self) -> dict[str, int]:
        """Returns the bytes by which launches of each kernel must ask for more."""
        limit = nvidia_facts_of(self.target).static_shared
        places = {name: self._layout(name) for name in self.kernels}
        for name, (_, total) in places.items():
            if total > self.target.lds:
                raise refuse(
                    self.kernels[name],
                    f"{name} has {total} bytes of shared memory, but a block of"
                    f" {self.target.name} has at most {self.target.lds}",
                )
        large = {name for name, (_, total) in places.items() if total > limit}
        # A variable is in one place: all kernels that use one of a large kernel's change.
        while more := self._sharing(large) - large:
            large |= more
        sizes = {}
        for name in sorted(large):
            offsets, total = places[name]
            dynamic = self._dynamic()
            size = -(-total // ALIGNMENT) * ALIGNMENT if self._asks(name) else total
            for op in self.used[name]:
                symbol = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
                if symbol in self.variables:
                    _move(op, dynamic, offsets.get(symbol, size))
            sizes[name] = size
        for symbol in {symbol for name in large for symbol in places[name][0]}:
            self.variables.pop(symbol).op.erase()
        return sizes

    def _symbols(self, name: str) -> list[str]:
        """Returns the variables that a kernel uses, in their order in the module."""
        used = {ir.FlatSymbolRefAttr(op.attributes["global_name"]).value for op in self.used[name]}
        return [symbol for symbol in self.variables if symbol in used]

    def _layout(self, name: str) -> tuple[dict[str, int], int]:
        """Returns the offsets of a kernel's static variables, and the size of all."""
        offsets, end = {}, 0
        symbols = [symbol for symbol in self._symbols(name) if self.variables[symbol].size]
        # The most aligned first: there are no gaps between them.
        for symbol in sorted(symbols, key=lambda one: -self.variables[one].alignment):
            variable = self.variables[symbol]
            end = -(-end // variable.alignment) * variable.alignment
            offsets[symbol] = end
            end += variable.size
        return offsets, end

    def _asks(self, name: str) -> bool:
        """Returns whether a kernel uses the memory that its launches ask for."""
        return any(not self.variables[symbol].size for symbol in self._symbols(name))

    def _sharing(self, names: set[str]) -> set[str]:
        static = {s for name in names for s in self._symbols(name) if self.variables[s].size}
        return {name for name in self.kernels if static & set(self._symbols(name))}

    def _dynamic(self) -> str:
        """Returns the variable for what launches ask for, which is declared if there is none."""
        for symbol, variable in self.variables.items():
            if not variable.size:
                return symbol
        symbol, i32 = "__dynamic_shared", ir.IntegerType.get_signless(32)
        op = ir.Operation.create(
            "llvm.mlir.global",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "global_type": ir.TypeAttr.get(ir.Type.parse("!llvm.array<0 x i8>")),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "addr_space": ir.IntegerAttr.get(i32, _SHARED),
                "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT),
            },
            regions=1,
            loc=self.module.location,
            ip=ir.InsertionPoint.at_block_begin(self.module.regions[0].blocks[0]),
        )
        self.variables[symbol] = Variable(op, 0, ALIGNMENT)
        return symbol


def _move(op: ir.Operation, symbol: str, offset: int) -> None:
    """Makes an address that of an offset in a variable."""
    op.attributes["global_name"] = ir.FlatSymbolRefAttr.get(symbol)
    if not offset:
        return
    address = op.results[0]
    uses = list(address.uses)
    with ir.InsertionPoint.after(op), op.location:
        attributes = {
            "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([offset]),
        }
        moved = ir.Operation.create("llvm.getelementptr", [address.type], [address], attributes)
    for use in uses:
        use.owner.operation.operands[use.operand_number] = moved.results[0]
