"""Scalar instructions that are new on gfx11 and gfx12: 64-bit arithmetic, floats, narrow loads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.memory import scalar_memory
from oracle.program.text import Instruction
from oracle.scalar.scalar import put
from oracle.state.waves import Waves
from oracle.vector.rdna_valu import maximum, minimum
from oracle.vector.table import VALU
from oracle.vector.valu import CONDITIONS as FUNCTIONS
from oracle.vector.valu import FLOAT_CONDITIONS

u16, u32, u64, i32 = np.uint16, np.uint32, np.uint64, np.int32
f16, f32 = np.float16, np.float32

# mnemonic → (bits of a source, function)
INTEGER: dict[str, tuple[int, Callable]] = {
    "s_add_nc_u64": (64, lambda a, b: a + b),
    "s_sub_nc_u64": (64, lambda a, b: a - b),
    "s_mul_u64": (64, lambda a, b: a * b),
    "s_pack_hl_b32_b16": (32, lambda a, b: a >> u32(16) | b << u32(16)),
}
ARITHMETIC: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min_num": lambda a, b: floats.minimum(a, b, False),
    "max_num": lambda a, b: floats.maximum(a, b, False),
    "minimum": minimum,
    "maximum": maximum,
    "ceil": lambda a: floats.quiet(np.ceil(a)),
    "floor": lambda a: floats.quiet(np.floor(a)),
    "trunc": lambda a: floats.quiet(np.trunc(a)),
    "rndne": lambda a: floats.quiet(np.rint(a)),
    "fmaak": floats.fma,
    "fmamk": floats.fma,
}
ONE_SOURCE = ("ceil", "floor", "trunc", "rndne")
CONVERSIONS: dict[str, Callable] = {
    "s_cvt_f32_i32": lambda a: a.view(i32).astype(f32).view(u32),
    "s_cvt_f32_u32": lambda a: a.astype(f32).view(u32),
    "s_cvt_i32_f32": lambda a: floats.to_integer(a.view(f32), i32).view(u32),
    "s_cvt_u32_f32": lambda a: floats.to_integer(a.view(f32), u32),
    "s_cvt_f16_f32": lambda a: a.view(f32).astype(f16).view(u16).astype(u32),
    "s_cvt_f32_f16": lambda a: half(a).astype(f32).view(u32),
    "s_cvt_hi_f32_f16": lambda a: half(a >> u32(16)).astype(f32).view(u32),
}
# The conditions of valu, for scalar compares of floats.
CONDITIONS: dict[str, Callable] = {
    name: FUNCTIONS[name] for name in FLOAT_CONDITIONS if name not in ("f", "tru")
}
# gfx12's vector instructions on one scalar, which ignore EXEC.
TRANSCENDENTAL = tuple(f"v_s_{name}_f32" for name in ("exp", "log", "rcp", "rsq", "sqrt"))
LOADS = {"s_load_u8": (1, False), "s_load_i8": (1, True)}
LOADS |= {"s_load_u16": (2, False), "s_load_i16": (2, True)}
LOADS |= {name.replace("s_", "s_buffer_"): element for name, element in LOADS.items()}


def half(x: np.ndarray) -> np.ndarray:
    return x.astype(u16).view(f16)


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    name, operands = ins.mnemonic, ins.operands
    if name in TRANSCENDENTAL:
        plain = VALU[name.replace("v_s_", "v_")].function

        def function(x: np.ndarray) -> np.ndarray:
            if not ins.modifiers.get("clamp"):
                return plain(x)
            result = plain(x)
            return np.where(result > 0, np.minimum(result, 1), 0).astype(result.dtype)

        return lambda w: _put_float(w, ins, function(_modified(w, operands[1])))
    if not name.startswith("s_"):
        return None
    if name in INTEGER:
        bits, function = INTEGER[name]
        return lambda w: put(
            w, ins, function(*(w.read_scalar(o, bits) for o in operands[1:])), None
        )
    if name in CONVERSIONS:
        convert = CONVERSIONS[name]
        return lambda w: put(w, ins, convert(w.read_scalar(operands[1], 32)), None)
    if name in LOADS:
        return lambda w: _narrow_load(w, ins, *LOADS[name])
    operation, _, kind = name[2:].rpartition("_")
    if kind not in ("f16", "f32"):
        return None
    if operation.startswith("cmp_") and operation[4:] in CONDITIONS:
        condition = CONDITIONS[operation[4:]]
        return lambda w: w.put_scc(
            np.broadcast_to(condition(*(_float(w, o, kind) for o in operands)), w.n)
        )
    if operation == "cvt_pk_rtz_f16":
        return lambda w: _pack(w, ins)
    if operation == "fmac":
        return lambda w: _put_float(
            w, ins, floats.fma(*(_float(w, operands[k], kind) for k in (1, 2, 0)))
        )
    if operation in ARITHMETIC:
        function = ARITHMETIC[operation]
        return lambda w: _put_float(w, ins, function(*(_float(w, o, kind) for o in operands[1:])))
    return None


def _float(w: Waves, operand, kind: str) -> np.ndarray:
    raw = np.broadcast_to(w.read_scalar(operand, int(kind[1:])), w.n)
    return np.ascontiguousarray(raw).view(f16 if kind == "f16" else f32)


def _modified(w: Waves, operand) -> np.ndarray:
    """Reads a source of the long encoding, which has signs."""
    return np.ascontiguousarray(w.read_as(operand, "f32")[:, 0])


def _put_float(w: Waves, ins: Instruction, value: np.ndarray) -> None:
    put(w, ins, value.view(u16 if value.dtype == f16 else u32).astype(u32), None)


def _pack(w: Waves, ins: Instruction) -> None:
    low, high = (
        floats.toward_zero(_float(w, o, "f32").astype(np.float64), f16).view(u16).astype(u32)
        for o in ins.operands[1:]
    )
    put(w, ins, low | high << u32(16), None)


def _narrow_load(w: Waves, ins: Instruction, size: int, extend: bool) -> None:
    """S_LOAD_{U,I}{8,16} and S_BUFFER_LOAD_…: the address only needs the element's alignment; a
    read past a buffer's end gives 0."""
    target, base, *_ = ins.operands
    offset = scalar_memory.offset_of(w, ins, size)
    inside = np.ones((w.n, 1), bool)
    if ins.mnemonic.startswith("s_buffer"):
        start, end = scalar_memory.resource(w, base)
        inside[:, 0] = offset + u64(size) <= end
    else:
        start = w.read_scalar(base, 64)
    address = np.broadcast_to(start + offset, w.n)[:, None]
    value = np.where(inside, w.chunk.memory.load(address, inside, size)[0], u32(0))[:, 0]
    if extend:
        top = u32(1 << (8 * size - 1))
        value = (value ^ top) - top
    w.put_s32(target.index, value)
