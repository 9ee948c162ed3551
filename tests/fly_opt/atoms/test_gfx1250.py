"""gfx1250, which nothing here runs: its matrix instructions go through the whole chain."""

from __future__ import annotations

import re

import pytest
from atom_kernels import matrix_kernel, module
from fly_common.errors import InputError
from fly_dialect.atoms.amd.wmma import (
    GFX1250_FORMS,
    GFX1250_SCALED_FORMS,
    Gfx1250Wmma,
    Gfx1250WmmaScale,
)

import fly

OPS = [
    *(Gfx1250Wmma(f.m, f.n, f.k, f.a, f.b, f.acc) for f in GFX1250_FORMS if f.a != "i4"),
    *(Gfx1250WmmaScale(f.m, f.n, f.k, f.a, f.b, f.acc) for f in GFX1250_SCALED_FORMS),
]


def test_every_form_is_an_instruction() -> None:
    """Among them those whose intrinsics LLVM 24 writes without modifiers of A and B."""
    chain = (
        fly.chain("gfx1250").replace("llc", fly.chains.builtin.llc({"emit": "asm"})).without("link")
    )
    kernels = (matrix_kernel(f"k{number}", op) for number, op in enumerate(OPS))
    text = fly.run(chain, module(*kernels)).decode()
    bodies = re.findall(r"^k\d+:(.*?)s_endpgm", text, re.MULTILINE | re.DOTALL)
    assert len(bodies) == len(OPS)
    for op, body in zip(OPS, bodies, strict=True):
        (found,) = re.findall(r"v_wmma_\w+", body)
        result = {"f32": "f32", "i32": "i32", "f16": "f16", "bf16": "bf16"}[op.acc]
        kind = "scale_" if isinstance(op, Gfx1250WmmaScale) else ""
        assert found.startswith(f"v_wmma_{kind}{result}_{op.shape}_"), (op, found)


def test_integers_of_four_bits_have_none() -> None:
    """FlyDSL has the form; LLVM 22's code generation has no instruction for it."""
    op = Gfx1250Wmma(16, 16, 32, "i4", "i4", "i32")
    with pytest.raises(InputError, match="Cannot select") as refused:
        fly.run(fly.chain("gfx1250"), module(matrix_kernel("k", op)))
    assert "gfx1250 has no instruction for it" in (refused.value.hint or "")
