"""LLVM's machine pipeline for NVIDIA's GPUs: triples and named points.

Its result is PTX text. There is no register allocation: PTX has any number of virtual registers,
and ptxas allocates the chip's.
"""

from __future__ import annotations

from fly_target.nvidia.triple import PTX_FEATURE, TRIPLE

from fly_llc.codegen.points import CodeGeneration, Named, Point

NVPTX = CodeGeneration(
    triple=TRIPLE,
    triples=r"nvptx64-[^-]*-cuda(?:-|$)",
    processors=r"sm_\d+[af]?",
    first_pass="nvptx-isel",
    # The PTX version, which the text begins with.
    header_features=(r"ptx\d+",),
    default_features=(PTX_FEATURE,),
    product="asm",
    kinds=("ptx",),
    finish="fly_llc.backends.nvidia.llvm_section:with_module",
    points=(
        Named(
            "post-isel",
            Point("after", "finalize-isel"),
            Point("after", "finalize-isel"),
            "SSA form, virtual registers",
        ),
        Named(
            "pre-sched",
            Point("before", "machine-scheduler"),
            None,
            "no SSA; virtual registers, copies coalesced",
        ),
        Named(
            "post-frame",
            Point("after", "nvptx-prolog-epilog"),
            Point("after", "nvptx-prolog-epilog"),
            "virtual registers; the stack is laid out",
        ),
        Named(
            "pre-emit",
            Point("before", "fentry-insert"),
            Point("before", "fentry-insert"),
            "final: blocks in their last order",
        ),
    ),
)
