"""The host program: what a host function does, as data inside the image.

A program binds arguments by name, computes integers, checks them, allocates tensors, launches
kernels, calls library functions and returns tensors. `fly-opt-py` writes it into the section
`.fly.manifest`; `fly-run` and the library read it (`fly_host.text`). An interpreter
(`fly_host.readers.interpreter`), generated Python (`fly_host.readers.python_code`) and native code
(`fly_host.native`) run it, and give the same results and the same errors.

Integers are a graph of expressions. An expression is a tuple `(op, …)`; operands are indices of
earlier expressions:

    ("const", 256)                 a 64-bit integer
    ("extent", "A", 0)             extent of dimension 0 of tensor A, in elements
    ("stride", "A", 0)             its stride, in elements
    ("scalar", "n")                an integer scalar argument
    ("variable", 3)                a variable of a loop, or a result of a loop or branch
    ("add"|"sub"|"mul"|"floordiv"|"ceildiv"|"truncdiv"|"mod"|"rem"|"min"|"max"|"and"|"or"|"xor"|
     "shl"|"shr"|"eq"|"ne"|"lt"|"le", a, b)
    ("select", c, a, b)

floordiv and mod are Python's; truncdiv and rem are C's. Integers are mathematical: a value that
leaves 64 bits, a division by zero and a shift by less than 0 or more than 63 have no value. That is
an error where the value is needed; the branch of a `select` that is not chosen is not needed.

Variables are in single assignment form. A variable is visible in the body of its loop, a result in
the steps behind its loop or branch. The same holds for the names of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from fly_common.record import record

VERSION = 3

Expression: TypeAlias = tuple[Any, ...]
Triple: TypeAlias = tuple[int, int, int]

# Number of operands of each operator that has expressions as operands.
BINARY = frozenset(
    (
        *("add", "sub", "mul", "floordiv", "ceildiv", "truncdiv", "mod", "rem", "min", "max"),
        *("and", "or", "xor", "shl", "shr"),
        *("eq", "ne", "lt", "le"),
    )
)
LEAVES = frozenset(("const", "extent", "stride", "scalar", "variable"))


# -- parameters
@record
class Tensor:
    """A tensor parameter. An extent is a number, a symbol shared between parameters, or None
    (any); a stride is a number or None (any). `access` is "r", "w" or "rw". `multiples` holds the
    divisors that kernels rely on: of each extent, then of each stride; it is empty where they rely
    on none. `alignment` is in bytes, that of element zero, where it is more than the element
    type's; else it is 0."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]
    strides: tuple[int | None, ...]
    access: str = "rw"
    contiguous: bool = False  # strides must be those of a C-contiguous array of this shape
    multiples: tuple[int, ...] = ()
    alignment: int = 0


@record
class Scalar:
    """A scalar parameter; `default` is used where the caller gives none."""

    name: str
    dtype: str
    default: int | float | bool | None = None


@record
class Stream:
    """A stream parameter, which launches may be ordered by. It may be left out: launches are then
    in the device's current stream."""

    name: str


Parameter: TypeAlias = Tensor | Scalar | Stream


# -- tensors that the program makes
@record
class Buffer:
    """A tensor that the program allocates, or that a library call makes. `shape`, `strides` (in
    elements) and `elements`, the number of elements to allocate, are expressions."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int


@record
class Assigned:
    """A tensor by another name: a variable of a loop, or a result of a loop or branch. It stands
    for one of several tensors, all of this dtype and rank."""

    name: str
    dtype: str
    rank: int


@record
class View:
    """Elements of a tensor: `offset`, `shape` and `strides`, in elements, are expressions."""

    tensor: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


# -- operands of library calls, and results
@record
class Operand:
    """A value that leaves the program. `kind` is "tensor" (a name), "view" (a View), "integer" (an
    expression), "scalar" (a scalar parameter's name) or "constant" (None, a bool, a number, a
    string, or a tuple of these)."""

    kind: str
    value: Any


Result: TypeAlias = "Operand | tuple[Result, ...] | None"


# -- steps
@record
class TileDescriptor:
    """How a device copies tiles of a tensor. Modes are listed from the innermost one out, whose
    elements are adjacent: `shape` and `strides` (in elements, without the innermost one) are
    expressions; `box` is what one instruction copies; `swizzle` is the bytes of a row of shared
    memory whose groups of 16 bytes are permuted, or 0. `dtype` is MLIR's name of the element
    type. With `rounded`, elements are rounded, as they are loaded, to the format that the device's
    matrix instructions take for it."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    rounded: bool = False

    @property
    def expressions(self) -> tuple[int, ...]:
        return *self.shape, *self.strides


@record
class Word:
    """A piece of a kernel argument: the address of a tensor (`pointer`; plus `expression` bytes,
    if there is one), an integer expression in `size` bytes (`integer`), the scalar parameter
    `name` as its dtype (`scalar`), or a device's description of a tensor in `size` bytes
    (`descriptor`)."""

    kind: str
    name: str | None = None
    expression: int | None = None
    size: int = 8
    descriptor: TileDescriptor | None = None

    @property
    def expressions(self) -> tuple[int, ...]:
        """The expressions that it uses."""
        own = () if self.expression is None else (self.expression,)
        return own if self.descriptor is None else (*own, *self.descriptor.expressions)


@record
class Check:
    """Ends the program with an InputError unless `condition` is true. Numbers in `message` are
    expressions, whose values are shown."""

    condition: int
    message: tuple[str | int, ...]


@record
class Allocate:
    """Allocates the Buffer `buffer`. Its memory is not initialised."""

    buffer: str


@record
class Free:
    """Frees a Buffer: no later step uses it."""

    buffer: str


@record
class Launch:
    """One kernel launch. `grid` and `block` are x, y, z: the number of workgroups and of work
    items in each; `shared` is the dynamic shared memory (AMD: LDS) in bytes. All are expressions.
    `arguments` holds, for each kernel argument, its words, packed without gaps. `stream` names a
    Stream."""

    kernel: str
    grid: Triple
    block: Triple
    shared: int
    arguments: tuple[tuple[Word, ...], ...]
    stream: str | None = None


@record
class Call:
    """Calls a registered library function (`fly_host.library`). `results` are Buffers that it
    makes, with the shapes that its shape rule gave."""

    function: str
    arguments: tuple[Operand, ...]
    keywords: tuple[tuple[str, Operand], ...] = ()
    results: tuple[str, ...] = ()


@record
class Carried:
    """An integer variable of a loop: `initial` before it, `next` after each iteration; `result` is
    the variable that holds the last value behind the loop."""

    variable: int
    initial: int
    next: int
    result: int


@record
class CarriedTensor:
    """The same for tensors, by their names; `variable` and `result` are Assigned."""

    variable: str
    initial: str
    next: str
    result: str


@record
class Loop:
    """Runs `body` as long as `condition`, which may use the variables, is true."""

    carried: tuple[Carried, ...]
    tensors: tuple[CarriedTensor, ...]
    condition: int
    body: tuple[Step, ...]


@record
class Chosen:
    """An integer result of a branch: the variable, and the expressions of its two sides."""

    result: int
    then: int
    otherwise: int


@record
class ChosenTensor:
    """The same for tensors; `result` is an Assigned."""

    result: str
    then: str
    otherwise: str


@record
class Branch:
    """Runs `then` if `condition` is true, else `otherwise`."""

    condition: int
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]
    integers: tuple[Chosen, ...] = ()
    tensors: tuple[ChosenTensor, ...] = ()


Step: TypeAlias = "Check | Allocate | Free | Launch | Call | Loop | Branch"


@record
class Program:
    """A host program for one target. `tensors` are the Buffers and Assigned that steps name.
    `result_names` has a name for each operand of `results`, for callers who ask by name: that of
    the Python variable that is returned, else "result" or "result0", "result1", …"""

    entry: str
    target: str
    parameters: tuple[Parameter, ...]
    expressions: tuple[Expression, ...]
    steps: tuple[Step, ...]
    tensors: tuple[Buffer | Assigned, ...] = ()
    results: Result = None
    result_names: tuple[str, ...] = ()
    version: int = VERSION

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name."""
        return next((p for p in self.parameters if p.name == name), None)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches, those in loops and branches too, in the order of the text."""
        return tuple(step for step in every_step(self.steps) if isinstance(step, Launch))

    @property
    def named_results(self) -> dict[str, Operand]:
        """The operands of the result by name, without those that are parameters themselves."""
        given = {parameter.name for parameter in self.parameters}
        pairs = zip(self.result_names, leaves(self.results), strict=True)
        return {name: operand for name, operand in pairs if operand.value not in given}


def every_step(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps, each before those that it contains."""
    for step in steps:
        yield step
        if isinstance(step, Loop):
            yield from every_step(step.body)
        elif isinstance(step, Branch):
            yield from every_step(step.then)
            yield from every_step(step.otherwise)


def needs(step: Step) -> tuple[int, ...]:
    """The expressions that a step itself uses, not those of the steps that it contains. A loop's
    condition and next values, and a branch's results, belong to what they contain."""
    if isinstance(step, Check):
        return (step.condition,)
    if isinstance(step, Launch):
        words = (word for argument in step.arguments for word in argument)
        used = (index for word in words for index in word.expressions)
        return (*step.grid, *step.block, step.shared, *used)
    if isinstance(step, Call):
        operands = (*step.arguments, *(operand for _, operand in step.keywords))
        return tuple(used for operand in operands for used in of_operand(operand))
    if isinstance(step, Loop):
        return tuple(carried.initial for carried in step.carried)
    if isinstance(step, Branch):
        return (step.condition,)
    return ()


def used_by(step: Step) -> tuple[int, ...]:
    """All the expressions that a step names itself, those of its variables and its message too."""
    used = needs(step)
    if isinstance(step, Check):
        return (*used, *(part for part in step.message if not isinstance(part, str)))
    if isinstance(step, Loop):
        return (*used, step.condition, *(carried.next for carried in step.carried))
    if isinstance(step, Branch):
        sides = ((chosen.then, chosen.otherwise) for chosen in step.integers)
        return (*used, *(side for pair in sides for side in pair))
    return used


def made_by(step: Step) -> tuple[str, ...]:
    """The Buffers that a step makes."""
    if isinstance(step, Allocate):
        return (step.buffer,)
    return step.results if isinstance(step, Call) else ()


def of_operand(operand: Operand) -> tuple[int, ...]:
    """The expressions that an operand uses."""
    if operand.kind == "integer":
        return (operand.value,)
    if operand.kind == "view":
        view: View = operand.value
        return (*view.shape, *view.strides, view.offset)
    return ()


def leaves(result: Result) -> Iterator[Operand]:
    """The operands of a result, from left to right."""
    if isinstance(result, tuple):
        for part in result:
            yield from leaves(part)
    elif result is not None:
        yield result
