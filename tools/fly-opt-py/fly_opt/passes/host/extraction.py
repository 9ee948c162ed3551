"""The host function as a host program.

Integers come out of its arguments' extents, strides and scalars and arithmetic on them (`values`);
kernel launches, allocations, library calls, checks, loops and branches become steps.

FlyDSL's host functions are read too: their arguments have no names, and become arg0, arg1, …; the
stream they launch on is nobody's choice here, where a program's launches follow each other.
"""

from __future__ import annotations

from typing import Any

from fly_common.quoting import quoted
from fly_host.program import Buffer, Launch, Program, Tensor, every_step, made_by
from fly_host.validation import validate

from fly_opt.passes.base import refuse
from fly_opt.passes.host import control_flow, lifetimes
from fly_opt.passes.host.allocation import empty
from fly_opt.passes.host.checks import check
from fly_opt.passes.host.clusters import Clusters
from fly_opt.passes.host.compaction import compacted
from fly_opt.passes.host.launches import launch
from fly_opt.passes.host.library_calls import call
from fly_opt.passes.host.results import results
from fly_opt.passes.host.values import Values
from fly_opt.passes.host.walk import Handler, Walk
from fly_opt.passes.target.set_target import target_of

# What becomes of an operation that does more than compute.
HANDLERS: dict[str, Handler] = {
    "gpu.launch_func": launch,
    "fly.empty": empty,
    "fly.call": call,
    "fly.check": check,
    "scf.for": control_flow.for_,
    "scf.while": control_flow.while_,
    "scf.if": control_flow.if_,
}


def entry(module: Any) -> Any:
    """The host function of a module: the one `fly.entry` names, else the only one; None if there
    is none. InputError if there are several and nothing says which."""
    functions = [
        child.operation
        for child in module.regions[0].blocks[0]
        if child.operation.name == "func.func"
    ]
    names = [function.attributes["sym_name"].value for function in functions]
    if not functions and "fly.host_program" in module.attributes:
        return None  # it was extracted before
    if "fly.entry" in module.attributes:
        wanted = module.attributes["fly.entry"].value
        if wanted not in names:
            raise refuse(
                module, f"fly.entry names {quoted(wanted)}, and the module has no such function"
            )
        return functions[names.index(wanted)]
    if len(functions) > 1:
        raise refuse(
            functions[1],
            f"the module has {len(functions)} host functions: {', '.join(names)}",
            'the module\'s attribute fly.entry = "name" says which one launches the kernels',
        )
    return functions[0] if functions else None


def extract(module: Any, host: Any) -> Program:
    """The program of a host function. InputError names the operation that a program can't hold."""
    target = target_of(module)
    if target is None:
        raise refuse(module, "the module has no target", "run fly-set-target{chip=…} before")
    walk = Walk(Values(target.wave_size), Clusters(module), HANDLERS)
    block = host.regions[0].blocks[0]
    attributes = host.attributes.get("arg_attrs")
    said = [attributes[index] if attributes else {} for index in range(len(block.arguments))]
    named = any("fly.name" in of for of in said)
    for argument, of in zip(block.arguments, said, strict=True):
        walk.values.argument(host, argument, of, named)
    parameters = tuple(walk.values.parameters)
    walk.dtypes.update((p.name, p.dtype) for p in parameters if isinstance(p, Tensor))
    steps, end = walk.block(block)
    walk.clusters.mark()
    result, names = results(walk, host, end)
    # What the results need is checked last; what can be checked before the first step is.
    steps = lifetimes.placed((*steps, *walk.steps), result)
    made = {name for step in every_step(steps) for name in made_by(step)}
    program = Program(
        entry=host.attributes["sym_name"].value,
        target=target.name,
        parameters=parameters,
        expressions=tuple(walk.values.graph.expressions),
        steps=steps,
        tensors=tuple(
            one for one in walk.tensors if not isinstance(one, Buffer) or one.name in made
        ),
        results=result,
        result_names=names,
    )
    if not program.steps and program.results is None:
        raise refuse(host, "the host function does nothing, and returns nothing")
    program = compacted(program)
    for one in program.launches:
        _check_block(host, program, one, target.max_workgroup)
    try:
        validate(program)
    except ValueError as error:  # what attributes say, such as fly.access
        raise refuse(host, str(error)) from None
    return program


def _check_block(host: Any, program: Program, launch: Launch, most: int) -> None:
    sizes = [program.expressions[index] for index in launch.block]
    if all(size[0] == "const" for size in sizes):
        x, y, z = (size[1] for size in sizes)
        if not 0 < x * y * z <= most or min(x, y, z) < 1:
            raise refuse(
                host,
                f"{launch.kernel} is launched with a block of {x}×{y}×{z}, the target has"
                f" room for 1 to {most} work items",
            )
