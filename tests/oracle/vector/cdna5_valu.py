"""Vector ALU instructions that only gfx1250 has: tables like rdna_valu.py's, functions of waves.

Sources: LLVM's definitions and what it selects the instructions for; for lookups and moves between
lanes the CDNA5 ISA manual's words as tests of public programs quote them. LLVM selects a sum with a
minimum or maximum for a sum that saturates. bf16 operations are rounded to nearest even, once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.program.text import Instruction
from oracle.state.waves import LANES, Waves
from oracle.vector import packed, vector
from oracle.vector.floating import fma, pack, turns
from oracle.vector.table import VALU, Op

u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
i16, i64, f32, f64 = np.int16, np.int64, np.float32, np.float64
Step = Callable[[Waves], None]

TABLE: dict[str, Op] = {}


def define(names: str, signature: str, function: Callable, **options) -> None:
    result, _, sources = signature.partition(":")
    for name in names.split():
        TABLE["v_" + name] = Op(result, tuple(sources.split()), function, **options)


define("add_nc_u64", "u64: u64 u64", lambda a, b: a + b)
define("sub_nc_u64", "u64: u64 u64", lambda a, b: a - b)
define("mul_u64", "u64: u64 u64", lambda a, b: a * b)
define("mad_u32", "u32: u32 u32 u32", lambda a, b, c: a * b + c)
define("mad_nc_u64_u32", "u64: u32 u32 u64", lambda a, b, c: a.astype(u64) * b.astype(u64) + c)
define("mad_nc_i64_i32", "i64: i32 i32 i64", lambda a, b, c: a.astype(i64) * b.astype(i64) + c)
for _kind in ("i64", "u64"):
    define(f"min_{_kind}", f"{_kind}: {_kind} {_kind}", np.minimum)
    define(f"max_{_kind}", f"{_kind}: {_kind} {_kind}", np.maximum)
define("fmamk_f64 fmaak_f64", "f64: f64 f64 f64", fma)


def saturated_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    info = np.iinfo(a.dtype)
    return np.clip(a.astype(i64) + b.astype(i64), info.min, info.max).astype(a.dtype)


def _sum_then(pick: Callable) -> Callable:
    return lambda a, b, c: pick(saturated_sum(a, b), c)


def _of_three(pick: Callable) -> Callable:
    return lambda a, b, c: pick(pick(a, b), c)


# Halves of packed instructions.
PAIRED: dict[str, tuple[str, Op]] = {}
for _letter in "iu":
    for _name, _pick in (("min", np.minimum), ("max", np.maximum)):
        _type = f"{_letter}32"
        define(f"add_{_name}_{_type}", f"{_type}: {_type} {_type} {_type}", _sum_then(_pick))
        _type = f"{_letter}16"
        for _long, _function in (
            (f"add_{_name}", _sum_then(_pick)),
            (f"{_name}3", _of_three(_pick)),
        ):
            _op = Op(_type, (_type,) * 3, _function)
            PAIRED[f"v_pk_{_long}_{_type}"] = _type, _op
for _name in ("min3", "max3"):
    PAIRED[f"v_pk_{_name}_num_f16"] = "f16", VALU[f"v_{_name}_f16"]

define("tanh_f16", "f16: f16", lambda x: np.tanh(x.astype(f64)).astype(np.float16))
define("tanh_f32", "f32: f32", lambda x: np.tanh(x.astype(f64)).astype(f32))


def four_bits(x: np.ndarray, dtype: type, least: int, most: int) -> np.ndarray:
    """Saturates each byte to four bits; the fields are consecutive."""
    parts = x.astype("<u4")[..., None].view(u8).view(dtype).astype(i64)
    held = np.clip(parts, least, most) & 15
    return sum(held[..., k] << 4 * k for k in range(4)).astype(u16)


define("sat_pk4_i4_i8", "b16: b32", lambda x: four_bits(x, np.int8, -8, 7), keeps_high=True)
define("sat_pk4_u4_u8", "b16: b32", lambda x: four_bits(x, u8, 0, 15), keeps_high=True)


def build(ins: Instruction, mode: int) -> Step | None:
    name = ins.mnemonic
    if name in TABLE:
        return vector.table(ins, mode, TABLE[name])
    if name in PAIRED:
        kind, op = PAIRED[name]
        return packed.halves(ins, mode, kind, name.replace("v_pk_", "v_"), op)
    if name in BRAIN:
        return _brain(ins, BRAIN[name])
    if name in BRAIN_PAIRS:
        return _brain_pair(ins, BRAIN_PAIRS[name])
    if name in MOVES:
        return _move(ins, MOVES[name])
    if name == "v_bitop2_b32":
        return _bits(ins)
    if name == "v_permlane_idx_gen_b32":
        return _index(ins)
    if name.startswith("v_perm_pk16_b"):
        return _look_up(ins, int(name[len("v_perm_pk16_b")]))
    return None


def _bits(ins: Instruction) -> Step:
    """The half of a VOPD: a truth table of V_BITOP3, whose third source is 0. Bits 0, 2, 4 and 6
    are the results for (S0, S1) = 00, 01, 10, 11."""
    table = int(ins.modifiers.get("bitop3", 0))
    read = [vector.reader(ins, k, operand, "u32") for k, operand in enumerate(ins.operands[1:3])]
    write = vector.writer(ins, "u32", keeps_high=False)

    def step(w: Waves) -> None:
        a, b = (one(w) for one in read)
        parts = (~a & ~b, ~a & b, a & ~b, a & b)
        chosen = [part for k, part in enumerate(parts) if table >> 2 * k & 1]
        write(w, np.bitwise_or.reduce(np.broadcast_arrays(u32(0), *chosen)))

    return step


# -- bf16 ------------------------------------------------------------------------------------------


def narrowed(x: np.ndarray) -> np.ndarray:
    """Rounds f64 to bf16 once, ties to even: to f32 toward odd first, which has 16 bits more."""
    near = x.astype(f32)
    raw = near.view(u32)
    inexact = np.isfinite(near) & (near.astype(f64) != x)
    # Towards zero, then the last bit set.
    beyond = inexact & (np.abs(near.astype(f64)) > np.abs(x))
    raw = np.where(inexact, (raw - beyond.astype(u32)) | u32(1), raw)
    rounded = (raw + u32(0x7FFF) + (raw >> u32(16) & u32(1))) >> u32(16)
    return np.where(np.isnan(x), raw >> u32(16) | u32(0x40), rounded).astype(u16)


def widened(raw: np.ndarray) -> np.ndarray:
    return (raw.astype(u32) << u32(16)).view(f32).astype(f64)


BRAIN: dict[str, Callable] = {
    "v_rcp_bf16": lambda x: 1 / x,
    "v_rsq_bf16": lambda x: 1 / np.sqrt(x),
    "v_sqrt_bf16": np.sqrt,
    "v_exp_bf16": np.exp2,
    "v_log_bf16": np.log2,
    "v_sin_bf16": turns(np.sin),
    "v_cos_bf16": turns(np.cos),
    "v_tanh_bf16": np.tanh,
}
BRAIN_PAIRS: dict[str, Callable] = {
    "v_pk_add_bf16": floats.odd_sum,
    "v_pk_mul_bf16": lambda a, b: a * b,
    "v_pk_fma_bf16": lambda a, b, c: floats.odd_sum(a * b, c),
    "v_pk_min_num_bf16": lambda a, b: floats.minimum(a, b, False),
    "v_pk_max_num_bf16": lambda a, b: floats.maximum(a, b, False),
}


def _brain(ins: Instruction, function: Callable) -> Step:
    read = vector.reader(ins, 0, ins.operands[1], "b16")
    write = vector.writer(ins, "b16", keeps_high=True)
    return lambda w: write(w, _clamped(ins, narrowed(function(widened(read(w))))))


def _brain_pair(ins: Instruction, function: Callable) -> Step:
    operands = ins.operands[1:]
    low_half, high_half, low_sign, high_sign = packed.selections(ins, len(operands))

    def half(w: Waves, k: int, high: int, negate: int) -> np.ndarray:
        raw = w.read(operands[k], 32) >> u32(16 * high) & u32(0xFFFF)
        return widened(raw ^ u32(0x8000 * negate))

    def step(w: Waves) -> None:
        count = range(len(operands))
        low = narrowed(function(*(half(w, k, low_half[k], low_sign[k]) for k in count)))
        high = narrowed(function(*(half(w, k, high_half[k], high_sign[k]) for k in count)))
        low, high = _clamped(ins, low), _clamped(ins, high)
        w.put_v32(w.first(ins.operands[0]), pack(low, high), w.active())

    return step


def _clamped(ins: Instruction, raw: np.ndarray) -> np.ndarray:
    """To [0, 1], without -0; NaN is 0."""
    if not ins.modifiers.get("clamp"):
        return raw
    value = widened(raw)
    return np.where(value > 1, u16(0x3F80), np.where(value > 0, raw, u16(0)))


# -- lanes -----------------------------------------------------------------------------------------

# (lane in the group, selector, group's size) → the lane in the group; outside: the lane itself
MOVES: dict[str, Callable] = {
    "v_permlane_bcast_b32": lambda lane, by, size: by % size,
    "v_permlane_up_b32": lambda lane, by, size: lane - by,
    "v_permlane_down_b32": lambda lane, by, size: lane + by,
    "v_permlane_xor_b32": lambda lane, by, size: lane ^ by,
}
GROUPS = (1, 2, 4, 8, 16, 32)


def _number(w: Waves, operand) -> np.ndarray:
    return np.broadcast_to(w.read_scalar(operand, 32), w.n).astype(i64)


def _move(ins: Instruction, choose: Callable) -> Step:
    def step(w: Waves) -> None:
        by, size = (_number(w, operand)[:, None] for operand in ins.operands[2:4])
        if not np.isin(size, GROUPS).all() or (by > 63).any():
            raise NotImplementedError(ins.text)
        lane = np.arange(LANES)
        source = choose(lane % size, by, size)
        inside = (source >= 0) & (source < size)
        source = np.where(inside, lane // size * size + source, lane)
        data = np.broadcast_to(w.read(ins.operands[1], 32), (w.n, LANES))
        w.put_v32(w.first(ins.operands[0]), np.take_along_axis(data, source, 1), w.active())

    return step


def _index(ins: Instruction) -> Step:
    def step(w: Waves) -> None:
        size = _number(w, ins.operands[2])[:, None]
        lane = np.arange(LANES)
        chosen = w.read(ins.operands[1], 32).astype(i64) % size
        result = (lane // size * size + chosen) * 4
        w.put_v32(w.first(ins.operands[0]), result.astype(u32), w.active())

    return step


def _words(w: Waves, operand, count: int) -> list[np.ndarray]:
    if count == 1:
        return [w.read(operand, 32).astype(u64)]
    whole = w.read(operand, 64)
    return [whole & u64(0xFFFFFFFF), whole >> u64(32)]


def _look_up(ins: Instruction, width: int) -> Step:
    """Sixteen entries of `width` bits: S1 has the lower dwords of the table, S0 the upper."""
    upper, lower = {4: (1, 1), 6: (1, 2), 8: (2, 2)}[width]

    def step(w: Waves) -> None:
        words = _words(w, ins.operands[2], lower) + _words(w, ins.operands[1], upper)
        indices = _words(w, ins.operands[3], 2)
        shape = (w.n, LANES)
        bits = np.stack(
            [np.broadcast_to(word >> u64(k) & u64(1), shape) for word in words for k in range(32)]
        ).astype(i64)
        entries = [sum(bits[width * k + b] << b for b in range(width)) for k in range(16)]
        table = np.stack(entries)
        total = [0] * (width // 2)
        for k in range(16):
            index = np.broadcast_to(indices[k // 8] >> u64(4 * (k % 8)) & u64(15), shape)
            code = np.take_along_axis(table, index.astype(i64)[None], 0)[0]
            for b in range(width):
                at = width * k + b
                total[at // 32] = total[at // 32] | (code >> b & 1) << at % 32
        first = w.first(ins.operands[0])
        for k, word in enumerate(total):
            w.put_v32(first + k, word.astype(u32), w.active())

    return step
