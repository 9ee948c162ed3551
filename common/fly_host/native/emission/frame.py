"""What is known at one place of a launcher while its code is made: values of expressions, tensors,
who owns references, and where the code goes when something fails.

There are two ways out besides the result. A *miss* returns NotImplemented: so far nothing has
happened, and Python runs the call or says why it can't. Behind the first step there is no way back:
an *error* calls `fail` with the site and the numbers that it depends on, which raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.emission import arithmetic
from fly_host.native.emission.arithmetic import NOTHING, Number
from fly_host.native.emission.code import Code
from fly_host.native.probing import Torch
from fly_host.native.specialisation import Describing, Specialisation
from fly_host.program import Expression, Program, Scalar

MISS, ERROR, LEAVE = "%miss", "%error", "%leave"
UNREADABLE = "%unreadable"  # a miss; Python has an error, which is dropped


@dataclass(frozen=True)
class Value:
    """A tensor: the Python object, the address of element zero (`ptr`), extents and strides in
    elements; the number of elements that its memory has from there on at least, which is more than
    the strides reach where it is padded."""

    object: str
    data: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    dtype: str
    elements: str = "0"

    @property
    def itemsize(self) -> int:
        return ELEMENT_TYPES[self.dtype].bytes


@dataclass(frozen=True)
class ScalarValue:
    """A scalar: the object, its value as a number of expressions, and the bits of its dtype, as an
    LLVM type and value."""

    object: str
    number: Number
    kind: str
    bits: str
    double: str | None = None  # of floats: as a double, before it was rounded


@dataclass(frozen=True)
class Way:
    """What of an entry decides about the code: whether it is a driver's, the last word of its
    `extra`, whether it can block, whether it has a getter of the current stream, and how it makes
    descriptors. Code `for_c` has a
    C interface and does without Python (`fly_host.native.c_interface`)."""

    driver: bool
    end: int = 0
    blocking: bool = False
    stream: bool = False
    for_c: bool = False
    describing: Describing | None = None


@dataclass(frozen=True)
class Site:
    """A place where a call can fail behind its first step. `leaves` are the expressions whose
    values `fail` gets."""

    what: Any
    leaves: tuple[Expression, ...]


class Slots:
    """The table of what differs between processes: objects and addresses, by name."""

    def __init__(self) -> None:
        self.places: dict[tuple[Any, ...], int] = {}
        self.constants: dict[str, Any] = {}

    def place(self, *name: Any) -> int:
        return self.places.setdefault(name, len(self.places))

    def constant(self, value: Any) -> str:
        """The name of a constant of the program: 1, 1.0 and True are equal, and are three."""
        self.constants[repr(value)] = value
        return repr(value)


@dataclass
class Frame:
    """One function of a launcher, which has its table of slots at `%table`."""

    specialisation: Specialisation
    way: Way
    torch: Torch | None = None  # where there are torch tensors
    code: Code = field(default_factory=Code)
    slots: Slots = field(default_factory=Slots)
    tensors: dict[str, Value] = field(default_factory=dict)
    scalars: dict[str, ScalarValue] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)  # objects
    owners: dict[str, str] = field(default_factory=dict)  # of tensors that the program makes
    sites: list[Site] = field(default_factory=list)
    numbers: dict[int, Number] = field(default_factory=dict)
    variables: dict[int, str] = field(default_factory=dict)
    # Expressions that were seen to have a value, and checks that were seen to hold.
    assured: set[object] = field(default_factory=set)
    # By what decides about them: name, text, what the guards tell of themselves.
    guards: dict[tuple[Any, ...], tuple[str, str, Any]] = field(default_factory=dict)
    # The functions that take and give back a reference.
    retain: ClassVar[str] = "@Py_IncRef"
    release: ClassVar[str] = "@Py_DecRef"

    @property
    def program(self) -> Program:
        return self.specialisation.program

    @functools.cached_property
    def widths(self) -> dict[str, int]:
        """The sizes of the scalar parameters, in bytes."""
        scalars = (p for p in self.program.parameters if isinstance(p, Scalar))
        return {scalar.name: ELEMENT_TYPES[scalar.dtype].bytes for scalar in scalars}

    # -- slots
    def slot(self, *name: Any) -> str:
        """The content of a slot: an object or an address."""
        place = self.code.at("%table", 8 * self.slots.place(*name))
        return self.code.value(f"load ptr, ptr {place}, align 8, !invariant.load !0")

    # -- expressions
    def number(self, index: int) -> Number:
        """The value of an expression, computed here unless it is known."""
        known, expressions = self.numbers, self.program.expressions
        waiting = [index]
        while waiting:
            current = waiting[-1]
            if current in known:
                waiting.pop()
                continue
            kind, *operands = expressions[current]
            if kind in ("const", "extent", "stride", "scalar", "variable"):
                known[current] = self._leaf(kind, operands)
                continue
            missing = [operand for operand in operands if operand not in known]
            if missing:
                waiting += missing
                continue
            if kind == "select":
                a, b, c = (known[operand] for operand in operands)
                known[current] = arithmetic.select(self.code, a, b, c)
            else:
                a, b = (known[operand] for operand in operands)
                known[current] = arithmetic.binary(self.code, kind, a, b)
        return known[index]

    def _leaf(self, kind: str, operands: list[Any]) -> Number:
        """An operand of an operator that does not exist here has no value: it may be one of a side
        that is not chosen."""
        first = operands[0]
        if kind == "const":
            return Number(str(first))
        if kind == "scalar":
            return self.scalars[first].number
        if kind == "variable":
            return Number(self.variables[first]) if first in self.variables else NOTHING
        tensor = self.tensors.get(first)
        if tensor is None:
            return NOTHING
        return Number((tensor.shape if kind == "extent" else tensor.strides)[operands[1]])

    def expect(self, conditions: list[str], condition: str, words: Callable[[], str]) -> None:
        """Adds a condition to those that a guard looks at together. `words` are what is wrong
        where it does not hold, for code that has to say so itself."""
        conditions.append(condition)

    def inner(self) -> Frame:
        """The frame of a function that this one calls."""
        return Frame(self.specialisation, self.way, self.torch, slots=self.slots)

    def need(self, index: int, site: Any = None) -> str:
        """The value of an expression that is needed behind the first step; without a value it is
        an error there."""
        number = self.number(index)
        if number.ok is not None and ("value", index) not in self.assured:
            self.demand(number.ok, site or ("value", index), (index,))
            self.assured.add(("value", index))
        return number.value

    def demand(self, condition: str, site: Any, indices: tuple[int, ...]) -> None:
        """Fails at a site, which uses these expressions, unless the condition holds."""
        code = self.code
        bad, good = code.name("bad"), code.name("good")
        code.branch(condition, good, bad)
        code.begin(bad)
        leaves = self._leaves(indices)
        values = [self._leaf(kind, operands).value for kind, *operands in leaves]
        self.sites.append(Site(site, tuple(leaves)))
        room = code.integers(values)
        code.do(
            f"call void @fail(ptr {self.slot('fail')}, i64 {len(self.sites) - 1}, ptr {room},"
            f" i64 {len(values)})"
        )
        code.jump(ERROR)
        code.begin(good)

    def _leaves(self, indices: tuple[int, ...]) -> list[Expression]:
        """The leaves that expressions depend on and that have a value here."""
        expressions, found = self.program.expressions, dict[Expression, None]()
        waiting, seen = list(indices), set[int]()
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            kind, *operands = expressions[index]
            if kind in ("extent", "stride"):
                if operands[0] in self.tensors:
                    found[expressions[index]] = None
            elif kind == "variable":
                if operands[0] in self.variables:
                    found[expressions[index]] = None
            elif kind == "scalar":
                if self.scalars[operands[0]].number is not NOTHING:
                    found[expressions[index]] = None
            elif kind != "const":
                waiting += operands
        return list(found)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Code that is not always reached: what is computed in it is not known behind it."""
        kept = (dict(self.numbers), set(self.assured), dict(self.tensors), dict(self.variables))
        yield
        self.numbers, self.assured, self.tensors, self.variables = kept

    # -- references
    def own(self, name: str, object: str) -> None:
        """Hands a new reference to a name; the one that it had is dropped."""
        owner = self.owner(name)
        before = self.code.load("ptr", owner)
        self.code.store("ptr", object, owner)
        self.code.do(f"call void {self.release}(ptr {before})")

    def owner(self, name: str) -> str:
        """Where the reference of a name is kept: null where it has none."""
        if name not in self.owners:
            room = self.code.room("ptr")
            self.code.allocations.append(f"  store ptr null, ptr {room}, align 8")
            self.owners[name] = room
        return self.owners[name]

    def temporary(self, object: str) -> str:
        """Keeps a new reference until the function ends, or until this code runs again."""
        self.own(f" {len(self.owners)}", object)
        return object

    def drop_all(self) -> None:
        """Drops the references of all names, at the end."""
        for owner in self.owners.values():
            self.code.do(f"call void {self.release}(ptr {self.code.load('ptr', owner)})")

    def succeed(self, object: str) -> str:
        """An object that was just made; null is an error that Python knows already."""
        good = self.code.value(f"icmp ne ptr {object}, null")
        self.code.require(good, ERROR)
        return object

    def increased(self, object: str) -> str:
        self.code.do(f"call void {self.retain}(ptr {object})")
        return object
