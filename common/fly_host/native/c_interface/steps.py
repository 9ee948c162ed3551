"""The steps of a program in code with a C interface."""

from __future__ import annotations

from fly_host import program as made
from fly_host import refusals
from fly_host.native.c_interface.frame import CFrame
from fly_host.native.emission import fitting
from fly_host.native.emission.frame import ERROR, Value
from fly_host.native.emission.launches import Launches, Packed
from fly_host.native.emission.marks import integer, mark
from fly_host.native.emission.outputs import Outputs
from fly_host.native.emission.steps import Steps
from fly_host.program import Buffer, Launch
from fly_host.readers.interpreter import needed_first


class CSteps(Steps):
    """The steps of a frame. Whatever is wrong is looked at in the interpreter's order."""

    frame: CFrame

    def parts(self) -> tuple[Launches, Outputs]:
        return CLaunches(self.frame), COutputs(self.frame)

    def ahead(self) -> None:
        frame = self.frame
        numbers = {id(step): number for number, step in enumerate(frame.program.launches)}
        for step, indices in needed_first(frame.program):
            if isinstance(step, made.Check):
                value = frame.need(step.condition)
                holds = self.code.value(f"icmp ne i64 {value}, 0")
                frame.demand(holds, ("check", step), ())
            for index in indices:
                frame.need(index)
            if isinstance(step, Launch) and len(indices) == len(made.needs(step)):
                number = numbers[id(step)]
                self.launches.check(number, step)
                self.launches.known.add(number)

    def signals(self) -> None:
        """A process without Python has its own."""


class CLaunches(Launches):
    """Launches by the runtime library."""

    frame: CFrame

    def check(self, number: int, launch: Launch) -> None:
        if number not in self.known:
            for condition, words in fitting.fits(self.frame, launch, self.limits(number)):
                self.frame.refuse(condition, words)

    def _driver(self, number: int, launch: Launch, packed: Packed) -> None:
        code = self.code
        dimensions = ", ".join(
            f"i32 {code.value(f'trunc i64 {value} to i32')}" for value in packed.numbers
        )
        run, ready = code.name("run"), code.name("ready")
        code.branch(packed.some, run, ready)
        code.begin(run)
        status = code.value(
            f"call i32 @fly_launch(ptr %table, i32 {number}, {dimensions},"
            f" ptr {self.handles[launch.stream]}, ptr {packed.arguments}, i64 {packed.nbytes})"
        )
        code.branch(code.value(f"icmp eq i32 {status}, 0"), ready, ERROR)
        code.begin(ready)


class COutputs(Outputs):
    """Tensors that the program makes, in blocks of the runtime library."""

    frame: CFrame

    def allocate(self, buffer: Buffer) -> None:
        frame, code, name = self.frame, self.code, buffer.name
        shape = tuple(frame.need(index) for index in buffer.shape)
        strides = tuple(frame.need(index) for index in buffer.strides)
        elements = frame.need(buffer.elements)
        told = mark("tuple", *shape)
        for number in (*shape, elements):
            sound = code.value(f"icmp sge i64 {number}, 0")
            frame.refuse(sound, refusals.made_shape(name, told, integer(elements)))
        rooms = code.integers(list(shape)), code.integers(list(strides))
        span = code.value(f"call i64 @span(i64 {len(shape)}, ptr {rooms[0]}, ptr {rooms[1]})")
        text = refusals.made_strides(name, told, mark("tuple", *strides), integer(elements))
        frame.refuse(code.value(f"icmp sge i64 {span}, 0"), text)
        frame.refuse(code.value(f"icmp sle i64 {span}, {elements}"), text)
        value = Value("null", "null", shape, strides, buffer.dtype, elements)
        size = f"i64 {elements}, i64 {value.itemsize}"
        pair = code.value(f"call {{i64, i1}} @llvm.smul.with.overflow.i64({size})")
        fits = code.value(f"xor i1 {code.value(f'extractvalue {{i64, i1}} {pair}, 1')}, true")
        frame.refuse(fits, refusals.made_shape(name, told, integer(elements)))
        count = code.value(f"extractvalue {{i64, i1}} {pair}, 0")
        block = f"call ptr @fly_allocate(ptr %table, i64 {count}, ptr {frame.text(name)})"
        object = frame.succeed(code.value(block))
        frame.own(name, object)
        data = code.load("ptr", object)
        frame.tensors[name] = Value(object, data, shape, strides, buffer.dtype, elements)
