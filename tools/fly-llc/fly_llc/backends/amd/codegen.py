"""LLVM's machine pipeline for AMD's GPUs: triples and named points.

Promises are made for three groups of kernels: "gfx9" and "rdna", families of processors, tested
with all examples on five of them, and "pipelined": gfx9 kernels that overlap loads from memory with
loads from LDS, such as a double-buffered matrix product.
"""

from __future__ import annotations

from fly_target.amd.triple import TRIPLE

from fly_llc.backends.amd.defects import DEFECTS, IR_DEFECTS
from fly_llc.codegen.points import CodeGeneration, IRPass, Named, Point

AMDGPU = CodeGeneration(
    triple=TRIPLE,
    triples=r"amdgcn-[^-]*-amdhsa(?:-|$)",
    processors=r"gfx[\w-]+",
    first_pass="amdgpu-isel",
    # AMDGPU guide, "Target ID".
    header_features=("xnack", "sramecc"),
    filters=("nop-sled", "schedule", "peephole", "tighten-waits", "pressure"),
    comparison="fly_llc.backends.amd.comparison:report",
    defects=DEFECTS,
    ir_defects=IR_DEFECTS,
    ir_passes=(
        IRPass("pair-f32", "fly_llc.backends.amd.pairing:paired"),
        IRPass("first-wave", "fly_llc.backends.amd.wave_tests:scalar"),
    ),
    points=(
        Named(
            "post-isel",
            Point("after", "finalize-isel"),
            Point("after", "finalize-isel"),
            "SSA form, virtual registers",
            (("pipelined", "other"),),
        ),
        Named(
            "pre-ra",
            Point("before", "greedy"),
            Point("before", "regallocfast"),
            "scheduled; no SSA; virtual registers, their live ranges known",
            (("gfx9", "registers"), ("rdna", "other"), ("pipelined", "other")),
        ),
        Named(
            "post-ra",
            Point("after", "virtregrewriter,2"),
            Point("after", "regallocfast,2"),
            "physical registers; the stack is not laid out",
            (("pipelined", "other"),),
        ),
        Named(
            "post-frame",
            Point("after", "prologepilog"),
            Point("after", "prologepilog"),
            "physical registers; the stack is laid out",
            (("pipelined", "other"),),
        ),
        Named(
            "pre-sched2",
            Point("before", "postmisched"),
            None,
            "pseudo instructions are expanded; before the last scheduling",
            (("pipelined", "other"),),
        ),
        Named(
            "pre-waits",
            Point("before", "si-insert-waitcnts"),
            Point("before", "si-insert-waitcnts"),
            "in their last order; no waits yet",
        ),
        Named(
            "pre-emit",
            Point("before", "branch-relaxation"),
            Point("before", "branch-relaxation"),
            "final, but for branches that turn out too long",
        ),
    ),
)
