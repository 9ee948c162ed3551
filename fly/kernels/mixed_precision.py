"""Arithmetic with f16 and f32 in one instruction, which AMD's GPUs have: a product and a sum of
f32, of operands of f16 or with a result of f16 (v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16).

LLVM selects it for single elements. It makes vectors of two of them where it can, and then converts
all operands and results by instructions of their own.

And what keeps LLVM from having more numbers in registers at a time than a kernel needs, on AMD:
`afresh`, `later`, `anew`, `anew_in_lanes` and `in_order`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_target.registry import find
from fly_trace.core.target import chip

import fly.expr as fx

# The matrix instructions of chips that convert two numbers to f16 at once, by v_cvt_pk_f16_f32.
CONVERTS_TWO = ("CDNA4",)


def rounds_elements(stored: Any, computed: Any, operands: list[Any]) -> bool:
    """Whether a last operation takes fewer instructions of single elements than of vectors: on the
    target, for a type that results are stored as and one that they are computed in."""
    if (stored, computed) != (fx.Float16, fx.Float32):
        return False
    target = find(chip("rounding to f16"))
    return target.amd is not None and (fx.Float16 in operands or target.matrix not in CONVERTS_TWO)


def converts_elements(operands: list[Any]) -> bool:
    """Whether a product and a sum of f32 take fewer instructions for single elements than for
    vectors, on the target: if some operands are of f16, and are converted by the same one."""
    amd = find(chip("operands of f16")).amd is not None
    return amd and fx.Float16 in operands and {*operands} <= {fx.Float16, fx.Float32}


def one_by_one(function: Callable[..., Any], *vectors: Any, dtype: Any = fx.Float16) -> Any:
    """`function` of the elements of vectors, as f32, one by one, as f16 or f32: a vector. Those of
    f16 at odd places are rounded to the upper half of a register that has the number before."""
    held = fx.make_rmem_tensor(vectors[0].numel, dtype)
    elements = [[vector[i].to(fx.Float32) for vector in vectors] for i in range(vectors[0].numel)]
    numbers = [function(*one).to(dtype) for one in elements]
    for i, number in enumerate(numbers):
        held[i] = number if i % 2 else _apart(number)
    return held.load()


def afresh(vector: Any, after: Any) -> Any:
    """A vector of 16-bit floats whose elements LLVM converts to f32, on AMD, when those at the same
    places of another vector have been computed. Until then it takes half as many registers."""
    if vector.dtype.bits != 16 or vector.numel % 2 or find(chip("registers")).amd is None:
        return vector
    words = vector.bitcast(fx.Uint32)
    held = fx.make_rmem_tensor(words.numel, fx.Uint32)
    for i in range(words.numel):
        held[i] = _apart(words[i], after[2 * i + 1])
    return held.load().bitcast(vector.dtype).reshape(vector.shape)


def widened(vector: Any, dtype: Any) -> Any:
    """A vector of floats as f32 or f64. Those of bf16 on NVIDIA's GPUs are the halves of words, by
    one instruction each: for the upper half LLVM and ptxas take two."""
    is_split = vector.dtype is fx.BFloat16 and dtype is fx.Float32 and vector.numel % 2 == 0
    if not is_split or find(chip("converting bf16")).amd is not None:
        return vector.to(dtype)
    words = vector.bitcast(fx.Uint32)
    low, high = (words << 16).bitcast(fx.Float32), (words & 0xFFFF0000).bitcast(fx.Float32)
    count = words.numel
    places = [i // 2 + i % 2 * count for i in range(2 * count)]
    return low.shuffle(high, places).reshape(vector.shape)


def later(number: Any, after: Any) -> Any:
    """A number of 32 bits that LLVM takes, on AMD, for one that is known when another one has been
    computed: what is computed from it is not in registers before."""
    return number if find(chip("registers")).amd is None else _apart(number, after)


def anew(number: Any) -> Any:
    """A number from 0 on, of 32 bits and the same in all lanes, that LLVM takes for another one, on
    AMD: an address that is computed of it for a store is not one that a load had, and takes no
    registers from the load on."""
    if find(chip("registers")).amd is None:
        return number
    return fx.inline_asm("", "=s,0", number.to(fx.Uint32), results=fx.Uint32)


def anew_in_lanes(number: Any) -> Any:
    """`anew` for a number of 32 bits that differs from lane to lane."""
    return number if find(chip("registers")).amd is None else _apart(number)


def in_order() -> None:
    """Keeps LLVM, on AMD, from moving what follows before what precedes, such as loads, whose
    results take registers from then on."""
    if find(chip("registers")).amd is not None:
        fx.rocdl.sched_barrier(0)


def _apart(x: Any, *after: Any) -> Any:
    """A number that LLVM leaves out of vectors: the result of assembly of no instructions."""
    return fx.inline_asm("", "=v,0" + ",v" * len(after), x, *after, results=x.dtype)
