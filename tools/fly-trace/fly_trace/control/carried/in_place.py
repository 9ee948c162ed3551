"""Lists, dictionaries and objects that a branch or loop changes in place: `t[i] = v`, `p.x = v`.

The variables of a branch or loop are read and written by `get` and `put`. The items of a list that
its statements assign to are such variables too, so that they are carried in the same way: `put`
writes them into the list, which stays the same object for all who hold it. The structure must be
the same on all paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fly_common.record import field, record, replace

from fly_trace.control.carried import carried_values, object_fields, weak_numbers
from fly_trace.control.carried.carried_values import MISSING, Fields, Held, plain
from fly_trace.control.carried.discarded import TracedAgain, discard
from fly_trace.control.carried.weak_numbers import OtherType, Types
from fly_trace.core import tracing
from fly_trace.effects.snapshots import Origin

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

MOST_TRACED_AGAIN = 500  # branches and loops of a function, in all
# The variables that statements assign to, and an attribute, or None for items.
Roots = tuple[tuple[Callable[[], Any], str, str | None], ...]


@record
class Container:
    """A list, dictionary or object; of an object, `attributes` are those assigned to, and `order`
    those that it had when it was found."""

    name: str
    value: Any
    attributes: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    absent: frozenset[str] = frozenset()  # attributes that only an iteration has
    others: Mapping[str, Any] = field(default_factory=dict)  # those that are not carried

    def read(self, others: dict[int, Any], contents: dict[int, Any]) -> Any:
        """The contents, with other containers as they are. `contents` will have those of all."""
        contents[id(self.value)] = made = self._read(others, contents)
        return made

    def _read(self, others: dict[int, Any], contents: dict[int, Any]) -> Any:
        def part(one: Any) -> Any:
            return Held(one, contents) if id(one) in others else one

        value = self.value
        if type(value) is list:
            return [*map(part, value)]
        if type(value) is dict:
            return {key: part(one) for key, one in value.items()}
        held = object_fields.read(value)
        self._check_others(held)
        held = {name: one for name, one in held.items() if not self._is_default(name, one)}
        late = sorted(self.attributes.union(held).difference(self.order))
        return Fields(
            (name, part(one) if name in self.attributes else Held(one, contents))
            for name in (*self.order, *late)
            if name not in self.absent
            if (one := held.get(name, MISSING)) is not MISSING or name in self.attributes
        )

    def _is_default(self, name: str, value: Any) -> bool:
        """Whether one inside has given the object an attribute of its class, and left it so."""
        known = name in self.attributes or name in self.order or name in self.others
        return not known and value is object_fields.default(self.value, name)

    def _check_others(self, held: dict[str, Any]) -> None:
        """Has a branch or loop carry what one inside it has changed."""
        defaults = {
            name: one
            for name in held
            if name not in self.attributes and name not in self.others
            if (one := object_fields.default(self.value, name)) is not None
        }
        for name, before in {**defaults, **self.others}.items():
            if held.get(name, MISSING) is not before:
                error = ContainerChanged(f"a branch or loop changes {self.name}.{name}")
                error.container, error.name, error.attributes = self.value, self.name, (name,)
                raise error

    def write(self, state: Any) -> None:
        value = self.value
        if type(value) is list:
            value[:] = [plain(one) for one in state]
        elif type(value) is dict:
            value.update({key: plain(one) for key, one in state.items()})
        else:
            for name in object_fields.read(value):
                if state.get(name, MISSING) is MISSING:
                    object.__delattr__(value, name)
            for name, one in state.items():
                if one is not MISSING:
                    object.__setattr__(value, name, plain(one))


@record
class Variables:
    """The variables of a branch or loop: see `branches.if_`. The first `contents` are those of
    containers, by whose `layout` other contents are told apart. `types` are those that the Python
    numbers among them take in a loop."""

    get: Callable[[], Any]
    put: Callable[[Any], None]
    names: tuple[str, ...]
    live: int
    contents: int = 0
    layout: tuple[tuple[int, frozenset[str]], ...] = ()
    types: Types = field(default_factory=dict)


def find(roots: Roots, assigned: tuple[str, ...]) -> list[Container]:
    """The containers that a branch or loop may assign to, of those that the function made. A
    variable that it assigns as well is carried as a variable."""
    found: dict[int, Container] = {}
    for variable, name, attribute in roots:
        if name in assigned:
            continue
        try:
            value = variable()
        except NameError:  # assigned in the branch
            continue
        for one in _reachable(value):
            is_item = type(one) in (list, dict)
            if is_item is not (attribute is None) or not _may_change(one):
                continue
            if attribute is not None:
                object_fields.take_defaults(one, (attribute,))
                if attribute not in object_fields.read(one):
                    continue
            before = found.get(id(one))
            attributes = before.attributes if before is not None else frozenset()
            added = frozenset((attribute,)) if attribute is not None else frozenset()
            order = () if is_item else tuple(object_fields.read(one))
            found[id(one)] = Container(name, one, attributes | added, order)
    return list(found.values())


def _reachable(value: Any) -> list[Any]:
    """The lists, dictionaries and objects in a value, itself included."""
    found: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in found:
            continue
        if type(one) is list or type(one) is tuple:
            inner = list(one)
        elif type(one) is dict:
            inner = list(one.values())
        elif object_fields.is_object(one):
            inner = list(object_fields.read(one).values())
        else:
            continue
        found[id(one)] = one
        waiting += inner
    return [one for one in found.values() if type(one) is not tuple]


def _may_change(value: Any) -> bool:
    builder = tracing.active()
    entry = builder.frozen.find(value) if builder is not None else None
    return entry is None or entry.origin is Origin.BEFORE


def may_carry(value: Any) -> bool:
    """Whether a branch or loop may carry the contents of a value instead of a copy of it."""
    is_container = type(value) in (list, dict) or object_fields.is_own_object(value)
    return is_container and not object_fields.is_in_place(value) and _may_change(value)


def kept(builder: Builder, container: Any, name: str) -> None:
    """Has a loop that assigns a variable, but gives it no other container, carry the contents of
    this one: what follows may change it. (`g += 1` may not run, or may return g.)"""
    if builder.traced_again < MOST_TRACED_AGAIN:
        error = ContainerChanged(f"a loop assigns {name}, which it does not change")
        error.container = container
        raise error


def _whole(value: Any, name: str, known: frozenset[str], assigned: Iterable[str]) -> Container:
    """A container that a function changes which the branch or loop calls. `known` are attributes
    that it carries already, `assigned` one more; if there is none, it carries all."""
    name = name or f"a {type(value).__name__}"
    if type(value) in (list, dict):
        return Container(name, value)
    order = tuple(object_fields.read(value))
    return Container(name, value, known.union(assigned or order), order)


def retried(
    roots: Roots,
    get: Callable[[], Any],
    put: Callable[[Any], None],
    names: tuple[str, ...],
    live: int,
    build: Callable[[Variables], None],
    is_loop: bool = True,
) -> None:
    """Calls `build` with the variables of a dynamic branch or loop. If a function that it calls
    assigns to an item of a container from before it, the branch or loop is traced again, with the
    container's contents among its variables; so is a loop at whose end a Python number has another
    type."""
    builder = tracing.active()
    changed: dict[int, frozenset[str]] = {}  # containers by id, and their attributes
    types: Types = {}
    layout = None  # that of the leaves whose places `types` has
    while True:
        with carried(roots, get, put, names, live, changed, is_loop) as variables:
            if variables.layout != layout:  # also by what a branch within has changed
                types.clear()
                layout = variables.layout
            own = replace(variables, types=types)
            if builder is None:
                build(own)
                return
            before, allocated = own.get(), len(builder.allocations)
            unrolled, copies = builder.unrolled, len(builder.copies)
            generators = list(builder.generators)
            try:
                build(own)
                return
            except (ContainerChanged, OtherType) as error:
                if isinstance(error, OtherType):
                    is_new = weak_numbers.take(error, types)
                else:
                    error.container = _outer(builder, error.container, copies)
                    is_new = _take(builder, error, changed)
                own.put(before)
                if not is_new or builder.traced_again >= MOST_TRACED_AGAIN:
                    raise
                discard(builder, error.region, allocated)
                builder.generators[:] = generators  # others hold values of what was discarded
        builder.unrolled = unrolled
        builder.traced_again += 1


def _take(builder: Builder, error: ContainerChanged, changed: dict[int, frozenset[str]]) -> bool:
    """Enters the containers for the branch or loop that is traced again. Returns False if that
    carries them already."""
    is_new = False
    for value, name, assigned in ((error.container, error.name, error.attributes), *error.others):
        key = id(value)
        known = builder.fields.get(key, frozenset())
        whole = _whole(value, name, known, assigned)
        is_carried = key in builder.offered and known >= whole.attributes
        if is_carried or changed.get(key) == whole.attributes:
            continue
        builder.shared[key] = whole
        changed[key] = whole.attributes
        is_new = True
    return is_new


def _outer(builder: Builder, container: Any, copies: int) -> Any:
    """The container from before a loop of which an iteration has changed a copy: the loop carries
    it as a part of another. `copies` is how many copies there were before the loop."""
    while (made := builder.copies.get(id(container))) is not None and made[2] >= copies:
        container = made[1]
    return container


def _entered(container: Container, is_loop: bool) -> Container:
    """The container with its attributes when the branch or loop starts."""
    if not container.attributes:
        return container
    object_fields.take_defaults(container.value, container.attributes)
    held = object_fields.read(container.value)
    new = container.attributes.difference(held) if is_loop else frozenset[str]()
    others = {name: one for name, one in held.items() if name not in container.attributes}
    return replace(container, absent=new, others=others)


class ContainerChanged(TracedAgain):
    """An item of a container from before a dynamic branch or loop, `region`, is assigned to."""

    container: Any = None
    attributes: tuple[str, ...] = ()
    name = ""
    # More containers, their names, and the attributes.
    others: tuple[tuple[Any, str, tuple[str, ...]], ...] = ()


def _widened(builder: Builder, one: Container, changed: Mapping[int, frozenset[str]]) -> Container:
    """A container with the attributes that functions assign to which this branch or loop calls, and
    those that the one around it carries. What a function assigns elsewhere is not among them: the
    containers that it changes there may not be carried here, and would be copied."""
    key = id(one.value)
    known = builder.shared.get(key)
    if known is None:
        return one
    around = builder.fields.get(key, frozenset()) if key in builder.in_place else frozenset()
    attributes = one.attributes.union(around, changed.get(key, ()))
    return replace(known, attributes=attributes)


@contextmanager
def carried(
    roots: Roots,
    get: Callable[[], Any],
    put: Callable[[Any], None],
    names: tuple[str, ...],
    live: int,
    changed: Mapping[int, frozenset[str]],
    is_loop: bool = True,
) -> Iterator[Variables]:
    """The variables of a dynamic branch or loop, with the contents of containers that its
    statements assign to, and of those that functions change: `changed` has the ids of those that
    are known to, and what is carried around the branch or loop may be among them too. Of the
    latter, the value of a variable that the branch or loop assigns is carried as a variable. An
    attribute that an object lacks before a loop is each iteration's own."""
    containers = find(roots, names)
    builder = tracing.active()
    if builder is not None and builder.shared:
        known = {id(one.value) for one in containers}
        assigned = {id(part) for value in get() for part in _reachable(value)}
        containers = [_widened(builder, one, changed) for one in containers]
        containers += [
            _widened(builder, replace(one, attributes=frozenset()), changed)
            for key, one in builder.shared.items()
            if key not in known
            and (key in changed or (key in builder.in_place and key not in assigned))
            and _may_change(one.value)
        ]
    if not containers or builder is None:
        yield Variables(get, put, names, live)
        return
    containers = [_entered(one, is_loop) for one in containers]
    count = len(containers)
    builder.assigned.update((id(one.value), one.value) for one in containers)
    others = {id(one.value): one.value for one in containers}

    def get_all() -> Any:
        contents: dict[int, Any] = {}
        return (*(one.read(others, contents) for one in containers), *get())

    def put_all(values: Any) -> None:
        for one, state in zip(containers, values, strict=False):
            one.write(state)
            carried_values.settle(one.value)
        put(tuple(values)[count:])

    before, offered, fields = builder.carried, builder.offered, builder.fields
    builder.fields = {**fields, **{id(one.value): one.attributes for one in containers}}
    builder.carried, builder.offered = {**before, **others}, {**offered, **others}
    try:
        all_names = (*(one.name for one in containers), *names)
        layout = tuple((id(one.value), one.attributes) for one in containers)
        yield Variables(get_all, put_all, all_names, live + count, count, layout)
    finally:
        builder.carried, builder.offered, builder.fields = before, offered, fields
