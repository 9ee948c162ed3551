"""The pipeline `rocm`, one literal list of fragments.

Its text is complete: target, host program, attributes and the emission of LLVM IR are elements of
it.
"""

from __future__ import annotations

from fly_target.target import Target

from fly_opt.lowering.interface import EMIT_LLVM


def rocm(target: Target, debug_info: bool) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → one LLVM module for an AMD GPU."""
    chip = target.cpu
    return (
        # Said once: the passes below, opt, llc and the linker read the target out of the module.
        f"fly-set-target{{chip={target.name}}}",
        # The host function becomes data while its arguments are still tensors with names.
        "fly-extract-host-program",
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
