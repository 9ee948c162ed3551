"""The kinds of values that a function may reach: a table of the functions that follow them."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import abc
import collections
import copyreg
import enum
import functools
import os
import sys
import types
from collections.abc import Mapping
from typing import Any

from fly_common.code_tables import code_of

from fly.dependencies import stable_names
from fly.dependencies.function_parts import MISSING, flat, keys_and_values
from fly.dependencies.functions import follow_code, follow_function
from fly.dependencies.traversal import SCALARS, Kinds, Traversal, Unfollowed

_FieldOfNamedTuple = type(vars(collections.namedtuple("Sample", "field"))["field"])
# Attributes of `typing` objects that their repr may omit.
_TYPING = ("__metadata__", "__bound__", "__constraints__", "__supertype__", "__forward_arg__")


def _follow_sequence(walk: Traversal, value: Any) -> None:
    if isinstance(value, list):
        walk.mutable(value)
    _follow_subclass(walk, value, tuple, list)
    # Lists and tuples are distinguished: a kernel may check the type, and each only adds to its
    # own.
    tag = "list" if isinstance(value, list) else "tuple"
    walk.values(tag, list.__iter__(value) if isinstance(value, list) else value)


def _follow_slice(walk: Traversal, value: Any) -> None:
    walk.values("slice", (value.start, value.stop, value.step))


def _follow_set(walk: Traversal, value: Any) -> None:
    if isinstance(value, set):
        walk.mutable(value)
    if not all(type(item) in SCALARS for item in value):
        raise Unfollowed("a set of other things than numbers and strings has no stable order")
    _follow_subclass(walk, value, set, frozenset)
    walk.values(type(value).__name__, sorted(value, key=lambda item: (str(type(item)), item)))


def _follow_mapping(walk: Traversal, value: Mapping[Any, Any]) -> None:
    walk.mutable(value)
    _follow_subclass(walk, value, dict, types.MappingProxyType)
    if isinstance(value, collections.defaultdict):
        walk.value(value.default_factory)
    walk.values("mapping", (part for item in value.items() for part in item))


def _follow_builtin(walk: Traversal, value: types.BuiltinFunctionType) -> None:
    owner = value.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        module = str(value.__module__)
        impure = module == "builtins" and value.__name__ in stable_names.IMPURE
        if module not in stable_names.PURE or impure:
            raise Unfollowed(f"{module}.{value.__name__} is not known to be pure")
        walk.emit("builtin", module, value.__qualname__)
    else:
        walk.emit("builtin method", value.__name__)
        walk.value(owner)


def _follow_method(walk: Traversal, value: types.MethodType) -> None:
    walk.values("method", (value.__func__, value.__self__))


def _follow_wrapper(
    walk: Traversal, value: staticmethod[Any, Any] | classmethod[Any, Any, Any]
) -> None:
    walk.values(type(value).__name__, (value.__func__,))
    _follow_subclass(walk, value, staticmethod, classmethod)


def _follow_property(walk: Traversal, value: property) -> None:
    walk.values("property", (value.fget, value.fset, value.fdel))
    _follow_subclass(walk, value, property)


def _follow_partial(walk: Traversal, value: functools.partial[Any]) -> None:
    walk.mutable(value)
    walk.values("partial", (value.func, value.args, *flat(value.keywords)))
    walk.values("attributes", flat(value.__dict__))
    _follow_subclass(walk, value, functools.partial)


def _follow_module(walk: Traversal, value: types.ModuleType) -> None:
    if not walk.leaf(value.__name__, ""):
        raise Unfollowed(f"the module {value.__name__} is used other than by module.name")


def _follow_member(walk: Traversal, value: enum.Enum) -> None:
    walk.emit("member", str(value.name))
    walk.values("value", (value.value, type(value)))
    extra = {n: x for n, x in vars(value).items() if n not in stable_names.MEMBER_MACHINERY}
    if extra:
        walk.mutable(value)
        walk.values("attributes", flat(extra))


def _follow_alias(walk: Traversal, value: Any) -> None:
    walk.values("alias", (value.__origin__, *value.__args__))


def _follow_union(walk: Traversal, value: types.UnionType) -> None:
    walk.values("union", value.__args__)


def _follow_type(walk: Traversal, value: type) -> None:
    module = stable_names.module_of(value)
    if stable_names.is_at_home(value) and walk.leaf(module, value.__qualname__):
        return
    if stable_names.is_numpy(module):
        walk.emit("numpy", _numpy_version(), value.__qualname__)
        return
    if not stable_names.is_written_in_python(value):
        raise Unfollowed(f"the type {value.__qualname__} comes from a C extension")
    walk.classes.append((value, keys_and_values(vars(value))))
    walk.emit("class", module, value.__qualname__)
    walk.values("bases", (type(value), *value.__bases__))
    generated = _follow_dataclass_fields(walk, value)
    for name, attribute in sorted(vars(value).items()):
        if name in stable_names.CLASS_MACHINERY:
            continue
        walk.emit(name)
        code = code_of(attribute) if isinstance(attribute, types.FunctionType) else None
        made = generated and name in stable_names.DATACLASS_METHODS
        if made and code and stable_names.is_generated(code):
            follow_code(walk, code)
        else:
            walk.value(attribute)
    if isinstance(value, abc.ABCMeta):
        _follow_registered(walk, value)


def _follow_registered(walk: Traversal, value: abc.ABCMeta) -> None:
    """Follows the classes that are registered as subclasses of an abstract class."""
    walk.registrations = abc.get_cache_token()
    found = [made for reference in _abc._get_dump(value)[0] if (made := reference())]
    found.sort(key=lambda made: (stable_names.module_of(made), made.__qualname__))
    walk.values("registered", found)


def _follow_dataclass_fields(walk: Traversal, value: type) -> bool:
    """Follows the input of a dataclass's generated methods. Returns False for other classes."""
    fields = vars(value).get("__dataclass_fields__")
    if fields is None:
        return False
    walk.emit(repr(vars(value)["__dataclass_params__"]))
    for name, item in fields.items():
        walk.emit(name, f"{item.init} {item.compare} {item.kw_only} {item._field_type}")
        walk.values("defaults", (item.default, item.default_factory))
        if item.metadata:
            walk.value(item.metadata)
    return True


def _follow_field(walk: Traversal, value: Any) -> None:
    """Follows a field of a named tuple, which is a number."""
    walk.emit("field", repr(value))


def _follow_descriptor(walk: Traversal, value: Any) -> None:
    """Follows a slot of a class, or a method of a builtin type."""
    walk.emit("descriptor", value.__name__)
    walk.value(value.__objclass__)


def _follow_instance(walk: Traversal, value: Any) -> None:
    """Follows any other object: its class and its attributes, if these are its whole state."""
    kind = type(value)
    module = stable_names.module_of(kind)
    if stable_names.is_own(module) and hasattr(value, "__wrapped__"):
        _follow_decorated(walk, value)
    elif stable_names.is_numpy(module) and _follow_numpy(walk, value):
        pass
    elif stable_names.is_own(module) and isinstance(value, int):
        walk.emit("number", str(int(value)))  # an extent of the language
    elif (module, kind.__name__) == ("torch", "dtype"):
        walk.emit(repr(value))
    elif module == "typing":
        walk.emit(repr(value))
        walk.values("arguments", getattr(value, "__args__", ()))
        walk.values("more", (getattr(value, name, None) for name in _TYPING))
    elif hasattr(value, "__wrapped__") and module == "functools":
        _follow_cached(walk, value)
    elif all(stable_names.is_written_in_python(base) for base in kind.__mro__[:-1]):
        if not stable_names.is_frozen(kind):
            walk.mutable(value)
        walk.emit("instance")
        walk.value(kind)
        _follow_state(walk, value)
    elif module in stable_names.PURE:
        walk.mutable(value)
        walk.emit("reduced", kind.__qualname__)
        walk.value(_reduced(value))
    else:
        raise Unfollowed(f"an object of type {module}.{kind.__qualname__}")


def _follow_cached(walk: Traversal, value: Any) -> None:
    """Follows the result of `functools.cache`. Cached results may depend on earlier globals."""
    if value.cache_info().currsize:
        raise Unfollowed(f"the cache of {value.__qualname__} keeps results")
    walk.caches.append(value)
    walk.values("cached", (value.__wrapped__,))


def _follow_decorated(walk: Traversal, value: Any) -> None:
    """Follows a kernel or a host function: the decorated function, the decorator's arguments,
    and attributes that were added. (The options of `fly.jit` only affect compilation.)"""
    walk.emit("decorated", type(value).__qualname__)
    for name in ("function", "name", "block"):
        walk.value(walk.name(vars(value), name))
    for name in sorted(vars(value).keys() - stable_names.DECORATED_MACHINERY):
        if getattr(value.function, name, MISSING) is not vars(value)[name]:
            walk.emit(name)
            walk.value(walk.name(vars(value), name))


def _follow_numpy(walk: Traversal, value: Any) -> bool:
    """Follows NumPy's scalars, arrays, dtypes and ufuncs. Returns False for other objects of
    NumPy."""
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.dtype):
        walk.emit("dtype", value.str, repr(value))
        walk.value(value.metadata)
    elif isinstance(value, numpy.ufunc):
        walk.emit("ufunc", _numpy_version(), value.__name__)
    elif isinstance(value, numpy.generic | numpy.ndarray) and not value.dtype.hasobject:
        walk.emit("array", type(value).__qualname__, value.dtype.str, repr(value.shape))
        walk.emit(value.tobytes())
        if isinstance(value, numpy.ndarray):
            walk.mutable(value)
            walk.emit(repr(value.strides), repr(value.flags.writeable))
            if type(value) is not numpy.ndarray:
                _follow_state(walk, value)
    else:
        return False
    return True


def _follow_subclass(walk: Traversal, value: Any, *exact: type) -> None:
    """Follows what an object of a subclass has in addition to these types."""
    if type(value) not in exact:
        walk.value(type(value))
        _follow_state(walk, value)


def _follow_state(walk: Traversal, value: Any) -> None:
    """Follows the attributes of an object, in its dictionary and in slots."""
    walk.values("state", flat(getattr(value, "__dict__", {})))
    for base in type(value).__mro__:
        if not stable_names.is_written_in_python(base):
            continue
        for name, slot in vars(base).items():
            if isinstance(slot, types.MemberDescriptorType):
                walk.emit("slot", name)
                try:
                    item = slot.__get__(value)
                except AttributeError:  # not set
                    walk.emit("missing")
                else:
                    walk.value(item)


def _follow_environment(walk: Traversal, value: Any) -> None:
    """The variables of the process: all of them, as code may compute the names it looks up."""
    walk.mutable(value)
    walk.values("environment", sorted(value.items()))


def _reduced(value: Any) -> Any:
    """The state that pickle would store for an object of the standard library's C types."""
    reduce = copyreg.dispatch_table.get(type(value))
    try:
        made = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except TypeError:
        raise Unfollowed(f"an object of type {type(value).__qualname__}") from None
    # The fourth part and the fifth are iterators over what it contains, which tell nothing of it.
    return (*made[:3], *(list(part or ()) for part in made[3:])) if len(made) > 3 else made


def _numpy_version() -> str:
    return str(sys.modules["numpy"].__version__)


# In order: the first that fits.
KINDS: Kinds = (
    (enum.Enum, _follow_member),
    (types.GenericAlias, _follow_alias),
    (types.UnionType, _follow_union),
    (type, _follow_type),
    (types.FunctionType, follow_function),
    (types.BuiltinFunctionType, _follow_builtin),
    (types.MethodType, _follow_method),
    ((staticmethod, classmethod), _follow_wrapper),
    (property, _follow_property),
    (
        (
            types.MemberDescriptorType,
            types.GetSetDescriptorType,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
        ),
        _follow_descriptor,
    ),
    (_FieldOfNamedTuple, _follow_field),
    (functools.partial, _follow_partial),
    (types.ModuleType, _follow_module),
    ((tuple, list), _follow_sequence),
    (slice, _follow_slice),
    ((set, frozenset), _follow_set),
    (type(os.environ), _follow_environment),
    ((dict, types.MappingProxyType), _follow_mapping),
    (object, _follow_instance),
)
