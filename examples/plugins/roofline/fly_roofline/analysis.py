"""What is at the slot `llc.pre-emit`: adds the kernels' programs to the module."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fly_llc import mir
from fly_target import registry

from fly_roofline import llvm, section
from fly_roofline.counting import Costs
from fly_roofline.instructions import Unknown
from fly_roofline.options import Options
from fly_roofline.slice import Slice, Slicer

_CPU = re.compile(r'"target-cpu"="([\w-]+)"')
_ASSEMBLY = re.compile(r"^  (?=define |declare |@|%[\w.]+ = type|attributes |!)", re.MULTILINE)


def content(options: Options) -> Callable[[bytes], bytes]:
    """What is at the slot. No option changes it."""
    return analysed


def analysed(data: bytes) -> bytes:
    """Returns the MIR with a section for its kernels. Code of other machines is left as it is."""
    text = data.decode()
    module = mir.parse(text)
    chip = _CPU.search(module.ir)
    row = registry.get(chip[1]) if chip else None
    if row is None or row.amd is None:
        return data
    functions = {one.name: one for one in llvm.functions(module.ir)}
    found = []
    for machine in module.functions:
        function = functions.get(machine.name)
        if function is not None and _is_kernel(module.ir, machine.name):
            wave = _wave_size(module.ir, machine.name) or row.wave_size
            found.append({"kernel": machine.name, "target": row.name, "wave": wave})
            found[-1] |= kernel(machine, function)
    if not found:
        return data
    return _with_assembly(text, section.assembly(found)).encode()


def kernel(machine: mir.Function, function: llvm.Function) -> dict[str, Any]:
    """Returns a kernel's program, without its name and target."""
    try:
        costs = Costs(machine, function)
        return {"unknown": "", **_numbered(function, Slicer(function).run(), costs)}
    except Unknown as reason:
        return {"unknown": str(reason)}


def _numbered(function: llvm.Function, made: Slice, costs: Costs) -> dict[str, Any]:
    """Replaces names by numbers."""
    order = _order(function)
    blocks = {name: number for number, name in enumerate(order)}
    values = {
        step.name: number
        for number, step in enumerate(step for name in order for step in made.steps[name])
    }

    def operand(one: Any) -> Any:
        return values[one] if isinstance(one, str) else [one]

    def step_of(step: Any) -> list[Any]:
        if step.op == "phi":
            pairs = [[blocks[name], operand(value)] for name, value in step.operands]
            return [values[step.name], step.op, step.bits, pairs]
        return [values[step.name], step.op, step.bits, [operand(one) for one in step.operands]]

    def end_of(end: Any) -> Any:
        if isinstance(end, str):
            return blocks[end]
        return [operand(end[0]), blocks[end[1]], blocks[end[2]]] if end else []

    return {
        "values": len(values),
        "steps": [[step_of(step) for step in made.steps[name]] for name in order],
        "ends": [end_of(made.ends[name]) for name in order],
        "costs": [list(costs.blocks[name]) if name in costs.blocks else None for name in order],
        "edges": [[blocks[a], blocks[b], list(cost)] for (a, b), cost in costs.edges.items()],
    }


def _order(function: llvm.Function) -> list[str]:
    """The blocks in reverse postorder: each before its successors, except around loops."""
    found: list[str] = []
    seen: set[str] = set()
    entry = next(iter(function.blocks))
    stack = [(entry, iter(function.blocks[entry].successors))]
    seen.add(entry)
    while stack:
        name, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(function.blocks[successor].successors)))
                break
        else:
            stack.pop()
            found.append(name)
    return found[::-1]


def _definition(ir: str, name: str) -> str:
    found = re.search(rf'^ *define [^\n]*@"?{re.escape(name)}"?\([^\n]*', ir, re.MULTILINE)
    return found[0] if found else ""


def _is_kernel(ir: str, name: str) -> bool:
    return " amdgpu_kernel " in _definition(ir, name)


def _wave_size(ir: str, name: str) -> int:
    """Returns the wave size that a function's features name, or 0."""
    number = re.search(r" #(\d+)", _definition(ir, name))
    group = number and re.search(rf"^ *attributes #{number[1]} = [^\n]*", ir, re.MULTILINE)
    size = group and re.search(r"\+wavefrontsize(\d+)", group[0])
    return int(size[1]) if size else 0


def _with_assembly(text: str, lines: str) -> str:
    """Puts lines of module assembly in front of the first definition of the module."""
    at = _ASSEMBLY.search(text)
    assert at is not None, "a kernel is defined"
    return text[: at.start()] + lines + text[at.start() :]
