"""The pipeline `cuda`, a literal list of fragments in two parts.

`pre_binary` lowers kernels and host function to the LLVM dialect; `binary_preparation` adds what
code generation needs, and emits LLVM IR. The pipeline's text is complete: it includes the target
and the host program. At the slots run the passes of active plugins (`fly_plugin.slots`).
"""

from __future__ import annotations

from fly_target.target import Target

from fly_opt.lowering.interface import EMIT_LLVM, PRINTS, SLOT, set_target

# Line tables as directives: with any other kind, ptxas would compile for a debugger.
LINES = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"


def cuda(target: Target, debug_info: bool) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → one LLVM module for an NVIDIA GPU."""
    return (*pre_binary(target), *binary_preparation(debug_info))


def pre_binary(target: Target) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → the LLVM dialect."""
    return (
        # Set once: the passes below, opt, llc and the linker read the target from the module.
        set_target(target),
        f"{SLOT}opt.begin",
        # Instructions of another vendor are rejected while they are still as the trace has them.
        "fly-check-dialects",
        # The host function becomes data while its arguments are still named tensors.
        f"{SLOT}host.begin",
        "fly-extract-host-program",
        f"{SLOT}host.end",
        # Tensors at the kernels' boundaries become a pointer and a struct of the dynamic leaves.
        "fly-rewrite-func-signature",
        # Parameters that are packed structs would be loaded byte by byte.
        "fly-flatten-arguments",
        # Normalises values that are static by type, so that the lowering matches one form.
        "fly-canonicalize",
        # A trace is target-independent; from here on the module is for one target.
        "fly-fold-wave-size",
        # Asserts and printed lines become records for the host.
        PRINTS,
        f"{SLOT}opt.before-layout-lowering",
        # Layout algebra becomes integer arithmetic; the same address twice becomes one value.
        "fly-layout-lowering",
        # Swizzles of offsets with known bits fold to plain numbers.
        "fly-int-swizzle-simplify",
        "canonicalize",
        "cse",
        f"{SLOT}opt.after-layout-lowering",
        # Atoms take registers as vectors, and register memory becomes values.
        "fly-convert-atom-call-to-ssa-form",
        "fly-promote-regmem-to-vectorssa{pieces=true}",
        "fly-check-shuffles",
        f"{SLOT}opt.before-atoms",
        # Pointers and views become LLVM pointers; atoms become the target's instructions.
        "convert-fly-to-nvvm",
        # Scopes have other names here, and LLVM forgets the orders of atomic updates.
        "fly-nvvm-atomics",
        # Variables of more than 48 KB of shared memory become part of what launches ask for.
        "fly-dynamic-shared",
        # What convert-gpu-to-nvvm lacks: reductions of a warp, its number, shuffles of 16 bits.
        "fly-lower-subgroups",
        # Selects an intrinsic, a formula, a library or a wider type for each math function.
        "fly-select-math",
        # The remaining math ops call libdevice.
        "convert-math-to-nvvm",
        f"{SLOT}opt.before-gpu-lowering",
        # index is 64 bits wide, because a tensor may span more than 2^31 bytes.
        "gpu.module(convert-gpu-to-nvvm{index-bitwidth=64 use-bare-ptr-memref-call-conv=true})",
        # Slices of the vectors that registers have become are shuffles in LLVM and start as poison.
        "convert-vector-to-llvm",
        "convert-ub-to-llvm",
        # Inline assembly of the ops for which LLVM has no intrinsic.
        "convert-nvvm-to-llvm",
        # Behind the passes that rewrite patterns: MLIR's driver of patterns merges equal blocks,
        # of a loop and of what is before it, too. That gives loops several entries, and LLVM 22
        # compiles some of those for AMDGPU so that they do not end.
        "gpu.module(convert-scf-to-cf)",
        # Converts branches, and ops in gpu.module that are not in a gpu.func.
        "convert-cf-to-llvm{index-bitwidth=64}",
        "convert-arith-to-llvm{index-bitwidth=64}",
        "reconcile-unrealized-casts",
        "canonicalize",
        "cse",
    )


def binary_preparation(debug_info: bool) -> tuple[str, ...]:
    """The LLVM dialect → one LLVM module for an NVIDIA GPU."""
    return (
        # With these on the functions, plain `opt` and `llc` need no flags.
        "fly-nvvm-kernel-attributes",
        *((LINES,) * debug_info),
        f"{SLOT}opt.end",
        EMIT_LLVM,
    )
