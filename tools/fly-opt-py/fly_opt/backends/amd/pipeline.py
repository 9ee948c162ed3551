"""The pipeline `rocm`, a literal list of fragments in two parts.

`pre_binary` lowers kernels and host function to the LLVM dialect; `binary_preparation` adds what
code generation needs, and emits LLVM IR. The pipeline's text is complete: it includes the target
and the host program. Other backends build theirs from these parts. At the slots run the passes of
active plugins (`fly_plugin.slots`).
"""

from __future__ import annotations

from fly_target.target import Target

from fly_opt.lowering.interface import EMIT_LLVM, PRINTS, SLOT, set_target


def rocm(target: Target, debug_info: bool) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → one LLVM module for an AMD GPU."""
    return (*pre_binary(target), *binary_preparation(debug_info))


def pre_binary(target: Target) -> tuple[str, ...]:
    """Kernels and host function in the fly dialect → the LLVM dialect."""
    chip = target.cpu
    return (
        # Set once: the passes below, opt, llc and the linker read the target from the module.
        set_target(target),
        f"{SLOT}opt.begin",
        # The host function becomes data while its arguments are still named tensors.
        f"{SLOT}host.begin",
        "fly-extract-host-program",
        f"{SLOT}host.end",
        # Tensors at the kernels' boundaries become a pointer and a struct of the dynamic leaves.
        "fly-rewrite-func-signature",
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
        "convert-fly-to-rocdl",
        # Selects an intrinsic, a library function or a wider type for each math function.
        "fly-select-math",
        # The remaining math ops call the device library. Before convert-gpu-to-rocdl, which would
        # lower tanh to an intrinsic that AMDGPU's code generation can't expand.
        f"convert-math-to-rocdl{{chipset={chip}}}",
        f"{SLOT}opt.before-gpu-lowering",
        # Moves among lanes by a known pattern need no access through the LDS unit.
        "fly-rocdl-lane-moves",
        # Grid and block sizes are read from the implicit arguments; upstream calls functions of
        # another device library for them.
        "gpu.module(fly-lower-launch-sizes)",
        # index is 64 bits wide, because a tensor may span more than 2^31 bytes.
        f"gpu.module(convert-gpu-to-rocdl{{chipset={chip} index-bitwidth=64 runtime=HIP"
        " use-bare-ptr-memref-call-conv=true})",
        # Slices of the vectors that registers have become are shuffles in LLVM and start as poison.
        "convert-vector-to-llvm",
        "convert-ub-to-llvm",
        # Passes the workgroup cluster size of a kernel on to LLVM.
        "gpu.module(fly-rocdl-cluster-attr)",
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
    """The LLVM dialect → one LLVM module for an AMD GPU."""
    return (
        # With these on the functions, plain `opt` and `llc` need no flags.
        "fly-kernel-attributes",
        *(("ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}",) * debug_info),
        f"{SLOT}opt.end",
        EMIT_LLVM,
    )
