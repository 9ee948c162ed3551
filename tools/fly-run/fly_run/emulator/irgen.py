"""A small typed builder of LLVM IR text.

A `Value` is an SSA value of `lanes` elements (0: a scalar) of type `element`; Python's operators
on it emit instructions. A Python number next to a value becomes a constant of its type, splatted.
`Function` holds the text; its `loop` and `when` are the only control flow that handlers need.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Union

INTEGERS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128}
FLOATS = {"half": 16, "float": 32, "double": 64}
AS_INTEGER = {"half": "i16", "float": "i32", "double": "i64"}

Number = Union["Value", int, float]


def spell(element: str, lanes: int) -> str:
    return f"<{lanes} x {element}>" if lanes else element


def constant(element: str, number: int | float) -> str:
    """Formats a scalar constant for LLVM; floats by their bits, so that nothing is rounded."""
    if element in INTEGERS:
        width = INTEGERS[element]
        if element == "i1":
            return "true" if number else "false"
        value = int(number) & ((1 << width) - 1)
        return str(value - (1 << width) if value >> (width - 1) else value)
    if element == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    if element == "float":
        # LLVM writes a float as the double of the same value.
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


class Value:
    """An SSA value. Integer operators have Python's spelling; those that depend on signedness are
    methods (`lshr`, `ashr`, `compare("slt", …)`, …)."""

    __slots__ = ("element", "function", "lanes", "name")

    def __init__(self, function: Function, element: str, lanes: int, name: str):
        self.function = function
        self.element = element
        self.lanes = lanes
        self.name = name

    @property
    def type(self) -> str:
        return spell(self.element, self.lanes)

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    def like(self, number: Number) -> Value:
        """Returns `number` as a value of this value's type."""
        if isinstance(number, Value):
            if number.lanes == self.lanes:
                return number
            if number.lanes == 0:
                return number.splat(self.lanes)
            raise TypeError(f"{number.type} does not go with {self.type}")
        return self.function.constant(self.element, number, self.lanes)

    def binary(self, opcode: str, other: Number) -> Value:
        other = self.like(other)
        if other.element != self.element:
            raise TypeError(f"{opcode} of {self.type} and {other.type}")
        if self.lanes == 0 and other.lanes:
            return self.splat(other.lanes).binary(opcode, other)
        text = f"{opcode} {self.type} {self.name}, {other.name}"
        return self.function.value(self.element, self.lanes, text)

    def _arithmetic(self, integer: str, floating: str, other: Number) -> Value:
        return self.binary(floating if self.is_float else integer, other)

    def __add__(self, other: Number) -> Value:
        return self._arithmetic("add", "fadd", other)

    def __sub__(self, other: Number) -> Value:
        return self._arithmetic("sub", "fsub", other)

    def __mul__(self, other: Number) -> Value:
        return self._arithmetic("mul", "fmul", other)

    def __truediv__(self, other: Number) -> Value:
        return self.binary("fdiv", other)

    def __rsub__(self, other: Number) -> Value:
        return self.like(other) - self

    def __rtruediv__(self, other: Number) -> Value:
        return self.like(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def __and__(self, other: Number) -> Value:
        return self.binary("and", other)

    def __or__(self, other: Number) -> Value:
        return self.binary("or", other)

    def __xor__(self, other: Number) -> Value:
        return self.binary("xor", other)

    def __lshift__(self, other: Number) -> Value:
        return self.binary("shl", other)

    def __invert__(self) -> Value:
        return self.binary("xor", -1)

    def __neg__(self) -> Value:
        if self.is_float:
            return self.function.value(self.element, self.lanes, f"fneg {self.type} {self.name}")
        return self.like(0) - self

    def lshr(self, other: Number) -> Value:
        return self.binary("lshr", other)

    def ashr(self, other: Number) -> Value:
        return self.binary("ashr", other)

    def compare(self, predicate: str, other: Number) -> Value:
        """Returns an i1 of the same lanes; the predicate is LLVM's (`eq`, `ult`, `slt`, `uno`,
        …)."""
        other = self.like(other)
        opcode = "fcmp" if self.is_float else "icmp"
        text = f"{opcode} {predicate} {self.type} {self.name}, {other.name}"
        return self.function.value("i1", self.lanes, text)

    def is_nan(self) -> Value:
        return self.compare("uno", self)

    def select(self, yes: Number, no: Number) -> Value:
        """Selects `yes` if this i1 is set, otherwise `no`; one of the two must be a Value."""
        if isinstance(yes, Value):
            no = yes.like(no)
        elif isinstance(no, Value):
            yes = no.like(yes)
        else:
            raise TypeError("select needs a typed operand")
        lanes = yes.lanes
        if self.lanes and not lanes:
            lanes, yes, no = self.lanes, yes.splat(self.lanes), no.splat(self.lanes)
        text = f"select {self.type} {self.name}, {yes.type} {yes.name}, {no.type} {no.name}"
        return self.function.value(yes.element, lanes, text)

    def convert(self, opcode: str, element: str) -> Value:
        """Converts with LLVM's opcode: `zext`, `sext`, `trunc`, `sitofp`, `fptrunc`, …"""
        if element == self.element and opcode != "bitcast":
            return self
        text = f"{opcode} {self.type} {self.name} to {spell(element, self.lanes)}"
        return self.function.value(element, self.lanes, text)

    def zext(self, element: str) -> Value:
        return self.convert("zext", element)

    def sext(self, element: str) -> Value:
        return self.convert("sext", element)

    def trunc(self, element: str) -> Value:
        return self.convert("trunc", element)

    def bits(self, element: str) -> Value:
        """Reinterprets the bits as another element type of the same width."""
        return self if element == self.element else self.convert("bitcast", element)

    def splat(self, lanes: int) -> Value:
        if self.lanes == lanes:
            return self
        one, vector = spell(self.element, 1), spell(self.element, lanes)
        function = self.function
        head = function.value(
            self.element, 1, f"insertelement {one} poison, {self.type} {self.name}, i32 0"
        )
        mask = f"<{lanes} x i32> zeroinitializer"
        text = f"shufflevector {one} {head.name}, {one} poison, {mask}"
        assert vector
        return function.value(self.element, lanes, text)

    def cast(self, element: str, lanes: int) -> Value:
        """A bitcast that also changes the number of lanes."""
        text = f"bitcast {self.type} {self.name} to {spell(element, lanes)}"
        return self.function.value(element, lanes, text)

    def at(self, offset: Number) -> Value:
        """Returns this pointer advanced by `offset` bytes."""
        index = offset if isinstance(offset, Value) else self.function.constant("i64", offset, 0)
        text = f"getelementptr i8, ptr {self.name}, {index.type} {index.name}"
        return self.function.value("ptr", 0, text)

    def load(self, element: str, lanes: int = 0, align: int = 0, volatile: bool = False) -> Value:
        suffix = f", align {align}" if align else ""
        kind = "load volatile" if volatile else "load"
        text = f"{kind} {spell(element, lanes)}, ptr {self.name}{suffix}"
        return self.function.value(element, lanes, text)

    def load_shared(self, element: str) -> Value:
        """Loads an aligned word atomically; other threads may be writing it."""
        align = INTEGERS.get(element, 64) // 8
        text = f"load atomic {element}, ptr {self.name} monotonic, align {align}"
        return self.function.value(element, 0, text)

    def store_shared(self, value: Value) -> None:
        """Stores an aligned word atomically; other threads may be reading it."""
        align = INTEGERS.get(value.element, 64) // 8
        text = f"store atomic {value.type} {value.name}, ptr {self.name} monotonic, align {align}"
        self.function.line(text)

    def take_ticket(self) -> Value:
        """Atomically increments an i64 shared with other threads; returns its old value."""
        return self.function.value("i64", 0, f"atomicrmw add ptr {self.name}, i64 1 monotonic")

    def store(self, value: Value, align: int = 0) -> None:
        suffix = f", align {align}" if align else ""
        self.function.line(f"store {value.type} {value.name}, ptr {self.name}{suffix}")


class Function:
    """The text of one function, emitted from its first block to its last."""

    def __init__(self, name: str, parameters: str, result: str = "void", attributes: str = "#0"):
        # In a symbol's name `@` would start its version.
        self.name = name.replace("@", ".")
        self.header = f'define {result} @"{self.name}"({parameters}) {attributes} {{'
        self.lines: list[str] = ["entry:"]
        self.label = "entry"
        self.declarations: set[str] = set()
        self._count = 0

    def text(self) -> str:
        return "\n".join([self.header, *self.lines, "}"])

    def fresh(self) -> str:
        self._count += 1
        return f"{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, element: str, lanes: int, text: str) -> Value:
        name = f"%v{self.fresh()}"
        self.line(f"{name} = {text}")
        return Value(self, element, lanes, name)

    def named(self, element: str, name: str) -> Value:
        """Returns a parameter or a global as a value."""
        return Value(self, element, 0, name)

    def constant(self, element: str, number: int | float, lanes: int = 0) -> Value:
        text = constant(element, number)
        return Value(self, element, lanes, f"splat ({element} {text})" if lanes else text)

    def vector(self, element: str, numbers: Iterable[int | float]) -> Value:
        """Returns a constant vector."""
        parts = [f"{element} {constant(element, number)}" for number in numbers]
        return Value(self, element, len(parts), f"<{', '.join(parts)}>")

    def call(self, name: str, element: str, *arguments: Value, lanes: int = 0) -> Value:
        listed = ", ".join(f"{a.type} {a.name}" for a in arguments)
        return self.value(element, lanes, f'call {spell(element, lanes)} @"{name}"({listed})')

    def intrinsic(
        self, name: str, *arguments: Value, result: Value | None = None, mangle: bool = True
    ) -> Value:
        """Calls an LLVM intrinsic; overloaded on the first argument's type unless `mangle` is
        off. The result has the type of `result`, by default that of the first argument."""
        first = arguments[0]
        shape = result or first
        if mangle:
            short = {"half": "f16", "float": "f32", "double": "f64"}.get(
                first.element, first.element
            )
            name = f"{name}.v{first.lanes}{short}" if first.lanes else f"{name}.{short}"
        types = ", ".join(a.type for a in arguments)
        self.declarations.add(f"declare {shape.type} @{name}({types})")
        listed = ", ".join(f"{a.type} {a.name}" for a in arguments)
        return self.value(shape.element, shape.lanes, f"call {shape.type} @{name}({listed})")

    def call_void(self, name: str, *arguments: Value, declare: bool = False) -> None:
        listed = ", ".join(f"{a.type} {a.name}" for a in arguments)
        if declare:
            types = ", ".join(a.type for a in arguments)
            self.declarations.add(f"declare void @{name}({types})")
        self.line(f'call void @"{name}"({listed})')

    # -- control flow

    def block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def branch(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch_if(self, condition: Value, yes: str, no: str) -> None:
        self.line(f"br i1 {condition.name}, label %{yes}, label %{no}")

    def when(self, condition: Value, body: Callable[[], None]) -> None:
        """Emits `body` under the scalar `condition`; `body` may end in a return."""
        number = self.fresh()
        yes, after = f"then{number}", f"after{number}"
        self.branch_if(condition, yes, after)
        self.block(yes)
        body()
        if not self.ended():
            self.branch(after)
        self.block(after)

    def choose(
        self,
        condition: Value,
        yes: Callable[[], Value],
        no: Callable[[], Value],
        label: str = "yes",
    ) -> Value:
        """Returns the value of one of two branches, of which the first is called `label`."""
        number = self.fresh()
        labels = f"{label}{number}", f"no{number}", f"join{number}"
        self.branch_if(condition, labels[0], labels[1])
        self.block(labels[0])
        first, first_end = yes(), self.label
        self.branch(labels[2])
        self.block(labels[1])
        second, second_end = no(), self.label
        self.branch(labels[2])
        self.block(labels[2])
        text = f"phi {first.type} [{first.name}, %{first_end}], [{second.name}, %{second_end}]"
        return self.value(first.element, first.lanes, text)

    def loop(
        self,
        carried: list[Value],
        body: Callable[[list[Value]], tuple[list[Value], Value]],
    ) -> list[Value]:
        """Runs `body` at least once. It gets the carried values and returns their next ones and the
        condition to continue. The result is the values after the last iteration."""
        number = self.fresh()
        head, after, before = f"loop{number}", f"done{number}", self.label
        self.branch(head)
        self.block(head)
        place = len(self.lines)
        inside = [Value(self, v.element, v.lanes, f"%v{self.fresh()}") for v in carried]
        following, go_on = body(inside)
        phis = [
            f"  {phi.name} = phi {phi.type} [{start.name}, %{before}], [{step.name}, %{self.label}]"
            for phi, start, step in zip(inside, carried, following, strict=True)
        ]
        self.branch_if(go_on, head, after)
        self.lines[place:place] = phis
        self.block(after)
        return following

    def for_lanes(self, mask: Value, body: Callable[[Value], None]) -> None:
        """Runs `body(lane)` for each set bit of the i64 `mask`, in ascending order; `lane` is an
        i64."""
        self.when(mask.compare("ne", 0), lambda: self.for_some_lanes(mask, body))

    def for_some_lanes(self, mask: Value, body: Callable[[Value], None]) -> None:
        """As `for_lanes`, of a mask that is known to have a bit."""

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            (left,) = carried
            false = self.constant("i1", 0)
            lane = self.intrinsic("llvm.cttz", left, false, mangle=True, result=left)
            body(lane)
            rest = left & (left - 1)
            return [rest], rest.compare("ne", 0)

        self.loop([mask], turn)

    def ended(self) -> bool:
        last = self.lines[-1].strip()
        return last.startswith(("ret", "br ", "unreachable"))

    def ret(self, value: Value | None = None) -> None:
        self.line(f"ret {value.type} {value.name}" if value else "ret void")


def void(_: object) -> None:
    """Discards a result, for callbacks that must return nothing."""
