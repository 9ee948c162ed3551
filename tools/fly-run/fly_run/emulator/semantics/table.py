"""The table of all operations, and the IR of the handler library."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from fly_target import registry

from fly_run.emulator.irgen import Function
from fly_run.emulator.semantics.base.operation import Operation

# The modules of this package with operations: each has a function `operations`.
_TABLES = (
    *("scalar.alu", "scalar.float", "scalar.flow"),
    *("vector.integer", "vector.wide_integer", "vector.byte_operations", "vector.address"),
    *("vector.clamped", "vector.floating.float"),
    *("vector.floating.min_max", "vector.rare", "vector.product_sums"),
    *(
        "vector.floating.division",
        "vector.floating.transcendental",
        "vector.floating.convert",
        "vector.floating.convert_small",
    ),
    *("vector.vopc", "vector.packed"),
    *("rdna.operations", "rdna.relative", "rdna.blocks"),
    *("memory.rdna", "vector.lanes", "vector.picking"),
    *(
        "cdna5.integer",
        "cdna5.brain",
        "cdna5.lanes",
        "cdna5.lds_barriers",
        "cdna5.tensor",
        "cdna5.transposed",
    ),
    *("matrix.instructions", "matrix.operands", "memory.accesses"),
    *("vector.adapters", "vector.overflow", "grid.watching", "memory.measuring"),
)


@functools.cache
def operations() -> dict[str, Operation]:
    """Returns every operation of every target by its name."""
    table: dict[str, Operation] = {}
    for name in _TABLES:
        module = importlib.import_module(f"fly_run.emulator.semantics.{name}")
        for operation in module.operations():
            if operation.name in table:
                raise ValueError(f"{operation.name} occurs twice in the semantics tables")
            table[operation.name] = operation
    return table


@functools.cache
def operations_of(target: str) -> dict[str, Operation]:
    """Returns the operations of `target` by mnemonic; those with a longer name also by that."""
    found: dict[str, Operation] = {}
    traits = registry.find(target).traits
    for operation in operations().values():
        if operation.traits and operation.traits.isdisjoint(traits):
            continue
        if operation.mnemonic in found:
            raise ValueError(f"{operation.mnemonic} has two meanings on {target}")
        found[operation.mnemonic] = found[operation.name] = operation
    return found


def _emitters() -> dict[str, Callable[[Operation, str], Function]]:
    from fly_run.emulator.semantics.base import emit
    from fly_run.emulator.semantics.memory import emit as emit_memory
    from fly_run.emulator.semantics.memory import emit_scalar
    from fly_run.emulator.semantics.scalar import flow

    return {
        "valu": emit.emit_valu,
        "scalar": emit.emit_scalar,
        "custom": emit.emit_custom,
        "flow": flow.emit_flow,
        "nothing": flow.emit_nothing,
        "global": emit_memory.emit_memory,
        "flat": emit_memory.emit_memory,
        "scratch": emit_memory.emit_memory,
        "buffer": emit_memory.emit_memory,
        "lds": emit_memory.emit_memory,
        "smem": emit_scalar.emit_scalar_memory,
    }


ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
SHARED = (
    "declare void @fly_record_fault(ptr, i32, i64, i64, i64)",
    "declare ptr @fly_find_region(ptr, i64, i64)",
    *(
        f"declare i1 @fly_resolve_{space}(ptr, ptr, i64, {last})"
        for space, last in (("global", "i64"), ("buffer", "i64"), ("scratch", "i1"), ("lds", "i1"))
    ),
    "declare ptr @fly_resolve_scalar(ptr, ptr, i64, i64, i64)",
)


def modules(count: int) -> list[str]:
    """Returns the library's IR in `count` modules of similar size. Each has a table of handlers,
    `fly_handlers_N`, and their names in the same order, `fly_names_N`. The first also has the
    shared functions."""
    from fly_run.emulator.semantics.grid import driver
    from fly_run.emulator.semantics.memory import resolve

    emitters = _emitters()
    handlers: list[tuple[str, Function]] = []
    # All operations without effect share one handler.
    for operation in operations().values():
        for name in operation.handlers:
            handlers.append((name, emitters[operation.form](operation, name)))
    shares: list[list[tuple[str, Function]]] = [[] for _ in range(count)]
    sizes = [0] * count
    for name, function in sorted(handlers, key=lambda item: -len(item[1].lines)):
        smallest = sizes.index(min(sizes))
        shares[smallest].append((name, function))
        sizes[smallest] += len(function.lines)
    texts = []
    for number, share in enumerate(shares):
        functions = [function for _, function in share]
        shared = [*resolve.functions(), *driver.functions()] if number == 0 else []
        texts.append(_module(number, [name for name, _ in share], [*shared, *functions]))
    return texts


def _module(number: int, names: list[str], functions: list[Function]) -> str:
    defined = {function.name for function in functions}
    declarations = {text for function in functions for text in function.declarations}
    declarations |= {
        text for text in SHARED if text.partition("@")[2].partition("(")[0] not in defined
    }
    listed = "\n".join(names)
    pointers = ", ".join(f'ptr @"{name.replace("@", ".")}"' for name in names)
    parts = [
        f'@fly_names_{number} = constant [{len(listed) + 1} x i8] c"{_escape(listed)}\\00"',
        f"@fly_handlers_{number} = constant [{len(names)} x ptr] [{pointers}]",
        *sorted(declarations),
        *(_hidden(function) for function in functions),
        ATTRIBUTES,
    ]
    return "\n\n".join(parts) + "\n"


def _escape(text: str) -> str:
    return text.replace("\n", "\\0A")


def _hidden(function: Function) -> str:
    """Formats a function with hidden visibility, so that calls of it need no PLT."""
    text = function.text()
    if function.name == "fly_run":
        return text
    return text.replace("define ", "define hidden ", 1)
