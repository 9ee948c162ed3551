"""Steps that the encoder emits around an operation: source and result modifiers, packed and SDWA
operands, the MODE register. No instruction has these names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler, Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.vector.floating.float import is_nan, of
from fly_run.emulator.semantics.vector.packed import halves


def operations() -> Iterator[Operation]:
    # Absolute value and negation: masks with the second source, then flips with the third.
    for kind in ("i32", "i64"):
        types = f"{kind} = {kind}, {kind}, {kind}"
        options = {"kinds": ("vss", "sss"), "everywhere": True}
        yield valu(f"fly_sign_{kind[1:]}", types, _signed, **options)
    # Shifts the source left and inserts it under a mask.
    yield valu("fly_insert", "i32 += i32, i32, i32", _insert, kinds=("vss",))
    for element, short in (("half", "f16"), ("float", "f32"), ("double", "f64")):
        # The other half of an f16's register is preserved.
        keeps = {"chunk": 16, "keeps_high": element == "half"}
        yield valu(f"fly_clamp_{short}", f"{element} = {element}", _clamp, kinds=("v",), **keeps)
        product = of(element, lambda k, a, b: a * b)
        scale = _scale(
            product, {"half": 0x7C00, "float": 0xFF << 23, "double": 0x7FF << 52}[element]
        )
        types = f"{element} = {element}, {element}"
        # f16 only has this if its denormals are flushed, and then its factor is a copy in a row.
        kinds = rows(2) if element == "half" else ("vs",)
        yield valu(f"fly_scale_{short}", types, scale, kinds=kinds, **keeps)
    yield valu("fly_clamp_pk_f16", "i32 = i32", _clamp_packed, chunk=16, kinds=("v",))
    for what, bit in (("inputs", 6), ("results", 15)):
        flush = _flush_halves(bit)
        name, options = f"fly_flush_{what}", {"kinds": rows(1)}
        yield valu(f"{name}_f16", "half = half", flush, chunk=32, keeps_high=True, **options)
        yield valu(f"{name}_pk_f16", "i32 = i32", halves("half", flush), chunk=16, **options)
    for name, body in CUSTOM.items():
        yield Operation(name, "custom", body=body)


def _signed(k: Lanes, a: Value, keep: Value, flip: Value) -> Value:
    return (a & keep) ^ flip


def _insert(k: Lanes, a: Value, shift: Value, mask: Value, old: Value) -> Value:
    return ((a << shift) & mask) | (old & ~mask)


def _clamp(k: Lanes, a: Value) -> Value:
    """Clamps to [0, 1]; NaN becomes 0 under MODE.DX10_CLAMP, or if the immediate is set."""
    wide = a.convert("fpext", "float") if a.element == "half" else a
    above = wide.compare("ogt", 0.0).select(wide, 0.0)
    result = above.compare("olt", 1.0).select(above, 1.0)
    result = result.convert("fptrunc", "half") if a.element == "half" else result
    mode = k.handler.wave.at(state.MODE).load("i32") & (1 << 8)
    passes = (mode | k.immediate().trunc("i32")).compare("eq", 0).splat(a.lanes)
    return (passes & is_nan(a)).select(a, result)


def _scale(product: Callable[..., Value], exponent: int) -> Callable[..., Value]:
    """An output multiplier. It has no effect if MODE has denormal results or IEEE; it flushes
    denormals and turns -0 into 0."""

    def run(k: Lanes, a: Value, factor: Value) -> Value:
        allowed = 1 << 5 if a.element == "float" else 1 << 7
        mode = k.handler.wave.at(state.MODE).load("i32")
        ignored = (mode & (allowed | 1 << 9)).compare("ne", 0).splat(k.chunk)
        scaled = product(k, a, factor)
        integer = {"half": "i16", "float": "i32", "double": "i64"}[a.element]
        bits = scaled.bits(integer)
        zeroed = (bits & exponent).compare("eq", 0).select(0, bits)
        return ignored.select(a.bits(integer), zeroed).bits(a.element)

    return run


def _clamp_packed(k: Lanes, a: Value) -> Value:
    return _clamp(k, a.cast("half", 2 * k.chunk)).cast("i32", k.chunk)


def _flush_halves(bit: int) -> Callable[..., Value]:
    """Flushes f16 denormals to zeros of their sign, if that bit of the host's control word for f16
    and f64 is set."""

    def run(k: Lanes, a: Value) -> Value:
        control = k.handler.wave.at(state.MXCSR_DOUBLE).load("i32")
        flushed = (control & (1 << bit)).compare("ne", 0).splat(k.chunk)
        bits = a.bits("i16")
        denormal = (bits & 0x7C00).compare("eq", 0)
        return (flushed & denormal).select(bits & 0x8000, bits).bits("half")

    return run


def _use_control(offset: int) -> Callable[[Handler], None]:
    """f32, and f16 with f64, have separate rounding and denormal modes."""

    def run(h: Handler) -> None:
        h.call_void("llvm.x86.sse.ldmxcsr", h.wave.at(offset), declare=True)

    return run


def _host_control(h: Handler, mode: Value, rounding_at: int, denormal_at: int) -> Value:
    """Returns the host control word for one half of MODE: rounding is 0 nearest, 1 up, 2 down, 3 to
    zero; denormals bit 0 enables them as inputs, bit 1 as results."""
    rounding = mode.lshr(rounding_at) & 3
    # The host's encoding is 0 nearest, 1 down, 2 up, 3 to zero.
    swapped = (rounding.lshr(1) | (rounding << 1)) & 3
    flush_inputs = (mode.lshr(denormal_at) & 1) ^ 1
    flush_results = (mode.lshr(denormal_at + 1) & 1) ^ 1
    return (swapped << 13) | (flush_inputs << 6) | (flush_results << 15) | 0x1F80


def _mode_field(h: Handler) -> tuple[Value, Value]:
    """Returns the mask and the first bit of an instruction's field of MODE: its extra word is
    offset + 32 · size."""
    field = h.extra()
    offset, size = field & 31, field.lshr(5)
    ones = size.compare("ugt", 31).select(size.like(-1), (size.like(1) << (size & 31)) - 1)
    return ones << offset, offset


def _set_mode(h: Handler) -> None:
    """s_setreg on MODE: operand 0 is the value."""
    mask, offset = _mode_field(h)
    place = h.wave.at(state.MODE)
    value = h.operand(0).load("i32") << offset
    mode = (value & mask) | (place.load("i32") & ~mask)
    place.store(mode)
    single = _host_control(h, mode, 0, 4)
    h.wave.at(state.MXCSR_SINGLE).store(single)
    h.wave.at(state.CONTEXT).load("ptr").at(state.CTX.control).store(single)
    h.wave.at(state.MXCSR_DOUBLE).store(_host_control(h, mode, 2, 6))
    h.call_void("llvm.x86.sse.ldmxcsr", h.wave.at(state.MXCSR_SINGLE), declare=True)


def _set_mode_bits(h: Handler) -> None:
    """The same for fields beyond rounding and denormals, which the host's control word lacks."""
    mask, offset = _mode_field(h)
    place = h.wave.at(state.MODE)
    place.store(((h.operand(0).load("i32") << offset) & mask) | (place.load("i32") & ~mask))


def _get_mode(h: Handler) -> None:
    mask, offset = _mode_field(h)
    h.operand(0).store((h.wave.at(state.MODE).load("i32") & mask).lshr(offset))


def _use_given_control(h: Handler) -> None:
    h.call_void("llvm.x86.sse.ldmxcsr", h.operand(0), declare=True)


CUSTOM: dict[str, Callable[[Handler], None]] = {
    "fly_mode_single": _use_control(state.MXCSR_SINGLE),
    "fly_use_control": _use_given_control,
    "fly_mode_double": _use_control(state.MXCSR_DOUBLE),
    "fly_set_mode": _set_mode,
    "fly_set_mode_bits": _set_mode_bits,
    "fly_get_mode": _get_mode,
}
