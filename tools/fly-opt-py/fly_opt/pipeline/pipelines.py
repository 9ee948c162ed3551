"""Selects the pipeline of a call. Pipelines belong to the backends; each is one literal list.

A pipeline's text is complete: it includes the target, the host program, the attributes and the
emission of LLVM IR. The output of `--print-pipeline`, passed to `--passes`, gives the same bytes.
"""

from __future__ import annotations

import re

from fly_backend import choice
from fly_backend import registry as backends
from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_plugin import active
from fly_target import registry

from fly_opt.lowering import interface
from fly_opt.lowering.interface import EMIT_HOST, EMIT_HOST_LLVM, EMIT_LLVM, PRINTS, SLOT, Pipeline
from fly_opt.pipeline.options import EMISSIONS, Options
from fly_opt.pipeline.text import ROOT, Nest, Step, parse
from fly_opt.reporting.suggestions import did_you_mean

EXTRACTION = "fly-extract-host-program"
BINARY = "gpu-module-to-binary"
_CHIP = re.compile(r"\bchip=([\w:+-]+)")


def pipelines() -> dict[str, Pipeline]:
    """Maps the name of each pipeline of the backends in use to the function that returns its
    fragments. The pipeline with the name of a backend is the one of its targets."""
    every = (lowering.pipelines for lowering in interface.loaded())
    return {name: made for table in every for name, made in table.items()}


def _find(name: str) -> Pipeline | None:
    """Returns the pipeline `name`. A backend's own has the backend's name."""
    if name in (one.name for one in backends.loaded()):
        return interface.of_backend(name).pipelines.get(name)
    return pipelines().get(name)


def select(options: Options) -> Nest:
    """Returns the pipeline of a call. UsageError if its options contradict each other.

    `passes` is the whole pipeline and says its own target; else `pipeline`, else the target's own.
    `emit` adds or takes away the pipeline's last element, `fly-emit-llvm`; "host" and "host-llvm"
    end it behind the extraction of the host program.
    """
    if options.emit not in (None, *EMISSIONS):
        raise UsageError(
            f"unknown emission {quoted(options.emit)}", hint="mlir, llvm, host or host-llvm"
        )
    if options.passes is not None:
        for other in ("target", "pipeline", "backend"):
            if getattr(options, other) is not None:
                raise UsageError(
                    f"--passes can't be combined with --{other}: the text of a pipeline is"
                    " complete",
                    hint="omit one of them; --print-pipeline shows the text of the other",
                )
        return _emitting(_with_own_end(parse(options.passes)), options.emit)
    if options.target is None and options.backend is None:
        if options.pipeline is not None:
            _named(options.pipeline)
            raise UsageError(
                f"--pipeline {options.pipeline} needs a target",
                hint=f"--target {'|'.join(registry.names())}",
            )
        return _emitting(Nest(ROOT, ()), options.emit)
    target = choice.row_of(_chosen(options))
    fragments = _named(options.pipeline or target.backend)(target, options.debug_info)
    if not options.asserts:
        off = f"{PRINTS}{{asserts=false}}"
        fragments = tuple(off if one == PRINTS else one for one in fragments)
    if active():
        from fly_opt.pipeline import plugins

        chosen = plugins.spliced(fragments, options.pipeline or target.backend)
    else:
        chosen = parse(",".join(one for one in fragments if not one.startswith(SLOT)))
    return _emitting(chosen, options.emit)


def _with_own_end(pipeline: Nest) -> Nest:
    """A pipeline that ends in MLIR's code generation, with LLVM IR instead of its end. UsageError
    if it does not say for which target."""
    if not pipeline.elements or not isinstance(last := pipeline.elements[-1], Step):
        return pipeline
    if last.name != BINARY:
        return pipeline
    attached = [step for step in pipeline.steps() if step.name.endswith("-attach-target")]
    chips = [match[1] for step in attached if (match := _CHIP.search(step.options))]
    if len(chips) != 1:
        raise UsageError(
            f"a pipeline that ends in {BINARY} needs the target that it is for",
            hint="…-attach-target{chip=…}, once",
        )
    target = registry.find(chips[0])
    return interface.of_backend(target.backend).with_own_end(pipeline, target)


def _chosen(options: Options) -> choice.Choice:
    """Returns the backend and the target of the options alone, without the environment."""
    target = options.target
    backend = options.backend or registry.find(target or "").backend
    return choice.choose(target or backends.find(backend).default_target, backend)


def _named(name: str) -> Pipeline:
    found = _find(name)
    if found is None:
        hint = did_you_mean(name, pipelines(), "the pipelines are")
        raise UsageError(f"unknown pipeline {quoted(name)}", hint=hint)
    return found


def _emitting(pipeline: Nest, emit: str | None) -> Nest:
    """The pipeline with its end as `emit` wants it; None leaves it."""
    elements = pipeline.elements
    if emit is None:
        return pipeline
    if elements and elements[-1] in [Step(end) for end in (EMIT_LLVM, EMIT_HOST, EMIT_HOST_LLVM)]:
        elements = elements[:-1]
    if emit == "llvm":
        elements = (*elements, Step(EMIT_LLVM))
    elif emit in ("host", "host-llvm"):
        extracts = [at for at, one in enumerate(elements) if one == Step(EXTRACTION)]
        marker = Step(EMIT_HOST if emit == "host" else EMIT_HOST_LLVM)
        elements = (*(elements[: extracts[0] + 1] if extracts else elements), marker)
    return Nest(pipeline.anchor, elements)
