"""The frame of code with a C interface. It has the record of the call at `%table` (`fly_link`'s
runtime, "Call"): the device, the stream, the status of what failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fly_host import refusals
from fly_host.native.c_interface import value_errors
from fly_host.native.emission import marks
from fly_host.native.emission.frame import MISS, Frame

DEVICE, STREAM, STATUS = 0, 8, 16  # offsets in the record
CALL_BYTES = 128

DECLARATIONS = """\
declare void @fly_say(ptr) #0
declare void @fly_say_number(i64) #0
declare void @fly_say_array(ptr, i64) #0
declare void @fly_say_triple(ptr) #0
declare void @fly_say_dtype(i32) #0
declare void @fly_say_place(i64) #0
declare void @fly_say_float(double) #0
declare ptr @fly_strides(ptr, ptr) #0
declare zeroext i1 @fly_apart(i64, ptr, ptr) #0
declare zeroext i1 @fly_half(float, ptr) #0
declare zeroext i1 @fly_bfloat(float, ptr) #0
declare void @fly_bound(ptr, ptr, ptr, i64, i64, i32) #0
declare ptr @fly_allocate(ptr, i64, ptr) #0
declare void @fly_hold(ptr) #0
declare void @fly_drop(ptr) #0
declare i32 @fly_launch(ptr, i32, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, i64) #0
declare i32 @fly_result(ptr, ptr, ptr, i32, i32, ptr, ptr, ptr) #0
declare i64 @llvm.abs.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


@dataclass
class CFrame(Frame):
    """`texts` are the strings of the module, by content."""

    texts: dict[str, str] = field(default_factory=dict)
    retain: ClassVar[str] = "@fly_hold"
    release: ClassVar[str] = "@fly_drop"

    def inner(self) -> Frame:
        return CFrame(self.specialisation, self.way, slots=self.slots, texts=self.texts)

    def expect(self, conditions: list[str], condition: str, words: Callable[[], str]) -> None:
        self.refuse(condition, words())

    def refuse(self, condition: str, text: str) -> None:
        """Ends the call with a text, which may have marks, unless the condition holds."""
        code = self.code
        bad, good = code.name("bad"), code.name("good")
        code.branch(condition, good, bad)
        code.begin(bad)
        self.say(text)
        code.jump(MISS)
        code.begin(good)

    def demand(self, condition: str, site: Any, indices: tuple[int, ...]) -> None:
        kind, what = site
        if kind == "value":
            code = self.code
            bad, good = code.name("bad"), code.name("good")
            code.branch(condition, good, bad)
            value_errors.write(self, what, bad)
            code.begin(good)
        elif kind == "check":
            shown = (
                part if isinstance(part, str) else marks.integer(self.number(part).value)
                for part in what.message
            )
            self.refuse(condition, "".join(shown))
        else:
            assert kind == "endless", kind
            self.refuse(condition, refusals.endless(self.program.entry))

    # -- texts
    def text(self, content: str) -> str:
        """The address of a string."""
        return self.texts.setdefault(content, f"@text.{len(self.texts)}")

    def say(self, text: str) -> None:
        """Adds to the error's text."""
        code = self.code
        for kind, values in marks.parts(text):
            if kind == "text":
                code.do(f"call void @fly_say(ptr {self.text(values[0])})")
            elif kind in ("tuple", "triple"):
                room = code.integers(list(values))
                count = f", i64 {len(values)}" if kind == "tuple" else ""
                name = "array" if kind == "tuple" else "triple"
                code.do(f"call void @fly_say_{name}(ptr {room}{count})")
            elif kind == "array":
                code.do(f"call void @fly_say_array(ptr {values[0]}, i64 {values[1]})")
            else:
                type = {"dtype": "i32", "float": "double"}.get(kind, "i64")
                code.do(f"call void @fly_say_{kind}({type} {values[0]})")

    def constants(self) -> str:
        """The strings as globals."""
        lines = []
        for content, name in self.texts.items():
            data = content.encode() + b"\0"
            shown = "".join(f"\\{byte:02X}" for byte in data)
            lines.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{shown}"\n')
        return "".join(lines)
