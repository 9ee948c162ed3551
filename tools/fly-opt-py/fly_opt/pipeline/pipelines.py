"""The pipelines, each one literal list of fragments, and which of them a call runs.

A pipeline's text is complete: target, launch plan, attributes and the emission of LLVM IR are
elements of it. What `--print-pipeline` prints, given back with `--passes`, gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly_opt import targets
from fly_opt.pipeline.options import EMISSIONS, Options
from fly_opt.pipeline.registry import EMIT_LLVM
from fly_opt.pipeline.suggestions import did_you_mean
from fly_opt.pipeline.text import ROOT, Nest, Step, parse
from fly_opt.targets import Target


def rocm(target: Target, debug_info: bool) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → one LLVM module for an AMD GPU."""
    chip = target.chip
    return (
        # Said once: the passes below, opt, llc and the linker read the target out of the module.
        f"fly-set-target{{chip={chip}}}",
        # The host function becomes data while its arguments are still tensors with names.
        "fly-extract-plan",
        # Tensors at the kernels' borders become a pointer and a struct of the dynamic leaves.
        "fly-rewrite-func-signature",
        # One normal form for what the types alone say, so that the lowering matches one form.
        "fly-canonicalize",
        # A trace is for every target; from here on the module is for one.
        "fly-fold-wave-size",
        # Layout algebra becomes integer arithmetic; the same address twice becomes one value.
        "fly-layout-lowering",
        # A swizzle of an offset whose bits are known becomes the plain number.
        "fly-int-swizzle-simplify",
        "canonicalize",
        "cse",
        # Atoms take registers as vectors, and the memory they were in becomes values.
        "fly-convert-atom-call-to-ssa-form",
        "fly-promote-regmem-to-vectorssa{pieces=true}",
        "fly-check-shuffles",
        # Pointers and views become LLVM pointers, atoms the target's instructions.
        "convert-fly-to-rocdl",
        # Which function is an intrinsic, which the library's, which is computed in a wider type.
        "fly-select-math",
        # What is left of math goes to the device library. Before convert-gpu-to-rocdl, which would
        # take tanh to an intrinsic that AMDGPU's code generation can't expand.
        f"convert-math-to-rocdl{{chipset={chip}}}",
        # Sizes of grids and blocks are read from the implicit arguments; upstream calls functions
        # of another device library for them.
        "gpu.module(fly-lower-launch-sizes)",
        "gpu.module(convert-scf-to-cf)",
        # index is 64 bits wide, as a tensor may span more than 2^31 bytes.
        f"gpu.module(convert-gpu-to-rocdl{{chipset={chip} index-bitwidth=64 runtime=HIP"
        " use-bare-ptr-memref-call-conv=true})",
        # Slices of vectors, which registers have become, are shuffles to LLVM, and begin as poison.
        "convert-vector-to-llvm",
        "convert-ub-to-llvm",
        # LLVM learns the size of a cluster of workgroups where a kernel has one.
        "gpu.module(fly-rocdl-cluster-attr)",
        # Branches, and what arrived in gpu.module without belonging to a gpu.func.
        "convert-cf-to-llvm{index-bitwidth=64}",
        "convert-arith-to-llvm{index-bitwidth=64}",
        "reconcile-unrealized-casts",
        "canonicalize",
        "cse",
        # A bare `opt` and a bare `llc` do the right thing with these on the functions.
        "fly-kernel-attributes",
        *(("ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}",) * debug_info),
        EMIT_LLVM,
    )


PIPELINES: dict[str, Callable[[Target, bool], tuple[str, ...]]] = {"rocm": rocm}


def select(options: Options) -> Nest:
    """What a call runs. UsageError where its options contradict each other.

    `passes` is the whole pipeline and says its own target; else `pipeline`, else the target's own.
    `emit` adds or takes away the pipeline's last element, `fly-emit-llvm`.
    """
    if options.emit not in (None, *EMISSIONS):
        raise UsageError(f"unknown emission {quoted(options.emit)}", hint="mlir or llvm")
    if options.passes is not None:
        for other in ("target", "pipeline"):
            if getattr(options, other) is not None:
                raise UsageError(
                    f"--passes with --{other}: a pipeline's text says everything itself",
                    hint="leave one of them out; --print-pipeline shows the text of the other",
                )
        return _emitting(parse(options.passes), options.emit)
    if options.target is None:
        if options.pipeline is not None:
            _named(options.pipeline)
            raise UsageError(
                f"--pipeline {options.pipeline} needs a target",
                hint=f"--target {'|'.join(targets.TARGETS)}",
            )
        return _emitting(Nest(ROOT, ()), options.emit)
    target = targets.find(options.target)
    fragments = _named(options.pipeline or target.pipeline)(target, options.debug_info)
    return _emitting(parse(",".join(fragments)), options.emit)


def _named(name: str) -> Callable[[Target, bool], tuple[str, ...]]:
    if name not in PIPELINES:
        raise UsageError(
            f"unknown pipeline {quoted(name)}",
            hint=did_you_mean(name, PIPELINES, "the pipelines are"),
        )
    return PIPELINES[name]


def _emitting(pipeline: Nest, emit: str | None) -> Nest:
    """The pipeline with its end as `emit` wants it; None leaves it."""
    marker = Step(EMIT_LLVM)
    ends = pipeline.elements[-1:] == (marker,)
    if emit == "llvm" and not ends:
        return Nest(pipeline.anchor, (*pipeline.elements, marker))
    if emit == "mlir" and ends:
        return Nest(pipeline.anchor, pipeline.elements[:-1])
    return pipeline
