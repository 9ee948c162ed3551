"""Checks for changes to Python objects while tracing, and calls.

A trace runs once, and traces both branches of a dynamic `if`. It must therefore not change an
object from outside: in a kernel, an object that outlives the trace; in a dynamic branch or loop, an
object from before it. Assignments are refused before they happen. Changes by calls and other Python
code are found by comparing objects with their snapshots (`snapshots`), and undone.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import BuiltinMethodType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_trace.control import carried_values, generators, object_fields
from fly_trace.control.in_place import ContainerChanged
from fly_trace.core import locations, tracing
from fly_trace.core.tracing import describe
from fly_trace.effects import snapshots
from fly_trace.effects.snapshots import Entry, Origin, Snapshot
from fly_trace.memory.tensors import Tensor
from fly_trace.rewrite import definition_of, is_rewritten, is_users, rewritten
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
            _refuse_change(entry, "this", at)
    except InputError as error:
        found = ChangedSomewhere(error.message, place=error.place, hint=error.hint)
        found.is_located = True
        raise found from None
    raise AssertionError("nothing has changed")


def _refuse_somewhere(entry: Entry, how: str, at: locations.Position | None = None) -> NoReturn:
    """Reports a change that was found afterwards."""
    try:
        _refuse_change(entry, how, at)
    except InputError as error:
        found = ChangedSomewhere(error.message, place=error.place, hint=error.hint)
        found.is_undone = not entry.changed
        raise found from None


def _refuse_change(entry: Entry, how: str, at: locations.Position | None = None) -> NoReturn:
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


def _check_change(container: Any, how: str) -> None:
    """Refuses a change of a Python object from outside the current trace."""
    builder = tracing.active()
    if builder is None or (entry := builder.frozen.find(container)) is None:
        return
    if id(container) not in builder.in_place or entry.origin is not Origin.BEFORE:
        _refuse_change(entry, how)


def before_region(builder: Builder) -> Snapshot:
    """Takes a snapshot before a dynamic branch or loop is traced."""
    made = snapshots.of_frames(sys._getframe(2), builder.entry, builder.frozen, builder.variables)
    if builder.generators:
        made.add([(one, ("a generator", None)) for one in generators.suspended()])
    return made


def check_region(before: Snapshot) -> None:
    """Refuses a dynamic branch or loop that changed an object from before it."""
    builder = tracing.active()
    if builder is not None and (before.entries or before.count):
        how = "this dynamic branch or loop"
        _check_entries(builder, before.changed_in_region(), how, _refuse_somewhere)


def _check_entries(
    builder: Builder,
    changed: Iterable[Entry],
    how: str,
    refuse: Callable[[Entry, str], NoReturn],
) -> None:
    """Refuses objects that have changed. If an inner branch or loop has changed all of them in
    place, one around it that is traced may carry them too."""
    shared: list[Entry] = []
    for entry in changed:
        if _may_have_changed(builder, entry) and not _has_more(builder, entry):
            continue
        if id(entry.value) not in builder.assigned or entry.origin is not Origin.BEFORE:
            refuse(entry, how)
        shared.append(entry)
    if shared:
        try:
            refuse(shared[0], how)
        except InputError as error:
            for entry in shared:
                entry.restore()
            raise _shared(error, shared[0]) from None


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
    return bool(builder.carried) and (
        id(entry.value) in builder.in_place or builder.frozen.find(entry.value) is not entry
    )


def target(container: Any) -> Any:
    """The `x` of `x[i] = …`."""
    if not isinstance(container, Tensor):
        _check_assignment(container)
    return container


def _check_assignment(container: Any, name: str = "") -> None:
    """Refuses an assignment to an item or attribute of an object from outside the current trace. A
    branch or loop that the object is from before may carry its contents."""
    builder = tracing.active()
    try:
        if builder is not None and name and _is_left_out(builder, container, name):
            entry = builder.frozen.find(container)
            assert entry is not None, "it is from before a region"
            _refuse_change(entry, "the assignment")
        _check_change(container, "the assignment")
    except InputError as error:
        entry = builder.frozen.find(container) if builder is not None else None
        if entry is None or entry.origin is not Origin.BEFORE or not _has_items(container):
            raise
        raise _shared(error, entry) from None


def _is_left_out(builder: Builder, thing: Any, name: str) -> bool:
    """Whether an object is carried, but not this attribute of it."""
    fields = builder.fields.get(id(thing))
    if fields is None or id(thing) not in builder.in_place or name in fields:
        return False
    return name in object_fields.read(thing)


def _has_more(builder: Builder, entry: Entry) -> bool:
    """Whether attributes have changed of an object that is carried without them."""
    fields = builder.fields.get(id(entry.value))
    if not fields or id(entry.value) not in builder.in_place:
        return False
    now = object_fields.read(entry.value)
    return any(now.get(name) is not one for name, one in entry.state.items() if name not in fields)


def _has_items(container: Any) -> bool:
    return type(container) in (list, dict) or object_fields.is_own_object(container)


def _shared(error: InputError, entry: Entry) -> ContainerChanged:
    found = ContainerChanged(error.message, place=error.place, hint=error.hint)
    found.container, found.name = entry.value, entry.name
    return found


def deleted_from(container: Any) -> Any:
    """The `x` of `del x[i]`."""
    if isinstance(container, Tensor):
        tracing.refuse("an element of a tensor can't be deleted", "store another value")
    _check_change(container, "`del`")
    return container


def target_attribute(thing: Any, name: str = "") -> Any:
    """The `x` of `x.name = …`."""
    if isinstance(thing, (Tensor, Scalar)):
        tracing.refuse(f"{describe(thing)} has no attribute that can be set")
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
    if not carried_values.is_number(value) and hasattr(type(value), f"__{word}__"):
        _check_change(value, "the augmented assignment")
    return getattr(operator, word)(value, other)


def items(iterable: Any) -> Any:
    """An iterable that Python iterates over: in a `for`, a comprehension, `a, b = …`, `f(*…)`."""
    if hasattr(type(iterable), "__next__"):
        _check_change(iterable, "the loop")
    return iterable


def item(container: Any, key: Any) -> Any:
    """`container[key]`, which may add an item to a `defaultdict`."""
    if isinstance(container, dict) and type(container) is not dict:
        return _checked(operator.getitem, (container, key), {}, f"reading [{quoted(key, 40)}]")
    return container[key]


_REFUSED = {
    print: ("print() runs while the kernel is traced, not on the GPU", "use fx.printf"),
    input: ("input() has no meaning in a kernel", None),
    locals: ("locals() has no meaning in a kernel", None),
    globals: ("globals() has no meaning in a kernel", None),
    vars: ("vars() has no meaning in a kernel", None),
    dir: ("dir() has no meaning in a kernel", None),
    eval: ("eval() has no meaning in a kernel", "write the expression out"),
    exec: ("exec() has no meaning in a kernel", "write the statements out"),
}
# Frequently called functions without side effects of their own. (Effects of a user's `__len__` are
# found at the end of the branch or trace.)
_HARMLESS = frozenset(
    (len, isinstance, issubclass, callable, id, abs, round, divmod, getattr, hasattr)
)
_HARMLESS_TYPES = frozenset((range, int, float, bool, type, slice))
# Builtin functions of dynamic values → what is called instead.
TRACED: dict[Any, Callable[..., Any]] = {}
TRACED_METHODS: dict[str, Callable[..., Any]] = {}  # the same for methods of lists, by name
_DEPTH = 64  # nested calls; more are taken for infinite recursion


def call(function: Any, /, *arguments: Any, **named: Any) -> Any:
    """`function(…)`. The user's helper functions are rewritten as well."""
    kind = type(function)
    if kind is FunctionType or (kind is MethodType and type(function.__func__) is FunctionType):
        return _call_python(function, arguments, named)
    if kind is BuiltinMethodType:
        if function in _HARMLESS:
            return function(*arguments, **named)
        if function in _REFUSED:
            tracing.refuse(*_REFUSED[function])
        if function.__name__ in TRACED_METHODS and type(function.__self__) is list:
            return TRACED_METHODS[function.__name__](function.__self__, *arguments, **named)
        if function in TRACED and tracing.active() is not None:
            for argument in arguments:
                if hasattr(type(argument), "__next__"):
                    _check_change(argument, _name(function))
            return TRACED[function](*arguments, **named)
        if function in (setattr, delattr) and arguments:
            target_attribute(arguments[0])
    elif kind is type and function in _HARMLESS_TYPES:
        return function(*arguments, **named)
    elif kind is functools.partial:
        return call(function.func, *function.args, *arguments, **{**function.keywords, **named})
    elif hasattr(kind, "as_helper"):
        return _call_python(function.as_helper, arguments, named)
    return _checked(function, arguments, named)


def _checked(function: Any, arguments: Any, named: Any, name: str = "") -> Any:
    """Calls a function that is not traced, and refuses it if it changed anything outside."""
    builder = tracing.active()
    if builder is None:
        return function(*arguments, **named)
    for argument in arguments:
        if hasattr(type(argument), "__next__"):
            _check_change(argument, _name(function))
    watched = builder.frozen.reached_by((function, *arguments, *named.values()))
    result = function(*arguments, **named)
    changed = [entry for entry in watched if entry.changed]
    if changed:
        _check_entries(builder, changed, name or _name(function), _refuse_change)
    return result


def _name(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return f"{name}()" if isinstance(name, str) else "the call"


_is_ours = functools.lru_cache(maxsize=1024)(locations.is_ours)


def _call_python(function: Any, arguments: Any, named: Any) -> Any:
    plain = function.__func__ if isinstance(function, MethodType) else function
    builder = tracing.active()
    if builder is None:
        return function(*arguments, **named)
    if is_rewritten(plain.__code__):
        return _registered(function(*arguments, **named))
    if not is_users(plain):
        if _is_ours(plain.__code__.co_filename):
            return function(*arguments, **named)
        return _checked(function, arguments, named)
    if isinstance(function, MethodType):
        arguments = (function.__self__, *arguments)
    new = rewritten(plain)
    if len(builder.calls) >= _DEPTH:
        tracing.refuse(
            f"{plain.__name__} recurses endlessly: a GPU has no call stack, so every call is"
            " traced",
            "use a loop; a recursion must end on values that are known while tracing",
        )
    builder.calls.append(plain.__code__)
    before = builder.locations.enter()
    try:
        return _registered(new(*arguments, **named))
    finally:
        builder.locations.leave(before)
        builder.calls.pop()


def _registered(result: Any) -> Any:
    if type(result) is GeneratorType:
        generators.register(result)
    return result
