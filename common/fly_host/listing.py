"""A program as text for people: `fly-opt-py --emit host`, `fly-run --inspect`.

    program scale for gfx942
    inputs
      A  f32[n], read and written
    integers
      %0 = ceildiv(A.shape[0], 256)
    tensors
      T  f32[A.shape[0]] strides [1], A.shape[0] elements
    steps
      allocate T
      launch k(A, (A.shape[0]), T)
        grid %0, block 256
      free T
    returns A

Integers stand where they are used; those that are long, or used again, have a name. A program has
one listing, and nothing reads it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fly_host import program as made
from fly_host.integers import INFIX
from fly_host.program import Operand, Program, Result, Step, every_step, leaves

LONGEST = 60  # characters of an integer without a name
LONGEST_SHARED = 16  # of one that is used more than once
_ACCESS = {"r": "read", "w": "written", "rw": "read and written"}


def listing(program: Program) -> str:
    """The text of a program, line by line."""
    return "\n".join(_Listing(program).lines()) + "\n"


class _Listing:
    def __init__(self, program: Program):
        self.program = program
        self.named: list[tuple[str, str]] = []
        self.texts: list[str] = []
        uses = _uses(program)
        for index, expression in enumerate(program.expressions):
            text = self.formula(expression)
            is_long = len(text) > LONGEST or (uses[index] > 1 and len(text) > LONGEST_SHARED)
            if is_long and expression[0] not in made.LEAVES:
                name = f"%{len(self.named)}"
                self.named.append((name, _bare(text)))
                text = name
            self.texts.append(text)

    def lines(self) -> Iterator[str]:
        program = self.program
        yield f"program {program.entry} for {program.target}"
        buffers = [one for one in program.tensors if isinstance(one, made.Buffer)]
        width = max((len(one.name) for one in (*program.parameters, *buffers)), default=0)
        if program.parameters:
            yield "inputs"
        for parameter in program.parameters:
            yield f"  {parameter.name:<{width}}  {describe(parameter)}"
        if self.named:
            yield "integers"
        for name, text in self.named:
            yield f"  {name} = {text}"
        if buffers:
            yield "tensors"
        for buffer in buffers:
            yield f"  {buffer.name:<{width}}  {self.buffer(buffer)}"
        yield "steps"
        yield from self.steps(program.steps, "  ")
        if program.results is not None:
            names = ", ".join(program.result_names)
            shown = ", ".join(_shown_names(program.results))
            said = f" as {names}" if names != shown else ""
            yield f"returns {self.result(program.results, True)}{said}"

    # -- integers

    def formula(self, expression: made.Expression) -> str:
        op, *operands = expression
        if op in ("const", "scalar"):
            return str(operands[0])
        if op == "variable":
            return f"v{operands[0]}"
        if op in ("extent", "stride"):
            return f"{operands[0]}.{'shape' if op == 'extent' else 'strides'}[{operands[1]}]"
        shown = [self.texts[operand] for operand in operands]
        if op in INFIX:
            return f"({shown[0]} {INFIX[op]} {shown[1]})"
        return f"{op}({', '.join(map(_bare, shown))})"

    def integer(self, index: int) -> str:
        return _bare(self.texts[index])

    def several(self, indices: tuple[int, ...]) -> str:
        return ", ".join(map(self.integer, indices))

    def size(self, triple: made.Triple) -> str:
        """A grid or block: without the ones at its end."""
        shown = [self.integer(index) for index in triple]
        while len(shown) > 1 and shown[-1] == "1":
            shown.pop()
        return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"

    # -- tensors and results

    def buffer(self, buffer: made.Buffer) -> str:
        return (
            f"{buffer.dtype}[{self.several(buffer.shape)}] strides"
            f" [{self.several(buffer.strides)}], {self.integer(buffer.elements)} elements"
        )

    def operand(self, operand: Operand) -> str:
        if operand.kind == "integer":
            return self.integer(operand.value)
        if operand.kind == "view":
            view: made.View = operand.value
            return (
                f"{view.tensor} at {self.integer(view.offset)}: [{self.several(view.shape)}]"
                f" strides [{self.several(view.strides)}]"
            )
        return repr(operand.value) if operand.kind == "constant" else str(operand.value)

    def result(self, result: Result, outermost: bool = False) -> str:
        if isinstance(result, tuple):
            inner = ", ".join(self.result(part) for part in result)
            inner += "," if len(result) == 1 else ""
            return inner if outermost and result else f"({inner})"
        return "None" if result is None else self.operand(result)

    # -- steps

    def steps(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        for step in steps:
            for line in self.step(step):
                yield indent + line

    def step(self, step: Step) -> Iterator[str]:
        if isinstance(step, made.Check):
            parts = (p if isinstance(p, str) else f"{{{self.integer(p)}}}" for p in step.message)
            yield f'check {self.integer(step.condition)} else "{"".join(parts)}"'
        elif isinstance(step, made.Allocate):
            yield f"allocate {step.buffer}"
        elif isinstance(step, made.Free):
            yield f"free {step.buffer}"
        elif isinstance(step, made.Launch):
            yield f"launch {step.kernel}({', '.join(map(self.argument, step.arguments))})"
            shared = self.integer(step.shared)
            told = [f"grid {self.size(step.grid)}", f"block {self.size(step.block)}"]
            told += [f"dynamic shared memory {shared}"] if shared != "0" else []
            told += [f"stream {step.stream}"] if step.stream is not None else []
            yield f"  {', '.join(told)}"
        elif isinstance(step, made.Call):
            given = [self.operand(operand) for operand in step.arguments]
            given += [f"{name}={self.operand(operand)}" for name, operand in step.keywords]
            results = f"{', '.join(step.results)} = " if step.results else ""
            yield f"call {results}{step.function}({', '.join(given)})"
        elif isinstance(step, made.Loop):
            yield from self.loop(step)
        else:
            yield from self.branch(step)

    def argument(self, words: tuple[made.Word, ...]) -> str:
        shown = [self.word(word) for word in words]
        is_struct = len(words) != 1 or words[0].kind == "integer"
        return f"({', '.join(shown)})" if is_struct else shown[0]

    def word(self, word: made.Word) -> str:
        if word.kind == "integer" and word.expression is not None:
            if word.size == 8:
                return self.integer(word.expression)
            return f"{self.texts[word.expression]} as i{8 * word.size}"
        if (found := word.descriptor) is not None:
            box = "×".join(map(str, found.box))
            swizzle = f", swizzle {found.swizzle}" if found.swizzle else ""
            rounded = ", rounded" if found.rounded else ""
            return f"tiles of {word.name} (box {box}{swizzle}{rounded})"
        offset = "" if word.expression is None else f" + {self.texts[word.expression]}"
        return f"{word.name}{offset}"

    def loop(self, loop: made.Loop) -> Iterator[str]:
        carried = [f"v{one.variable} = {self.integer(one.initial)}" for one in loop.carried]
        carried += [f"{one.variable} = {one.initial}" for one in loop.tensors]
        yield f"loop {', '.join(carried)} while {self.integer(loop.condition)}"
        yield from self.steps(loop.body, "  ")
        following = [f"v{one.variable} = {self.integer(one.next)}" for one in loop.carried]
        following += [f"{one.variable} = {one.next}" for one in loop.tensors]
        if following:
            yield f"  next {', '.join(following)}"
            results = [f"v{one.result} = v{one.variable}" for one in loop.carried]
            results += [f"{one.result} = {one.variable}" for one in loop.tensors]
            yield f"  last {', '.join(results)}"

    def branch(self, branch: made.Branch) -> Iterator[str]:
        yield f"if {self.integer(branch.condition)}"
        for word, steps, side in (
            ("", branch.then, "then"),
            ("else", branch.otherwise, "otherwise"),
        ):
            chosen = [
                f"v{one.result} = {self.integer(getattr(one, side))}" for one in branch.integers
            ]
            chosen += [f"{one.result} = {getattr(one, side)}" for one in branch.tensors]
            if word and (steps or chosen):
                yield word
            yield from self.steps(steps, "  ")
            if chosen:
                yield f"  gives {', '.join(chosen)}"


def describe(parameter: made.Parameter) -> str:
    """`f32[n,4], read, contiguous`."""
    if isinstance(parameter, made.Stream):
        return "a stream"
    if isinstance(parameter, made.Scalar):
        default = parameter.default
        # As the f32 that it is: 1e-05, not its digits as a double.
        shown = f"{default:.7g}" if isinstance(default, float) else default
        return parameter.dtype + ("" if default is None else f", {shown} by default")
    shape = ", ".join("?" if extent is None else str(extent) for extent in parameter.shape)
    told = f"{parameter.dtype}[{shape}], {_ACCESS[parameter.access]}"
    told += f", aligned to {parameter.alignment} bytes" if parameter.alignment else ""
    if parameter.contiguous:
        return f"{told}, contiguous"
    strides = ", ".join("?" if stride is None else str(stride) for stride in parameter.strides)
    return f"{told}, strides [{strides}]" if parameter.strides else told


def _bare(text: str) -> str:
    """An integer's text without the parentheses around it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 else text
    return text


def _shown_names(result: Result) -> list[str]:
    """The names that a listing of the result shows without being told them."""
    return [str(one.value) if one.kind in ("tensor", "scalar") else "" for one in leaves(result)]


def _uses(program: Program) -> Counter[int]:
    """How often each integer is used."""
    found: Counter[int] = Counter()
    for expression in program.expressions:
        if expression[0] not in made.LEAVES:
            found.update(expression[1:])
    for step in every_step(program.steps):
        found.update(made.used_by(step))
    for tensor in program.tensors:
        if isinstance(tensor, made.Buffer):
            found.update((*tensor.shape, *tensor.strides, tensor.elements))
    for operand in leaves(program.results):
        found.update(made.of_operand(operand))
    return found
