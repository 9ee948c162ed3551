"""Whether a host program makes sense: names, indices, scopes. Raises ValueError where not."""

from __future__ import annotations

from typing import TypeGuard

from fly_common.quoting import quoted
from fly_common.record import field, record
from fly_numerics.element_types import ELEMENT_TYPES

from fly_host import program as made
from fly_host.program import BINARY, Operand, Program, Scalar, Step, Stream, Tensor

# Of tensors: those that arrays contain, also types in which nothing is computed.
TENSOR_DTYPES = frozenset(name for name, row in ELEMENT_TYPES.items() if row.numpy)
DTYPES = frozenset(name for name in TENSOR_DTYPES if ELEMENT_TYPES[name].computes)
WORD_SIZES = (1, 2, 4, 8)
DESCRIPTOR_BYTES = 128
MOST_NESTED = 64  # levels of loops and branches


def is_number(value: object, low: int = -(2**63)) -> TypeGuard[int]:
    """Whether it is an integer that fits 64 bits; JSON's true and false are none."""
    return type(value) is int and low <= value < 2**63


def validate(program: Program) -> None:
    """Raises ValueError where the program refers to what does not exist, or not yet."""
    _Validation(program).run()


@record(frozen=False)
class _Validation:
    program: Program
    ranks: dict[str, int] = field(default_factory=dict)  # of all tensors
    dtypes: dict[str, str] = field(default_factory=dict)
    scalars: set[str] = field(default_factory=set)
    streams: set[str] = field(default_factory=set)
    # What each expression depends on: variables, and tensors by name.
    depends: list[frozenset[int | str]] = field(default_factory=list)
    # What can be used where the walk is.
    tensors: set[str] = field(default_factory=set)
    variables: set[int] = field(default_factory=set)
    every_variable: set[int] = field(default_factory=set)
    freed: set[str] = field(default_factory=set)

    def run(self) -> None:
        for parameter in self.program.parameters:
            self.parameter(parameter)
        for tensor in self.program.tensors:
            self.declare(tensor.name)
            if tensor.dtype not in TENSOR_DTYPES:
                raise ValueError(f"tensor {tensor.name}: unknown dtype {quoted(tensor.dtype)}")
            rank = tensor.rank if isinstance(tensor, made.Assigned) else len(tensor.shape)
            if not is_number(rank, 0):
                raise ValueError(f"tensor {tensor.name}: bad rank")
            self.ranks[tensor.name], self.dtypes[tensor.name] = rank, tensor.dtype
        self.tensors = {p.name for p in self.program.parameters if isinstance(p, Tensor)}
        for index, expression in enumerate(self.program.expressions):
            self.expression(index, expression)
        self.steps(self.program.steps, 0)
        results = list(made.leaves(self.program.results))
        for operand in results:
            self.operand("the result", operand)
        self.result_names(self.program.result_names, results)

    def declare(self, name: str) -> None:
        if name in self.ranks or name in self.scalars or name in self.streams:
            raise ValueError(f"two parameters or tensors are called {quoted(name)}")

    def result_names(self, names: tuple[str, ...], results: list[Operand]) -> None:
        if len(names) != len(results) or len(set(names)) != len(names):
            raise ValueError("the results' names are not one each")
        given = {parameter.name for parameter in self.program.parameters}
        for name, operand in zip(names, results, strict=True):
            if name in given and operand.value != name:
                raise ValueError(f"a result is called {quoted(name)}, as a parameter is")

    # -- parameters

    def parameter(self, parameter: made.Parameter) -> None:
        name = parameter.name
        self.declare(name)
        if isinstance(parameter, Stream):
            self.streams.add(name)
            return
        allowed = TENSOR_DTYPES if isinstance(parameter, Tensor) else DTYPES
        if parameter.dtype not in allowed:
            raise ValueError(f"parameter {name}: unknown dtype {quoted(parameter.dtype)}")
        if isinstance(parameter, Scalar):
            if not isinstance(parameter.default, int | float | None):
                raise ValueError(f"parameter {name}: its default is no number")
            self.scalars.add(name)
            return
        extents = (e is None or isinstance(e, str) or is_number(e, 0) for e in parameter.shape)
        strides = (stride is None or is_number(stride) for stride in parameter.strides)
        rank = len(parameter.shape)
        if rank != len(parameter.strides) or not (all(extents) and all(strides)):
            raise ValueError(f"parameter {name}: bad shape or strides")
        counted = len(parameter.multiples) in (0, 2 * rank)
        if not counted or not all(is_number(n, 1) for n in parameter.multiples):
            raise ValueError(f"parameter {name}: bad multiples")
        alignment = parameter.alignment
        if not is_number(alignment, 0) or alignment & (alignment - 1):
            raise ValueError(f"parameter {name}: bad alignment")
        if parameter.access not in ("r", "w", "rw"):
            raise ValueError(f"parameter {name}: unknown access {quoted(parameter.access)}")
        self.ranks[name], self.dtypes[name] = rank, parameter.dtype

    # -- expressions

    def expression(self, index: int, expression: made.Expression) -> None:
        if not expression:
            raise ValueError(f"expression {index} is empty")
        operator, *operands = expression
        bad = ValueError(f"expression {index}: bad operands of {quoted(operator)}")
        names, below = [], []  # what it depends on by itself; the expressions that it uses
        if operator == "const":
            known = len(operands) == 1 and is_number(operands[0])
        elif operator == "scalar":
            known = len(operands) == 1 and operands[0] in self.scalars
        elif operator == "variable":
            known = len(operands) == 1 and is_number(operands[0], 0)
            names = operands
        elif operator in ("extent", "stride"):
            known = len(operands) == 2 and isinstance(operands[0], str)
            known = known and is_number(operands[1], 0)
            known = known and operands[1] < self.ranks.get(operands[0], 0)
            names = operands[:1]
        else:
            arity = 3 if operator == "select" else 2 if operator in BINARY else None
            if arity is None:
                raise ValueError(f"expression {index}: unknown operator {quoted(operator)}")
            known = len(operands) == arity
            known = known and all(is_number(n, 0) and n < index for n in operands)
            below = operands
        if not known:
            raise bad
        self.depends.append(frozenset(names).union(*(self.depends[n] for n in below)))

    def use(self, what: str, *indices: object) -> None:
        """Sees that expressions exist, and that what they depend on is visible here."""
        for index in indices:
            if not is_number(index, 0) or index >= len(self.depends):
                raise ValueError(f"{what}: no such expression")
            for name in self.depends[index]:
                visible = self.tensors if isinstance(name, str) else self.variables
                if name not in visible:
                    raise ValueError(f"{what}: it uses {quoted(name)}, which is not known there")

    def tensor(self, what: str, name: object) -> str:
        if not isinstance(name, str) or name not in self.tensors:
            raise ValueError(f"{what}: no tensor {quoted(name)}")
        return name

    def variable(self, what: str, number: object) -> None:
        """Makes a variable visible, which nothing else assigns."""
        if not is_number(number, 0) or number in self.every_variable:
            raise ValueError(f"{what}: a variable is assigned twice")
        self.every_variable.add(number)
        self.variables.add(number)

    # -- steps

    def steps(self, steps: tuple[Step, ...], depth: int) -> None:
        if depth > MOST_NESTED:
            raise ValueError(f"steps are nested more than {MOST_NESTED} levels deep")
        for step in steps:
            self.step(step, depth)

    def step(self, step: Step, depth: int) -> None:
        what = type(step).__name__.lower()
        if isinstance(step, made.Check):
            self.use(what, *made.needs(step))
            self.use(what, *(part for part in step.message if not isinstance(part, str)))
        elif isinstance(step, made.Allocate):
            self.make(what, step.buffer)
        elif isinstance(step, made.Free):
            name = self.tensor(what, step.buffer)
            if not isinstance(self.declared(name), made.Buffer):
                raise ValueError(f"{what}: {quoted(name)} can't be freed")
            self.freed.add(name)
            self.tensors.discard(name)
        elif isinstance(step, made.Launch):
            self.launch(step)
        elif isinstance(step, made.Call):
            for operand in (*step.arguments, *(operand for _, operand in step.keywords)):
                self.operand(f"the call of {step.function}", operand)
            for name in step.results:
                self.make(what, name)
        elif isinstance(step, made.Loop):
            self.loop(step, depth)
        else:
            self.branch(step, depth)

    def declared(self, name: str) -> object:
        return next((t for t in self.program.tensors if t.name == name), None)

    def make(self, what: str, name: str) -> None:
        """Makes a Buffer visible."""
        buffer = self.declared(name)
        if not isinstance(buffer, made.Buffer) or name in self.tensors | self.freed:
            raise ValueError(f"{what}: {quoted(name)} can't be made here")
        if len(buffer.shape) != len(buffer.strides):
            raise ValueError(f"tensor {name}: its strides are not as many as its extents")
        self.use(f"tensor {name}", *buffer.shape, *buffer.strides, buffer.elements)
        self.tensors.add(name)

    def launch(self, launch: made.Launch) -> None:
        what = f"launch of {launch.kernel}"
        self.use(what, *launch.grid, *launch.block, launch.shared)
        if launch.stream is not None and launch.stream not in self.streams:
            raise ValueError(f"{what}: no stream {quoted(launch.stream)}")
        for word in (word for argument in launch.arguments for word in argument):
            if word.kind == "descriptor":
                self.descriptor(what, word)
                continue
            if type(word.size) is not int or word.size not in WORD_SIZES:
                raise ValueError(f"{what}: a word of {quoted(word.size)} bytes")
            if word.kind == "pointer":
                self.tensor(what, word.name)
                if word.expression is not None:
                    self.use(what, word.expression)
            elif word.kind == "scalar":
                if word.name not in self.scalars:
                    raise ValueError(f"{what}: no scalar {quoted(word.name)}")
                if word.expression is not None:
                    raise ValueError(f"{what}: a scalar has no expression")
            elif word.kind == "integer":
                self.use(what, word.expression)
            else:
                raise ValueError(f"{what}: unknown word {quoted(word.kind)}")

    def descriptor(self, what: str, word: made.Word) -> None:
        self.tensor(what, word.name)
        found = word.descriptor
        if found is None or word.size != DESCRIPTOR_BYTES or word.expression is not None:
            raise ValueError(f"{what}: a bad descriptor of {quoted(word.name)}")
        rank = len(found.shape)
        known = len(found.strides) == rank - 1 and len(found.box) == rank
        if not known or not all(is_number(extent, 1) for extent in found.box):
            raise ValueError(f"{what}: the descriptor of {quoted(word.name)} has no sound box")
        known = isinstance(found.dtype, str) and is_number(found.swizzle, 0)
        if not known or not isinstance(found.rounded, bool):
            raise ValueError(f"{what}: a bad descriptor of {quoted(word.name)}")
        self.use(what, *found.expressions)

    def operand(self, what: str, operand: Operand) -> None:
        if operand.kind == "tensor":
            self.tensor(what, operand.value)
        elif operand.kind == "scalar":
            if operand.value not in self.scalars:
                raise ValueError(f"{what}: no scalar {quoted(operand.value)}")
        elif operand.kind == "view":
            view = operand.value
            self.tensor(what, view.tensor)
            if len(view.shape) != len(view.strides):
                raise ValueError(f"{what}: a view's strides are not as many as its extents")
            self.use(what, *made.of_operand(operand))
        elif operand.kind == "integer":
            self.use(what, operand.value)
        elif operand.kind != "constant":
            raise ValueError(f"{what}: unknown operand {quoted(operand.kind)}")

    # -- scopes. What a body makes is not visible behind it.

    def loop(self, loop: made.Loop, depth: int) -> None:
        what = "loop"
        self.use(what, *(carried.initial for carried in loop.carried))
        for carried in loop.tensors:
            self.tensor(what, carried.initial)
        before = set(self.tensors), set(self.variables)
        for carried in loop.carried:
            self.variable(what, carried.variable)
        for carried in loop.tensors:
            self.assign(what, carried.variable, carried.initial)
        self.use(what, loop.condition)
        inside = set(self.tensors)
        self.steps(loop.body, depth + 1)
        self.use(what, *(carried.next for carried in loop.carried))
        for carried in loop.tensors:
            self.same_kind(what, carried.variable, self.tensor(what, carried.next))
        if inside - self.tensors:
            raise ValueError("loop: its body frees what was made outside")
        self.tensors, self.variables = before
        for carried in loop.carried:
            self.variable(what, carried.result)
        for carried in loop.tensors:
            self.assign(what, carried.result, carried.initial)

    def branch(self, branch: made.Branch, depth: int) -> None:
        what = "branch"
        self.use(what, branch.condition)
        before = set(self.tensors), set(self.variables)
        for side, steps in (("then", branch.then), ("otherwise", branch.otherwise)):
            self.tensors, self.variables = set(before[0]), set(before[1])
            self.steps(steps, depth + 1)
            self.use(what, *(getattr(chosen, side) for chosen in branch.integers))
            for chosen in branch.tensors:
                name = self.tensor(what, getattr(chosen, side))
                self.same_kind(what, chosen.result, name)
            if before[0] - self.tensors:
                raise ValueError("branch: it frees what was made outside")
        self.tensors, self.variables = before
        for chosen in branch.integers:
            self.variable(what, chosen.result)
        for chosen in branch.tensors:
            self.assign(what, chosen.result, None)

    def assign(self, what: str, name: str, like: str | None) -> None:
        """Makes an Assigned visible."""
        if not isinstance(self.declared(name), made.Assigned) or name in self.tensors:
            raise ValueError(f"{what}: {quoted(name)} can't be assigned here")
        if like is not None:
            self.same_kind(what, name, like)
        self.tensors.add(name)

    def same_kind(self, what: str, a: str, b: str) -> None:
        if (self.ranks.get(a), self.dtypes.get(a)) != (self.ranks.get(b), self.dtypes.get(b)):
            raise ValueError(f"{what}: {quoted(a)} and {quoted(b)} differ in dtype or rank")
