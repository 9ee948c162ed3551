"""The steps of a program as code: what is known ahead, then one step after the other.

What is needed in any case is computed and checked before the first step (`interpreter.
needed_first`); there a failure is a miss. Loops and branches are blocks of LLVM: their variables
are on the stack, from where LLVM moves them into registers.
"""

from __future__ import annotations

from fly_host import program as made
from fly_host.native.emission import fitting, objects
from fly_host.native.emission.frame import ERROR, MISS, Frame, Value
from fly_host.native.emission.launches import Launches
from fly_host.native.emission.outputs import Outputs
from fly_host.program import Step
from fly_host.readers.interpreter import MOST_ITERATIONS, needed_first
from fly_host.readers.values import dependencies


class Steps:
    """The steps of a frame. `keep`: what the program frees stays until the launcher ends."""

    def __init__(self, frame: Frame, keep: bool = False):
        self.frame, self.code, self.keep = frame, frame.code, keep
        self.launches, self.outputs = self.parts()
        self.buffers = {t.name: t for t in frame.program.tensors if isinstance(t, made.Buffer)}
        self._depends = dependencies(frame.program.expressions)
        self._given = {parameter.name for parameter in frame.program.parameters}
        self._launched = self._called = 0  # steps so far, in the order of the text
        self._level = 0

    def parts(self) -> tuple[Launches, Outputs]:
        return Launches(self.frame), Outputs(self.frame)

    # -- before the first step

    def ahead(self) -> None:
        """Looks at all that can be known before the first step."""
        frame, code = self.frame, self.code
        together: str | None = None
        for step, indices in needed_first(frame.program):
            for index in indices:
                number = frame.number(index)
                together = code.both(together, number.ok)
                frame.assured.add(("value", index))
                if isinstance(step, made.Check):
                    together = code.both(together, code.value(f"icmp ne i64 {number.value}, 0"))
        if together is not None:
            code.require(together, MISS)
        together = None
        number = 0
        for step in frame.program.steps:
            if isinstance(step, made.Launch):
                limits = frame.specialisation.limits[number]
                if self.early(made.needs(step)):
                    for condition, _ in fitting.fits(frame, step, limits):
                        together = code.both(together, condition)
                    self.launches.known.add(number)
            elif isinstance(step, made.Allocate):
                buffer = self.buffers[step.buffer]
                if self.early((*buffer.shape, *buffer.strides, buffer.elements)):
                    together = code.both(together, self.outputs.ahead(buffer))
            number += sum(isinstance(inner, made.Launch) for inner in made.every_step((step,)))
        if together is not None:
            code.require(together, MISS)

    def early(self, indices: tuple[int, ...]) -> bool:
        return all(self._depends[index] <= self._given for index in indices)

    # -- steps

    def run(self, block: tuple[Step, ...]) -> None:
        for step in block:
            self.step(step)
        self.launches.flush()

    def step(self, step: Step) -> None:
        if isinstance(step, made.Launch):
            self.launches.launch(self._launched, step)
            self._launched += 1
        elif isinstance(step, made.Free):
            if not self.keep:
                self.launches.free(step.buffer)
        elif isinstance(step, made.Check):
            self.check(step)
        elif isinstance(step, made.Allocate):
            if step.buffer not in self.outputs.spans:
                self.launches.flush()
            self.outputs.allocate(self.buffers[step.buffer])
        else:
            self.launches.flush()
            if isinstance(step, made.Call):
                self._called += 1
                objects.call(self.frame, self._called - 1, step)
            elif isinstance(step, made.Loop):
                self.loop(step)
            else:
                self.branch(step)

    def check(self, check: made.Check) -> None:
        if self._level == 0 and self.early((check.condition,)):
            return
        self.launches.flush()
        value = self.frame.need(check.condition)
        numbers = (part for part in check.message if not isinstance(part, str))
        holds = self.code.value(f"icmp ne i64 {value}, 0")
        self.frame.demand(holds, ("check", check), (check.condition, *numbers))

    # -- control flow

    def loop(self, loop: made.Loop) -> None:
        frame, code = self.frame, self.code
        rooms = [code.room("i64") for _ in loop.carried]
        initial = [frame.need(carried.initial) for carried in loop.carried]
        for room, value in zip(rooms, initial, strict=True):
            code.store("i64", value, room)
        shelves = [_Shelf(frame, frame.tensors[carried.initial]) for carried in loop.tensors]
        for carried, shelf in zip(loop.tensors, shelves, strict=True):
            shelf.put(carried.variable, frame.tensors[carried.initial])
        counter = code.room("i64")
        code.store("i64", "0", counter)
        header, body, behind = (code.name(hint) for hint in ("header", "body", "behind"))
        code.jump(header)
        code.begin(header)
        numbers = [code.load("i64", room) for room in rooms]
        values = [shelf.get() for shelf in shelves]
        with self._inside():
            for carried, number in zip(loop.carried, numbers, strict=True):
                frame.variables[carried.variable] = number
            for carried, value in zip(loop.tensors, values, strict=True):
                frame.tensors[carried.variable] = value
            condition = frame.need(loop.condition)
            code.branch(code.value(f"icmp ne i64 {condition}, 0"), body, behind)
            code.begin(body)
            self._count(counter)
            self.run(loop.body)
            following = [frame.need(carried.next) for carried in loop.carried]
            for room, value in zip(rooms, following, strict=True):
                code.store("i64", value, room)
            tensors = [frame.tensors[carried.next] for carried in loop.tensors]
            # All at once: one may take the place of another.
            for value in tensors:
                frame.increased(value.object)
            for carried, shelf, value in zip(loop.tensors, shelves, tensors, strict=True):
                shelf.put(carried.variable, value, held=True)
            code.jump(header)
        code.begin(behind)
        for carried, number in zip(loop.carried, numbers, strict=True):
            frame.variables[carried.result] = number
        for carried, value in zip(loop.tensors, values, strict=True):
            frame.own(carried.result, frame.increased(value.object))
            frame.tensors[carried.result] = value

    def _count(self, counter: str) -> None:
        """Counts an iteration."""
        code = self.code
        count = code.value(f"add i64 {code.load('i64', counter)}, 1")
        code.store("i64", count, counter)
        ends = code.value(f"icmp sle i64 {count}, {MOST_ITERATIONS}")
        self.frame.demand(ends, ("endless", None), ())
        self.signals()

    def signals(self) -> None:
        """Runs the handlers of pending signals, so that Ctrl-C ends a loop."""
        status = self.code.value("call i32 @PyErr_CheckSignals()")
        self.code.require(self.code.value(f"icmp eq i32 {status}, 0"), ERROR)

    def branch(self, branch: made.Branch) -> None:
        frame, code = self.frame, self.code
        condition = frame.need(branch.condition)
        rooms = [code.room("i64") for _ in branch.integers]
        shelves: list[_Shelf] = []
        labels = {side: code.name(side) for side in ("then", "otherwise")}
        join = code.name("join")
        code.branch(code.value(f"icmp ne i64 {condition}, 0"), labels["then"], labels["otherwise"])
        for side, block in (("then", branch.then), ("otherwise", branch.otherwise)):
            code.begin(labels[side])
            with self._inside():
                self.run(block)
                values = [frame.need(getattr(chosen, side)) for chosen in branch.integers]
                for room, value in zip(rooms, values, strict=True):
                    code.store("i64", value, room)
                tensors = [frame.tensors[getattr(chosen, side)] for chosen in branch.tensors]
                shelves = shelves or [_Shelf(frame, value) for value in tensors]
                for chosen, shelf, value in zip(branch.tensors, shelves, tensors, strict=True):
                    shelf.put(chosen.result, value)
                code.jump(join)
        code.begin(join)
        for chosen, room in zip(branch.integers, rooms, strict=True):
            frame.variables[chosen.result] = code.load("i64", room)
        for chosen, shelf in zip(branch.tensors, shelves, strict=True):
            frame.tensors[chosen.result] = shelf.get()

    def _inside(self):
        """Code of a body."""
        return _Level(self)


class _Level:
    """The scope of a body, one level further in."""

    def __init__(self, steps: Steps):
        self.steps, self.scope = steps, steps.frame.scope()

    def __enter__(self) -> None:
        self.steps._level += 1
        self.scope.__enter__()

    def __exit__(self, *_: object) -> None:
        self.scope.__exit__(None, None, None)
        self.steps._level -= 1


class _Shelf:
    """A place on the stack for one of several tensors, all of one rank and dtype."""

    def __init__(self, frame: Frame, like: Value):
        self.frame, self.like = frame, like
        self.room = frame.code.room(f"[{3 + 2 * len(like.shape)} x i64]")

    def put(self, name: str, value: Value, held: bool = False) -> None:
        """`name` gets a reference; `held`: it was counted already."""
        code = self.frame.code
        if not held:
            self.frame.increased(value.object)
        code.store("ptr", value.object, self.room)
        code.store("ptr", value.data, self.room, 8)
        for position, number in enumerate((value.elements, *value.shape, *value.strides)):
            code.store("i64", number, self.room, 16 + 8 * position)
        self.frame.own(name, value.object)

    def get(self) -> Value:
        code, rank = self.frame.code, len(self.like.shape)
        elements = code.load("i64", self.room, 16)
        numbers = [code.load("i64", self.room, 24 + 8 * place) for place in range(2 * rank)]
        return Value(
            code.load("ptr", self.room),
            code.load("ptr", self.room, 8),
            tuple(numbers[:rank]),
            tuple(numbers[rank:]),
            self.like.dtype,
            elements,
        )
