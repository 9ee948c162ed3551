"""The variables that a loop carries, and those that it gives values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.errors import InputError

from fly_trace.control import objects
from fly_trace.control.branches import dynamic
from fly_trace.control.carried import carried_values, in_place, object_fields, weak_numbers
from fly_trace.control.carried.carried_values import Mismatch, Undefined
from fly_trace.control.carried.leaf_kinds import LeafKind, kind_of
from fly_trace.control.carried.merging import fillable, filler, made_in, shown
from fly_trace.control.carried.mismatches import refuse_mismatch
from fly_trace.core import tracing
from fly_trace.rewrite.exits import SKIP, VALUE

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.control.carried.in_place import Variables
    from fly_trace.session.builder import Builder


class Carried:
    """The variables that a loop carries. `names` are those that its body assigns; the first `live`
    are read again. Those with a value before the loop are carried, leaf by leaf."""

    def __init__(self, builder: Builder, own: Variables):
        self.builder = builder
        self.types = own.types
        self.names, count = own.names, own.live
        self.before = before = own.get()
        self.slots = [index for index in range(count) if not isinstance(before[index], Undefined)]
        self.containers = [index for index in self.slots if in_place.may_carry(before[index])]
        self.leaves = [
            leaf for index in self.slots for leaf in carried_values.leaves(before[index])
        ]
        self.kinds = [kind_of(leaf) for leaf in self.leaves]
        for at, dtype in own.types.items():
            self.kinds[at] = LeafKind(dtype, self.leaves[at])
        self.count = count
        # Variables without a value before the loop that have one after it, and their leaves.
        self.late: dict[int, Any] = {}
        self.late_leaves: list[Any] = []

    def initial(self, builder: Builder) -> list[Any]:
        pairs = zip(self.leaves, self.kinds, strict=True)
        return [kind.ssa(builder, leaf) for leaf, kind in pairs]

    def inside(self, values: Any) -> list[Any]:
        """The variables at the start of an iteration, from a block's arguments."""
        values = list(values)
        weak_numbers.mark(self.builder, self.types, self.leaves, values)
        return self._made(values)

    def _made(self, values: list[ir.Value]) -> list[Any]:
        given = iter(zip(values, self.kinds, strict=True))

        def leaf(_: Any) -> Any:
            value, kind = next(given)
            return kind.made(value)

        held: list[Any] = [Undefined(name) for name in self.names]
        for index in self.slots:
            held[index] = carried_values.transform(self.before[index], leaf)
        return held

    def find_late(
        self,
        end: tuple[Any, ...],
        loop: ir.Operation,
        runs: bool = False,
        targets: tuple[str, ...] = (),
    ) -> None:
        """Finds what the loop gives a value that has none before: the returned value, which is read
        only if an iteration returned; and other variables, if the loop `runs` at least once. `end`
        are the variables at the end of an iteration."""
        # A variable may lack its value on a path that skipped the rest of the iteration.
        pairs = list(zip(self.names, end, strict=True))
        skips = any(name.startswith(SKIP) and dynamic(value) for name, value in pairs)
        for index, (name, value) in enumerate(pairs[: self.count]):
            if index in self.slots or isinstance(value, Undefined):
                continue
            given = runs and (name in targets or not (skips or name.startswith("__fly_")))
            if name != VALUE and not given:
                continue
            leaves = [leaf for leaf in carried_values.leaves(value) if made_in(loop, leaf)]
            if not all(map(fillable, leaves)):
                if name == VALUE:
                    one = next(leaf for leaf in leaves if not fillable(leaf))
                    tracing.refuse(
                        f"{shown(name)} is {tracing.describe(one)}, which a dynamic loop can't"
                        " return",
                        "return the numbers that select it",
                    )
                continue
            self.late[index] = value
            self.late_leaves += leaves

    def late_values(self, builder: Builder) -> list[ir.Value]:
        """The leaves of late variables at the end of an iteration."""
        return [kind_of(leaf).ssa(builder, leaf) for leaf in self.late_leaves]

    def late_initial(self, builder: Builder) -> list[ir.Value]:
        """The leaves of late variables before the first iteration."""
        return [filler(builder, kind_of(leaf), leaf) for leaf in self.late_leaves]

    def outcome(self, builder: Builder, start: list[Any], after: tuple[Any, ...]) -> list[Any]:
        """The values that an iteration passes to the next, converted to the variables' types."""
        unchanged = [index for index in self.containers if after[index] is start[index]]
        if unchanged:
            # If the loop also changes containers in place that it does not carry yet, a condition
            # may have been static that is dynamic once it carries them, and `unchanged` too long.
            _check_changes(builder)
        for index in unchanged:
            in_place.kept(builder, self.before[index], shown(self.names[index]))
        given: list[Any] = []

        def leaf(_: Any, now: Any) -> Any:
            given.append(now)
            return now

        for index in self.slots:
            name = shown(self.names[index])
            try:
                _pair(start[index], after[index], leaf)
            except Mismatch as mismatch:
                if isinstance(mismatch.a, in_place.Held):
                    # An attribute that only a branch within the loop carries: the loop may, too.
                    objects.check_region(builder.frozen)
                before = self.before[index]
                mismatch.a = before if not mismatch.path else mismatch.a
                refuse_mismatch(name, mismatch, "before the loop", "at the end of an iteration")
        values, weak = [], []
        for at, (now, kind, before) in enumerate(zip(given, self.kinds, self.leaves, strict=True)):
            try:
                values.append(kind.ssa(builder, now))
            except Mismatch:
                other = weak_numbers.other_type(builder, self.types, at, before, now)
                if other is None:
                    self._refuse(before, now)
                weak.append((other, before, now))
        if weak:
            try:
                self._refuse(*weak[0][1:])
            except InputError as error:
                raise weak_numbers.refusal(error, [other for other, *_ in weak]) from None
        return values

    def _refuse(self, before: Any, now: Any) -> NoReturn:
        refuse_mismatch(
            self.name_of(before),
            Mismatch(before, now),
            "before the loop",
            "at the end of an iteration",
        )

    def name_of(self, wanted: Any) -> str:
        """The variable with this leaf."""
        for index in self.slots:
            if any(leaf is wanted for leaf in carried_values.leaves(self.before[index])):
                return shown(self.names[index])
        return "a variable"

    def after(
        self, results: Any, end: tuple[Any, ...], what: str, targets: tuple[str, ...] = ()
    ) -> list[Any]:
        """The variables after the loop."""
        held = self._made(list(results)[: len(self.kinds)])
        late = iter(list(results)[len(self.kinds) :])
        given = set(map(id, self.late_leaves))

        def leaf(one: Any) -> Any:
            return kind_of(one).made(next(late)) if id(one) in given else one

        for index, name in enumerate(self.names):
            if index in self.slots:
                continue
            if index in self.late:
                held[index] = carried_values.transform(self.late[index], leaf)
            elif end[index] is self.before[index]:
                held[index] = end[index]
            elif name in targets:
                held[index] = Undefined(
                    name,
                    f"`{name}` is the variable of {what}, which may not run at all",
                    f"assign {name} a value before the loop",
                )
            else:
                held[index] = Undefined(
                    name,
                    f"`{name}` gets its value in {what}, which may not run at all",
                    f"assign {name} a value before the loop",
                )
        return held


def _check_changes(builder: Builder) -> None:
    """Has the loop carry what branches within it have changed in place, if it can."""
    try:
        objects.check_region(builder.frozen)
    except in_place.ContainerChanged:
        raise
    except InputError:
        pass  # reported where the iteration ends, unless the loop is traced again


def _pair(before: Any, after: Any, leaf: Callable[[Any, Any], Any], path: str = "") -> None:
    """Walks two trees in parallel. Raises Mismatch if their structures differ."""
    if carried_values.is_leaf(before) and carried_values.is_leaf(after):
        leaf(before, after)
    elif object_fields.is_in_place(before) or object_fields.is_in_place(after):
        if before is not after:
            raise Mismatch(before, after, path)
    elif (
        carried_values.is_leaf(before)
        or carried_values.is_leaf(after)
        or type(before) is not type(after)
    ):
        raise Mismatch(before, after, path)
    elif isinstance(before, (tuple, list)) and len(before) == len(after):
        for index, (x, y) in enumerate(zip(before, after, strict=True)):
            _pair(x, y, leaf, f"{path}[{index}]")
    elif isinstance(before, dict) and list(before) == list(after):
        for key in before:
            _pair(before[key], after[key], leaf, path + carried_values.part_of(before, key))
    elif (fields := carried_values.fields_of(before)) is not None:
        carried_values.check_constants(before, after, path)
        for name in fields:
            _pair(getattr(before, name), getattr(after, name), leaf, f"{path}.{name}")
    elif (
        before is not after
        and object_fields.is_own_object(before)
        and (old := object_fields.read(before)).keys() == (new := object_fields.read(after)).keys()
    ):
        for name, one in old.items():
            _pair(one, new[name], leaf, f"{path}.{name}")
    elif before is after and object_fields.is_own_object(before):
        for one in carried_values.leaves(before):
            leaf(one, one)
    elif before is not after and not (
        not isinstance(before, (tuple, list, dict)) and carried_values.equal(before, after)
    ):
        raise Mismatch(before, after, path)
