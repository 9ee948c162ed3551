"""Vector ALU instructions on waves: operands through modifiers, DPP and SDWA, results under EXEC.

`build(instruction)` returns a function of Waves. valu.py has the instructions' functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oracle.arithmetic import floats
from oracle.program.text import Instruction, Operand
from oracle.state.waves import DTYPES, EXEC, UNSIGNED, VCC, Waves, modified
from oracle.vector import crosslane, packed, rounding, saturated, valu

Step = Callable[[Waves], None]
VCC_OPERAND = Operand("s", VCC, 2)
# The denormal-flushing forms of multiply-add (the manual: "does not support denormals").
ALWAYS_FLUSH = {"v_mac_f32", "v_mad_f32", "v_madmk_f32", "v_madak_f32", "v_mad_legacy_f32"}
# Instructions that pass floats through without arithmetic do not flush denormals. V_FREXP of f32
# gives 0 for a denormal that MODE flushes, by a comment in tinygrad's emulator
# (test/mockgpu/amd/emu.py).
NEVER_FLUSH = (
    "v_cvt_",
    "v_frexp_mant_f16",
    "v_frexp_exp_i16_f16",
    "v_ldexp_f16",
    "v_rcp",
    "v_rsq",
    "v_sqrt",
    "v_exp",
    "v_log",
    "v_sin",
    "v_cos",
    "v_div_",
    "v_pack",
    "v_cmp_class",
    "v_cmpx_class",
)


def build(ins: Instruction, mode: int) -> Step | None:
    """`mode`: the MODE register's float bits (see hsaco.Kernel.float_mode). None if unknown."""
    name = ins.mnemonic
    if step := crosslane.build(ins):
        return step
    if step := packed.build(ins, mode):
        return step
    if name in valu.VOPC:
        return _compare(ins, mode)
    if name in valu.CARRY:
        return _carry(ins)
    if name in ("v_cndmask_b32", "v_div_fmas_f32", "v_div_fmas_f64"):
        return _selected(ins)
    if name in ("v_div_scale_f32", "v_div_scale_f64"):
        kind = name[-3:]
        return _pair(ins, kind, (kind, kind, kind), floats.divide_scale)
    clamps = bool(ins.modifiers.get("clamp"))
    if name == "v_mad_u64_u32":
        function = saturated.multiply_add(0, (1 << 64) - 1) if clamps else valu.multiply_add
        return _pair(ins, "u64", ("u32", "u32", "u64"), function)
    if name == "v_mad_i64_i32":
        least = -(1 << 63)
        held = saturated.multiply_add(least, -1 - least)
        function = held if clamps else valu.multiply_add_signed
        return _pair(ins, "i64", ("i32", "i32", "i64"), function)
    if name == "v_swap_b32":
        return _swap(ins)
    if name in ("v_bitop3_b32", "v_bitop3_b16"):
        return _truth_table(ins)
    if name in valu.VALU:
        return table(ins, mode, valu.VALU[name])
    return None


def reader(ins: Instruction, position: int, operand: Operand, kind: str) -> Callable:
    """Returns a function of Waves that reads source number `position` as an array of `kind`."""
    width, modifiers = int(kind[1:]), ins.modifiers
    if selection := modifiers.get(f"src{position}_sel") if ins.encoding == "sdwa" else None:
        return lambda w: _sdwa_source(w, operand, selection, kind)
    if position == 0 and ins.encoding.endswith("dpp"):
        move = crosslane.dpp(ins)
        return lambda w: modified(operand, move.fetch(w, w.read(operand, width)), width).view(
            DTYPES[kind]
        )
    select = modifiers.get("op_sel", ())
    if width == 16 and position < len(select) and select[position]:
        return lambda w: modified(
            operand, (w.read(operand, 32) >> np.uint32(16)).astype(np.uint16), 16
        ).view(DTYPES[kind])
    return lambda w: w.read_as(operand, kind)


def _sdwa_source(w: Waves, operand: Operand, selection: str, kind: str) -> np.ndarray:
    raw = w.read(operand, 32)
    unit, _, index = selection.partition("_")
    if unit != "DWORD":
        bits = {"BYTE": 8, "WORD": 16}[unit]
        raw = (raw >> np.uint32(bits * int(index))) & np.uint32((1 << bits) - 1)
        if operand.sign_extend:
            top = np.uint32(1 << (bits - 1))
            raw = (raw ^ top) - top
    width = int(kind[1:])
    return modified(operand, raw.astype(UNSIGNED[width]), width).view(DTYPES[kind])


def writer(ins: Instruction, kind: str, keeps_high: bool) -> Callable:
    """Returns a function (Waves, array) that stores a result of `kind` to the first operand."""
    target, width = ins.operands[0], int(kind[1:])
    move = crosslane.dpp(ins) if ins.encoding.endswith("dpp") else None
    dtype = DTYPES[kind]

    def lanes_of(w: Waves):
        return w.active() if move is None else move.written(w)

    def write(w: Waves, value: np.ndarray) -> None:
        lanes = lanes_of(w)
        if value.dtype != dtype:
            value = value.astype(dtype)
        raw, index = value.view(UNSIGNED[width]), w.first(target)
        if width == 64:
            w.put_v32(index, (raw & np.uint64(0xFFFFFFFF)).astype(np.uint32), lanes)
            w.put_v32(index + 1, (raw >> np.uint64(32)).astype(np.uint32), lanes)
        elif ins.encoding == "sdwa":
            w.put_v32(index, _sdwa_result(ins, raw, w.v32(index)), lanes)
        elif width == 16:
            w.put_v32(index, half_result(ins, raw, w.v32(index), keeps_high), lanes)
        else:
            w.put_v32(index, raw, lanes)

    return write


def half_result(ins: Instruction, raw: np.ndarray, old: np.ndarray, keeps_high: bool):
    """gfx9 clears the upper half; op_sel's last bit writes it, and op_sel forms preserve halves."""
    if (half := ins.operands[0].half) is not None:
        shift = np.uint32(16 * half)
        return (old & ~(np.uint32(0xFFFF) << shift)) | raw.astype(np.uint32) << shift
    select = ins.modifiers.get("op_sel", ())
    sources = len(ins.operands) - 1
    if len(select) > sources and select[sources]:
        return (old & np.uint32(0xFFFF)) | raw.astype(np.uint32) << np.uint32(16)
    return (old & np.uint32(0xFFFF0000)) | raw if keeps_high else raw.astype(np.uint32)


def _sdwa_result(ins: Instruction, raw: np.ndarray, old: np.ndarray) -> np.ndarray:
    unit, _, index = ins.modifiers.get("dst_sel", "DWORD").partition("_")
    raw = raw.astype(np.uint32)
    if unit == "DWORD":
        return raw
    bits = {"BYTE": 8, "WORD": 16}[unit]
    shift = np.uint32(bits * int(index))
    field = np.uint32((1 << bits) - 1)
    placed = (raw & field) << shift
    unused = ins.modifiers.get("dst_unused", "UNUSED_PRESERVE")
    if unused == "UNUSED_PAD":
        return placed
    if unused == "UNUSED_PRESERVE":
        return (old & ~(field << shift)) | placed
    # UNUSED_SEXT: zeros below, the sign above.
    sign = (raw & np.uint32(1 << (bits - 1))) != 0
    above = np.uint32(0xFFFFFFFF ^ ((1 << (int(shift) + bits)) - 1))
    return np.where(sign, placed | above, placed)


def denormals(kind: str, mode: int) -> int:
    """Returns MODE.FP_DENORM of a type: bit 0 enables them in sources, bit 1 in results."""
    return (mode >> 4 if kind == "f32" else mode >> 6) & 3


def finish(ins: Instruction, kind: str, value: np.ndarray, mode: int = 0x3F0) -> np.ndarray:
    """Applies the output scale, then clamps a float result.

    CDNA4 ISA manual, "Output Modifiers (OMOD)": they are ignored if denormal results or IEEE mode
    are on; otherwise denormal results are flushed, and -0 becomes 0.
    """
    if kind[0] != "f":
        return value
    scale = ins.modifiers.get("mul", 1) / ins.modifiers.get("div", 1)
    if scale != 1 and not denormals(kind, mode) & 2 and not mode >> 9 & 1:
        value = floats.flush(value * value.dtype.type(scale))
        value = np.where(value == 0, np.zeros_like(value), value)
    if ins.modifiers.get("clamp"):
        value = packed.clamped(value, mode)
    return value


def flusher(name: str, kind: str, mode: int, allows: int = 1) -> Callable | None:
    """Returns the flushing of `name`'s sources (`allows`: 1) or results (2); None if denormals are
    preserved."""
    if kind[0] != "f":
        return None
    if name in ALWAYS_FLUSH:
        return floats.flush
    kept = denormals(kind, mode) & allows or name.startswith(NEVER_FLUSH)
    return None if kept else floats.flush


def table(ins: Instruction, mode: int, op: valu.Op) -> Step:
    """Builds a row of the tables for the instruction's operands."""
    operands = ins.operands[1:]
    if op.tied:
        operands = (*operands[:2], replace(ins.operands[0], negate=False, absolute=False))
    if len(operands) != len(op.sources):
        raise NotImplementedError(f"{ins.text}: {len(operands)} sources")
    sources = [
        reader(ins, k, operand, kind)
        for k, (operand, kind) in enumerate(zip(operands, op.sources, strict=True))
    ]
    write = writer(ins, op.result, op.keeps_high)
    flushes = [flusher(ins.mnemonic, kind, mode) for kind in op.sources]
    flush_result = flusher(ins.mnemonic, op.result, mode, allows=2)
    options = {"ieee": bool(mode >> 9 & 1)} if op.ieee else {}
    saturate = ins.modifiers.get("clamp") and op.result[0] != "f"
    make = _saturating if saturate else lambda ins, *rest: rounding.rounded(ins.mnemonic, *rest)
    function = make(ins, op, mode)

    def step(w: Waves) -> None:
        values = [read(w) for read in sources]
        values = [flush(v) if flush else v for flush, v in zip(flushes, values, strict=True)]
        result = finish(ins, op.result, function(*values, **options), mode)
        write(w, flush_result(result) if flush_result else result)

    return step


def _saturating(ins: Instruction, op: valu.Op, mode: int) -> Callable:
    plain = rounding.rounded(ins.mnemonic, op, mode)
    function = saturated.function(ins.mnemonic, plain, op.result)
    if function is None:
        raise NotImplementedError(f"{ins.text}: integer clamp")
    return function


def _compare(ins: Instruction, mode: int) -> Step:
    op = valu.VOPC[ins.mnemonic]
    sources = [
        reader(ins, k, o, kind)
        for k, (o, kind) in enumerate(zip(ins.operands[-2:], op.sources, strict=True))
    ]
    flushes = [flusher(ins.mnemonic, kind, mode) for kind in op.sources]
    # From gfx10 on V_CMPX only writes EXEC, and names no destination.
    targets = [operand.index for operand in ins.operands[:-2]]
    writes_exec = ins.mnemonic.startswith("v_cmpx")

    def step(w: Waves) -> None:
        values = [read(w) for read in sources]
        values = [flush(v) if flush else v for flush, v in zip(flushes, values, strict=True)]
        lanes = np.broadcast_to(op.function(*values), (w.n, 64))
        active = w.active()
        lanes = lanes if active is None else lanes & active
        for target in targets:
            w.put_mask(target, lanes)
        if writes_exec:
            w.put_mask(EXEC, lanes)

    return step


def _carry(ins: Instruction) -> Step:
    function, takes, exchanged = valu.CARRY[ins.mnemonic]
    target, carry_out, *operands = ins.operands
    if takes:
        carry_in = operands[2]
    sources = [reader(ins, k, o, "u32") for k, o in enumerate(operands[:2])]
    del target
    write = writer(ins, "u32", False)

    def step(w: Waves) -> None:
        a, b = (read(w) for read in sources)
        if exchanged:
            a, b = b, a
        carry = w.read_mask(carry_in) if takes else np.zeros((1, 64), bool)
        result, out = function(a, b, carry)
        if ins.modifiers.get("clamp"):  # the carry ignores the modifier
            beyond = np.uint32(0xFFFFFFFF if "add" in ins.mnemonic else 0)
            result = np.where(out, beyond, result)
        _put_mask(w, carry_out, out)
        write(w, result)

    return step


def _put_mask(w: Waves, operand: Operand, lanes: np.ndarray) -> None:
    lanes = np.broadcast_to(lanes, (w.n, 64))
    active = w.active()
    w.put_mask(operand.index, lanes if active is None else lanes & active)


def _pair(ins: Instruction, result: str, kinds: tuple[str, ...], function: Callable) -> Step:
    """A result and a lane mask: `v0, vcc, a, b, c`."""
    sources = [
        reader(ins, k, o, kind)
        for k, (o, kind) in enumerate(zip(ins.operands[2:], kinds, strict=True))
    ]
    write = writer(ins, result, False)

    def step(w: Waves) -> None:
        value, mask = function(*(read(w) for read in sources))
        write(w, value)
        _put_mask(w, ins.operands[1], mask)

    return step


def _selected(ins: Instruction) -> Step:
    """Selection by a lane mask: V_CNDMASK and V_DIV_FMAS."""
    if ins.mnemonic == "v_cndmask_b32":
        kind, count = "b32", 2
        mask = ins.operands[3] if len(ins.operands) > 3 else VCC_OPERAND

        def function(a, b, lanes):
            return np.where(lanes, b, a)
    else:
        kind, count, mask, function = ins.mnemonic[-3:], 3, VCC_OPERAND, floats.divide_fmas
    sources = [reader(ins, k, o, kind) for k, o in enumerate(ins.operands[1 : 1 + count])]
    write = writer(ins, kind, False)

    def step(w: Waves) -> None:
        write(w, function(*(read(w) for read in sources), w.read_mask(mask)))

    return step


def _swap(ins: Instruction) -> Step:
    left, right = ins.operands

    def step(w: Waves) -> None:
        a, b = w.read(left, 32).copy(), w.read(right, 32).copy()
        w.put_v32(w.first(left), b, w.active())
        w.put_v32(w.first(right), a, w.active())

    return step


def _truth_table(ins: Instruction) -> Step:
    """gfx950 V_BITOP3: bit 4a + 2b + c of the table, for each bit of the three sources."""
    kind = ins.mnemonic[-3:]
    sources = [reader(ins, k, o, kind) for k, o in enumerate(ins.operands[1:])]
    write = writer(ins, kind, keeps_high=True)
    table = ins.modifiers.get("bitop3", 0)

    def step(w: Waves) -> None:
        values = [read(w) for read in sources]
        result = np.zeros((w.n, 64), DTYPES[kind])
        for row in range(8):
            if table >> row & 1:
                picked = [v if row >> 2 - k & 1 else ~v for k, v in enumerate(values)]
                result = result | (picked[0] & picked[1] & picked[2])
        write(w, result)

    return step
