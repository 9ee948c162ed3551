"""Emitters of vector and scalar ALU handlers, and the common prologue and epilogue of handlers.

A handler is `void (ptr wave, ptr op)` and ends in a tail call of the next micro-op's handler, so a
wave runs from handler to handler without a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import FLOATS, INTEGERS, Function, Value
from fly_run.emulator.semantics.base.operation import MASK, SHORT, SHORT_KINDS, TO_EXEC, Operation

LANES = state.LANES
ROW = state.ROW
HALF = LANES // 2  # the lanes of a short wave


class Handler(Function):
    """The function of one micro-op: its operands, the wave's registers, and its exits. `kind` is
    that of its operands, `lanes` the most that a wave has that runs it."""

    def __init__(self, name: str, short: bool = False):
        super().__init__(name, "ptr %wave, ptr %op")
        self.kind = name.removesuffix(SHORT).rpartition(".")[2]
        short = short or name.endswith((SHORT, TO_EXEC)) or self.kind in SHORT_KINDS
        self.lanes = HALF if short else LANES
        self.wave = self.named("ptr", "%wave")
        self.op = self.named("ptr", "%op")

    def operand(self, number: int) -> Value:
        """Returns a pointer to operand `number` in the wave state."""
        offset = self.op.at(state.OP_OPERANDS + 4 * number).load("i32")
        return self.wave.at(offset.zext("i64"))

    def immediate(self) -> Value:
        return self.op.at(state.OP_IMMEDIATE).load("i64")

    def extra(self) -> Value:
        return self.op.at(state.OP_EXTRA).load("i32")

    def exec_mask(self) -> Value:
        return self.wave.at(state.EXEC).load("i64")

    def scc(self) -> Value:
        return self.wave.at(state.SCC).load("i32").compare("ne", 0)

    def set_scc(self, value: Value) -> None:
        self.wave.at(state.SCC).store(value.zext("i32"))

    def jump(self, op: Value) -> None:
        """Continues with the micro-op at `op`."""
        handler = op.at(state.OP_HANDLER).load("ptr")
        self.line(f"musttail call void {handler.name}(ptr %wave, ptr {op.name})")
        self.ret()

    def next(self) -> None:
        self.jump(self.op.at(state.OP_SIZE))

    def stop(self, status: int, resume: Value) -> None:
        """Leaves the wave: counts executed instructions, and records where to resume."""
        self.count()
        self.wave.at(state.OP).store(resume)
        self.wave.at(state.STATUS).store(self.constant("i32", status))
        self.ret()

    def fault(self, kind: str) -> None:
        """Leaves the wave with a fault at this instruction."""
        self.wave.at(state.FAULT_KIND).store(self.constant("i32", state.FAULT[kind]))
        self.stop(state.STATUS_FAULT, self.op)

    def count(self) -> Value:
        """Subtracts the instructions since the last landing, including this one, from the quantum;
        returns the rest."""
        left, after = self.count_only()
        self.wave.at(state.LANDING).store(after)
        return left

    def count_only(self) -> tuple[Value, Value]:
        """Counts, for a handler that then lands elsewhere; returns the rest of the quantum and the
        number of the next instruction."""
        index = self.op.at(state.OP_INDEX).load("i32").zext("i64")
        ran = index - self.wave.at(state.LANDING).load("i64") + 1
        left = self.wave.at(state.QUANTUM).load("i64") - ran
        self.wave.at(state.QUANTUM).store(left)
        return left, index + 1

    def land(self, op: Value) -> None:
        """Records that a straight-line run starts at `op`."""
        index = op.at(state.OP_INDEX).load("i32").zext("i64")
        self.wave.at(state.LANDING).store(index)

    def over_chunks(
        self, chunk: int, body: Callable[[Value, Value], None], active: Value | None = None
    ) -> None:
        """Runs `body(first, mask)` for each `chunk` lanes, less than all, up to the last one with
        an active lane: the first lane (i64) and the chunk's bits (`<chunk x i1>`) of `active`, by
        default EXEC."""

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            first, left = carried
            body(first, left.trunc(f"i{chunk}").cast("i1", chunk))
            left = left.lshr(chunk)
            return [first + chunk, left], left.compare("ne", 0)

        mask = self.exec_mask() if active is None else active
        self.loop([self.constant("i64", 0), mask], turn)


@dataclass(frozen=True)
class Lanes:
    """What a VALU body has access to besides its operands."""

    handler: Handler
    first: Value  # i64: the first lane of this chunk
    chunk: int

    def lane_numbers(self) -> Value:
        """Returns each lane's number, as i32."""
        numbers = self.handler.vector("i32", range(self.chunk))
        return numbers + self.first.trunc("i32") if self.chunk != LANES else numbers

    def ieee(self) -> Value:
        """Returns the IEEE bit of MODE, as i1."""
        return (self.handler.wave.at(state.MODE).load("i32") & (1 << 9)).compare("ne", 0)

    def immediate(self) -> Value:
        return self.handler.immediate()

    def constant(self, element: str, number: int | float) -> Value:
        return self.handler.constant(element, number, self.chunk)


def interleave(low: Value, high: Value) -> Value:
    """Combines the i32 lanes of two rows into i64 lanes."""
    lanes = low.lanes
    order = ", ".join(f"i32 {lane}, i32 {lane + lanes}" for lane in range(lanes))
    text = (
        f"shufflevector {low.type} {low.name}, {high.type} {high.name},"
        f" <{2 * lanes} x i32> <{order}>"
    )
    return low.function.value("i32", 2 * lanes, text).cast("i64", lanes)


def halves(value: Value) -> tuple[Value, Value]:
    """Splits i64 lanes into low and high i32 lanes."""
    lanes = value.lanes
    both = value.cast("i32", 2 * lanes)
    result = []
    for start in (0, 1):
        order = ", ".join(f"i32 {2 * lane + start}" for lane in range(lanes))
        text = (
            f"shufflevector {both.type} {both.name}, {both.type} poison, <{lanes} x i32> <{order}>"
        )
        result.append(value.function.value("i32", lanes, text))
    return result[0], result[1]


def load_row(pointer: Value, first: Value, chunk: int) -> Value:
    """Loads lanes `first` to `first + chunk` of the row at `pointer`, as i32."""
    return pointer.at(first << 2).load("i32", chunk, align=min(64, chunk * 4))


def store_row(pointer: Value, first: Value, value: Value, mask: Value | None) -> None:
    """Writes i32 lanes into the row, under `mask`.

    The result is blended with the old row and stored whole: processors can't forward a masked store
    to a load, and the next handler often reads this row. The load of the old row is volatile
    because LLVM would otherwise turn blend and store into a masked store.
    """
    place = pointer.at(first << 2)
    align = min(64, value.lanes * 4)
    if mask is not None:
        old = place.load("i32", value.lanes, align=align, volatile=True)
        value = mask.select(value, old)
    place.store(value, align=align)


def read_vector(pointer: Value, element: str, kind: str, first: Value, chunk: int) -> Value:
    """Reads operand lanes of type `element`, from a row (`v`) or a scalar (`s`)."""
    width = {**INTEGERS, **FLOATS}[element]
    if kind == "s":
        raw = pointer.load("i64" if width == 64 else "i32")
        if width == 16:
            raw = raw.trunc("i16")
        return raw.bits(element).splat(chunk)
    low = load_row(pointer, first, chunk)
    if width == 64:
        return interleave(low, load_row(pointer.at(ROW), first, chunk)).bits(element)
    return (low.trunc("i16") if width == 16 else low).bits(element)


def read_pair(pointer: Value, kind: str, first: Value, chunk: int) -> tuple[Value, Value]:
    """Reads the low and high dwords of an i64 operand."""
    if kind == "s":
        return tuple(pointer.at(n).load("i32").splat(chunk) for n in (0, 4))  # type: ignore[return-value]
    return load_row(pointer, first, chunk), load_row(pointer.at(ROW), first, chunk)


def write_vector(
    pointer: Value, value: Value, first: Value, mask: Value | None, keeps_high: bool = False
) -> None:
    width = {**INTEGERS, **FLOATS}[value.element]
    if width == 64:
        low, high = halves(value.bits("i64"))
        store_row(pointer, first, low, mask)
        store_row(pointer.at(ROW), first, high, mask)
        return
    if width == 16:
        value = value.bits("i16").zext("i32")
        if keeps_high:
            value = value | (load_row(pointer, first, value.lanes) & 0xFFFF0000)
    store_row(pointer, first, value.bits("i32"), mask)


def emit_valu(operation: Operation, name: str) -> Handler:
    """Emits a VALU handler. Results are written under EXEC; a `mask` result has 0 for inactive
    lanes (ISA manual, VOPC: "inactive lanes get 0")."""
    handler = Handler(name, operation.only_short)
    kinds = handler.kind if operation.inputs else ""
    lanes = handler.lanes
    register = f"i{lanes}"  # the type of a mask
    outputs, inputs = operation.outputs, operation.inputs
    places = [handler.operand(number) for number in range(len(outputs) + len(inputs))]
    # Mask inputs are read before the first chunk: a mask output may be the same register.
    masks = {
        number: places[len(outputs) + number].load(register)
        for number, kind in enumerate(inputs)
        if kind == MASK
    }
    mask_outputs = [number for number, kind in enumerate(outputs) if kind == MASK]
    body = operation.body
    assert body is not None

    def work(first: Value, mask: Value) -> list[Value]:
        """Emits the lanes from `first` on, as many as the mask has; returns the mask outputs."""
        chunk = mask.lanes
        context = Lanes(handler, first, chunk)
        arguments = []
        for number, kind in enumerate(inputs):
            if kind == MASK:
                bits = masks[number]
                if chunk != lanes:
                    bits = bits.lshr(first.trunc(register)).trunc(f"i{chunk}")
                arguments.append(bits.cast("i1", chunk))
            elif operation.split and kind == "i64":
                place = places[len(outputs) + number]
                arguments.append(read_pair(place, kinds[number], first, chunk))
            else:
                place = places[len(outputs) + number]
                arguments.append(read_vector(place, kind, kinds[number], first, chunk))
        if operation.accumulate:
            arguments.append(read_vector(places[0], outputs[0], "v", first, chunk))
        results = body(context, *arguments)
        if operation.split:
            for half, value in enumerate(results):
                store_row(places[0].at(half * ROW), first, value, mask)
            return []
        if not isinstance(results, tuple):
            results = (results,)
        collected = []
        for number, (kind, result) in enumerate(zip(outputs, results, strict=True)):
            if kind == MASK:
                bits = (result & mask).cast(f"i{chunk}", 0)
                if chunk != lanes:
                    bits = bits.zext(register) << first.trunc(register)
                collected.append(bits)
            else:
                under = None if operation.everywhere else mask
                write_vector(places[number], result, first, under, operation.keeps_high)
        return collected

    def end(totals: list[Value]) -> None:
        for number, total in zip(mask_outputs, totals, strict=True):
            places[number].store(total)
        handler.next()

    chunk, zero, mask = operation.chunk, handler.constant("i64", 0), handler.exec_mask()
    if chunk == LANES > lanes:
        end(work(zero, mask.trunc(register).cast("i1", lanes)))
    elif operation.everywhere and chunk == LANES:
        end(work(zero, mask.cast("i1", LANES)))
    elif chunk == LANES:
        # In a short wave no lane of the upper half is ever active.
        low, high = mask.trunc(f"i{HALF}"), mask.lshr(HALF).trunc(f"i{HALF}")
        lower = work(zero, low.cast("i1", HALF))

        def go_on() -> None:
            upper = work(handler.constant("i64", HALF), high.cast("i1", HALF))
            end([old | new for old, new in zip(lower, upper, strict=True)])

        handler.when(high.compare("ne", 0), go_on)
        end(lower)
    else:

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            first, left, *so_far = carried
            added = work(first, left.trunc(f"i{chunk}").cast("i1", chunk))
            after, left = first + chunk, left.lshr(chunk)
            more = after.compare("ult", lanes) if operation.everywhere else left.compare("ne", 0)
            sums = [old | new for old, new in zip(so_far, added, strict=True)]
            return [after, left, *sums], more

        none = handler.constant(register, 0)
        end(handler.loop([zero, mask, *(none for _ in mask_outputs)], turn)[2:])
    return handler


def emit_scalar(operation: Operation, name: str) -> Handler:
    """Emits a scalar handler. The body gets the handler and the source values, and returns the
    result, or the result and SCC, or (if there is no output) SCC alone: `detail` is "scc" if SCC is
    written."""
    handler = Handler(name)
    outputs = [handler.operand(number) for number in range(len(operation.outputs))]
    values = [
        handler.operand(len(outputs) + number).load(kind)
        for number, kind in enumerate(operation.inputs)
    ]
    if operation.accumulate:
        values.append(outputs[0].load(operation.outputs[0]))
    assert operation.body is not None
    result = operation.body(handler, *values)
    results = result if isinstance(result, tuple) else (result,)
    if operation.detail == "scc":
        *results, scc = results
        handler.set_scc(scc)
    for place, value in zip(outputs, results, strict=True):
        place.store(value.zext("i64") if name.endswith(TO_EXEC) else value)
    handler.next()
    return handler


def emit_custom(operation: Operation, name: str) -> Handler:
    """Emits a special case: its body emits the whole handler except its end."""
    handler = Handler(name)
    assert operation.body is not None
    operation.body(handler)
    handler.next()
    return handler
