"""What a code object holds, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from typing import Any

from fly_host.evaluation import show
from fly_host.plan import Plan, Tensor
from fly_image.amd.code_object import CodeObject, Kernel

from fly_run.launch.parameters import describe


def text(code: CodeObject, name: str) -> str:
    """A page: the file, each kernel, the launch plan."""
    target = ":".join([code.target, *code.features])
    lines = [f"{name}: {target}, {len(code.data)} bytes, {_count(len(code.kernels), 'kernel')}"]
    for kernel in code.kernels.values():
        lines += ["", *_kernel(kernel)]
    lines += ["", *(_plan(code.plan) if code.plan else ["no launch plan: run it with --kernel"])]
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _kernel(kernel: Kernel) -> list[str]:
    block = f"at most {kernel.max_flat_workgroup_size} work items"
    if kernel.required_workgroup_size:
        block = "×".join(map(str, kernel.required_workgroup_size)) + " work items"
    spilled = kernel.sgpr_spill_count + kernel.vgpr_spill_count
    stack = ", and a dynamic stack" if kernel.uses_dynamic_stack else ""
    rows = [
        ("entry", f"0x{kernel.entry:x}"),
        ("block", f"{block} in waves of {kernel.wavefront_size}"),
        (
            "registers",
            f"{kernel.vgpr_count} VGPR ({kernel.agpr_count} of them AGPR),"
            f" {kernel.sgpr_count} SGPR, {spilled} spilled",
        ),
        (
            "memory",
            f"{kernel.group_segment_fixed_size} bytes LDS,"
            f" {kernel.private_segment_fixed_size} scratch a lane{stack},"
            f" {kernel.kernarg_size} of arguments",
        ),
    ]
    lines = [f"kernel {kernel.name}", *(f"  {label:<10} {value}" for label, value in rows)]
    lines += ["  offset  size  argument"] if kernel.args else []
    for a in kernel.args:
        told = " ".join(word for word in (a.value_kind, a.name, a.type_name) if word)
        lines.append(f"  {a.offset:6}  {a.size:4}  {told}")
    return lines


def _plan(plan: Plan) -> list[str]:
    lines = [f"plan {plan.entry}"]
    width = max((len(p.name) for p in plan.parameters), default=0)
    for parameter in plan.parameters:
        contiguous = isinstance(parameter, Tensor) and parameter.contiguous
        told = describe(parameter) + (", contiguous" if contiguous else "")
        lines.append(f"  {parameter.name:<{width}}  {told}")
    for launch in plan.launches:
        grid, block = (_triple(plan, sizes) for sizes in (launch.grid, launch.block))
        lds = show(plan, launch.lds)
        told = f"  launch {launch.kernel}  grid {grid}  block {block}"
        lines.append(told + (f"  dynamic LDS {lds}" if lds != "0" else ""))
    return lines


def _triple(plan: Plan, sizes: tuple[int, int, int]) -> str:
    shown = [show(plan, index) for index in sizes]
    while len(shown) > 1 and shown[-1] == "1":
        shown.pop()
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def as_json(code: CodeObject) -> str:
    """The same as JSON; the launch plan stands in it as it is in the file."""
    from dataclasses import asdict

    from fly_host import plan

    kernels: list[dict[str, Any]] = [asdict(kernel) for kernel in code.kernels.values()]
    content = {
        "target": code.target,
        "features": code.features,
        "size": len(code.data),
        "kernels": kernels,
        "plan": json.loads(plan.to_text(code.plan)) if code.plan else None,
    }
    return json.dumps(content, indent=2) + "\n"
