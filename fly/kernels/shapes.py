"""Extents that kernels are compiled for: those that are a model's, and stay the same from call to
call, as columns and heads. Rows, tokens and the lengths of sequences stay arguments.

    @fly.jit(specialize=for_model("N"))

On other targets than these, kernels have general code. On NVIDIA their times were measured with it.
On RDNA, products have nearly all registers: with constants LLVM computes more of them ahead, and
spills registers.
"""

from __future__ import annotations

from functools import partial

import fly

TARGETS = ("gfx942", "gfx950")

for_model = partial(fly.specialized, targets=TARGETS)
