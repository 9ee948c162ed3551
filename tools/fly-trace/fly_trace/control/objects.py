"""Checks for changes to Python objects while tracing.

A trace runs once, and traces both branches of a dynamic `if`. It must therefore not change an
object from outside: in a kernel, an object that outlives the trace; in a dynamic branch or loop, an
object from before it. Assignments are refused before they happen. Changes by calls and other Python
code are found by comparing objects with their snapshots (`snapshots`), and undone.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, GeneratorType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.errors import InputError

from fly_trace.control import generators
from fly_trace.control.carried import carried_values, object_fields
from fly_trace.control.carried.in_place import ContainerChanged
from fly_trace.core import locations, tracing
from fly_trace.core.tracing import describe
from fly_trace.effects import snapshots
from fly_trace.effects.snapshots import Entry, Origin, Snapshot
from fly_trace.memory.tensors import Tensor
from fly_trace.rewrite import definition_of, is_rewritten
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder


class ChangedSomewhere(InputError):
    """An object was changed. `is_located` says whether the error names the line."""

    is_located = False
    is_undone = True


def changed_at_all(builder: Builder) -> Iterator[Entry]:
    """The objects that have changed, without those whose contents control flow carries."""
    for entry in builder.frozen.changed_at_all():
        if id(entry.value) not in builder.carried:
            yield entry


def refuse_changed(builder: Builder, at: locations.Position) -> NoReturn:
    """Reports a change at the line `at`."""
    try:
        for entry in changed_at_all(builder):
            refuse_change(entry, "this", at)
    except InputError as error:
        found = ChangedSomewhere(error.message, place=error.place, hint=error.hint)
        found.is_located = True
        raise found from None
    raise AssertionError("nothing has changed")


def _refuse_somewhere(entry: Entry, how: str, at: locations.Position | None = None) -> NoReturn:
    """Reports a change that was found afterwards."""
    try:
        refuse_change(entry, how, at)
    except InputError as error:
        found = ChangedSomewhere(error.message, place=error.place, hint=error.hint)
        found.is_undone = not entry.changed
        raise found from None


def refuse_change(entry: Entry, how: str, at: locations.Position | None = None) -> NoReturn:
    """Reports that an object from outside changes or has changed."""
    name = entry.name
    stays = entry.changed and not entry.restore()
    kind = type(entry.value).__name__
    if entry.origin is Origin.CARRIED:
        tracing.refuse(
            f"{how} modifies a Python {kind} that a dynamic branch or loop carries",
            f"modify a copy: x = {kind}(x); or assign a new one"
            if isinstance(entry.value, (list, dict))
            else "assign a new one to the variable",
            at=at,
        )
    if entry.origin is Origin.BEFORE:
        message = f"{how} modifies a Python {kind} created outside this dynamic branch or loop"
        hint = "assign a new one to the variable, or keep the values in fx.shared_array"
    else:
        message, hint = _outside(name, f"a Python {kind}", how)
    tracing.refuse(message, f"{hint} (the change can't be undone)" if stays else hint, at=at)


def _outside(name: str, what: str, how: str) -> tuple[str, str]:
    builder = tracing.active()
    where = "host function" if builder is None or builder.host else "kernel"
    named = f"{name}, {what}" if name else what
    return (
        f"{how} modifies {named} from outside the {where}",
        "it would change once, while tracing, and not at each launch: modify a copy, or pass the"
        " value as an argument",
    )


def check_change(container: Any, how: str) -> None:
    """Refuses a change of a Python object from outside the current trace."""
    builder = tracing.active()
    if builder is None or (entry := builder.frozen.find(container)) is None:
        return
    if id(container) not in builder.in_place or entry.origin is not Origin.BEFORE:
        refuse_change(entry, how)


def before_region(builder: Builder) -> Snapshot:
    """Takes a snapshot before a dynamic branch or loop is traced."""
    made = snapshots.of_frames(sys._getframe(2), builder.entry, builder.frozen, builder.variables)
    if builder.generators:
        made.add([(one, ("a generator", None)) for one in generators.suspended()])
    return made


def restore_region(builder: Builder) -> None:
    """Undoes what a branch or loop that is traced again has changed, without what it carries."""
    for entry in builder.frozen.changed_in_region():
        newest = builder.frozen.find(entry.value) is entry
        if newest and entry.origin is Origin.BEFORE and id(entry.value) not in builder.in_place:
            entry.restore()


def check_region(before: Snapshot) -> None:
    """Refuses a dynamic branch or loop that changed an object from before it."""
    builder = tracing.active()
    if builder is not None and (before.entries or before.count):
        how = "this dynamic branch or loop"
        check_entries(builder, before.changed_in_region(), how, _refuse_somewhere)


def check_entries(
    builder: Builder,
    changed: Iterable[Entry],
    how: str,
    refuse: Callable[[Entry, str], NoReturn],
    carried: Any = None,
) -> None:
    """Refuses objects that have changed. If an inner branch or loop has changed all of them in
    place, one around it that is traced may carry them too, and `carried` as well."""
    shared: list[Entry] = []
    for entry in changed:
        if _may_have_changed(builder, entry) and not _has_more(builder, entry):
            continue
        may_carry = entry.value is carried or id(entry.value) in builder.assigned
        if entry.value is carried and entry.origin is Origin.CARRIED:
            _refuse_copy(builder, entry, how, refuse)
        if not may_carry or entry.origin is not Origin.BEFORE:
            refuse(entry, how)
        shared.append(entry)
    if shared:
        attributes = [_attributes(entry) for entry in shared]
        try:
            refuse(shared[0], how)
        except InputError as error:
            for entry in shared:
                entry.restore()
            found = _shared(error, shared[0])
            found.attributes, *others = attributes
            found.others = tuple(
                (entry.value, entry.name, names)
                for entry, names in zip(shared[1:], others, strict=True)
            )
            raise found from None


def _refuse_copy(
    builder: Builder, entry: Entry, how: str, refuse: Callable[[Entry, str], NoReturn]
) -> None:
    """Has a loop that carries a copy of a container carry the container itself."""
    made = builder.copies.get(id(entry.value))
    if made is None:
        return
    try:
        refuse(entry, how)
    except InputError as error:
        found = _shared(error, entry)
        found.container = made[1]
        raise found from None


def _attributes(entry: Entry) -> tuple[str, ...]:
    """An object's attributes, before the change and after it."""
    if not object_fields.is_object(entry.value):
        return ()
    return tuple(dict.fromkeys((*entry.state, *object_fields.read(entry.value))))


@contextmanager
def preserved(builder: Builder, function: Any) -> Iterator[None]:
    """Traces a function, and checks that nothing reachable from it has changed afterwards. After an
    error, changes are undone as far as possible."""
    try:
        yield
        for entry in builder.frozen.changed_at_all():
            _refuse_somewhere(entry, f"tracing {function.__name__}", definition_of(function))
    except BaseException:
        for entry in builder.frozen.changed_at_all():
            entry.restore()
        raise


def _may_have_changed(builder: Builder, entry: Entry) -> bool:
    """Whether the branch or loop that is traced may change an object, or one around it did: then
    there is a newer entry. A generator that runs is a function around it."""
    if type(entry.value) is GeneratorType and entry.value.gi_running:
        return True
    in_place = id(entry.value) in builder.in_place
    return in_place or builder.frozen.find(entry.value) is not entry


def target(container: Any) -> Any:
    """The `x` of `x[i] = …`."""
    if not isinstance(container, Tensor):
        _check_assignment(container)
    return container


def _check_assignment(container: Any, name: str = "", how: str = "the assignment") -> None:
    """Refuses an assignment to an item or attribute of an object from outside the current trace. A
    branch or loop that the object is from before may carry its contents."""
    builder = tracing.active()
    try:
        if builder is not None and name and _is_left_out(builder, container, name):
            entry = builder.frozen.find(container)
            assert entry is not None, "it is from before a region"
            refuse_change(entry, how)
        check_change(container, how)
    except InputError as error:
        entry = builder.frozen.find(container) if builder is not None else None
        if entry is None or entry.origin is Origin.OUTSIDE or not _has_items(container, name):
            raise
        found = _shared(error, entry)
        if builder is not None and entry.origin is Origin.CARRIED:
            # A loop that carries a copy may carry the container itself.
            if id(container) not in builder.copies:
                raise
            found.container = builder.copies[id(container)][1]
        found.attributes = (name,) if name else ()
        raise found from None


def _is_left_out(builder: Builder, thing: Any, name: str) -> bool:
    """Whether an object is carried, but not this attribute of it."""
    fields = builder.fields.get(id(thing))
    return fields is not None and id(thing) in builder.in_place and name not in fields


def _has_more(builder: Builder, entry: Entry) -> bool:
    """Whether attributes have changed of an object that is carried without them."""
    fields = builder.fields.get(id(entry.value))
    if not fields or id(entry.value) not in builder.in_place:
        return False
    now = object_fields.read(entry.value)
    return any(now.get(name) is not one for name, one in entry.state.items() if name not in fields)


def _has_items(container: Any, name: str) -> bool:
    """Whether a branch or loop may carry what changes: the items, or the attribute `name`. Of an
    object that holds itself, other attributes are carried than the one by which it does."""
    if type(container) in (list, dict) or object_fields.is_own_object(container):
        return True
    own = bool(name) and object_fields.is_own(container)
    return own and not object_fields.holds_itself_by(container, name)


def _shared(error: InputError, entry: Entry) -> ContainerChanged:
    found = ContainerChanged(error.message, place=error.place, hint=error.hint)
    found.container, found.name = entry.value, entry.name
    return found


def deleted_from(container: Any) -> Any:
    """The `x` of `del x[i]`."""
    if isinstance(container, Tensor):
        tracing.refuse("an element of a tensor can't be deleted", "store another value")
    check_change(container, "`del`")
    return container


def target_attribute(thing: Any, name: str = "") -> Any:
    """The `x` of `x.name = …`."""
    if isinstance(thing, (Tensor, Scalar)):
        tracing.refuse(f"{describe(thing)} has no attribute that can be set")
    if name in getattr(type(thing), "settable", ()):
        return thing
    if (
        isinstance(thing, (ModuleType, type))
        or hasattr(type(thing), "is_decorated")
        or (type(thing) is FunctionType and not is_rewritten(thing.__code__))
    ):
        kind = "class" if isinstance(thing, type) else describe(thing).removeprefix("a Python ")
        tracing.refuse(*_outside(getattr(thing, "__name__", ""), f"a {kind}", "the assignment"))
    _check_assignment(thing, name)
    return thing


def augmented(word: str, value: Any, other: Any) -> Any:
    """`value word= other` for a variable; a list would be changed in place."""
    if (
        not carried_values.is_number(value)
        and hasattr(type(value), f"__{word}__")
        and not object_fields.is_object(value)  # its method checks what it assigns
    ):
        if type(value) is dict and type(other) is dict and other.keys() <= value.keys():
            _check_assignment(value, how="the augmented assignment")
        else:
            check_change(value, "the augmented assignment")
    return getattr(operator, word)(value, other)


def items(iterable: Any) -> Any:
    """An iterable that Python iterates over: in a `for`, a comprehension, `a, b = …`, `f(*…)`."""
    if hasattr(type(iterable), "__next__"):
        check_change(iterable, "the loop")
    return iterable
