"""FlyDSL's pipeline, as its text says it, with this project's end.

    builtin.module(…,rocdl-attach-target{chip=gfx942 …},…,gpu-module-to-binary{format=fatbin})

gpu-module-to-binary generates code inside of MLIR. Here LLVM IR comes out instead, for the next
stages, and the host function becomes the host program: the passes before it run as they are
written, with the differences below.
"""

from __future__ import annotations

from fly_target.target import Target

from fly_opt.lowering.interface import EMIT_LLVM, PRINTS, set_target
from fly_opt.pipeline.text import Nest, Step, parse

# FlyDSL's passes that have no counterpart: what they do is part of others here.
_PART_OF_OTHERS = (
    "fly-rocdl-expand-ops",  # of convert-fly-to-rocdl
    "convert-rocdl-fastmath-ops",  # of fly-select-math
    "rocdl-attach-target",  # of fly-set-target
    "gpu-to-llvm",  # of fly-extract-host-program
    "gpu-module-to-binary",  # of the stages that follow
)


def with_own_end(pipeline: Nest, target: Target) -> Nest:
    """The pipeline that emits LLVM IR of what FlyDSL's pipeline would compile."""
    begin = ",".join((set_target(target), "fly-extract-host-program"))
    end = ",".join(("fly-kernel-attributes", EMIT_LLVM))
    elements = (*parse(begin).elements, *_kept(pipeline), *parse(end).elements)
    return Nest(pipeline.anchor, elements)


def _kept(nest: Nest) -> tuple[Step | Nest, ...]:
    found: list[Step | Nest] = []
    for element in nest.elements:
        if isinstance(element, Nest):
            found.append(Nest(element.anchor, _kept(element)))
        elif element.name not in _PART_OF_OTHERS:
            if element.name == "fly-layout-lowering":
                found.append(Step(PRINTS))  # tuples are shown while they are such
            found.append(element)
            if element.name == "convert-fly-to-rocdl":
                found.append(Step("fly-select-math"))
    return tuple(found)
