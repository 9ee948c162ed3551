"""Walks over the values that a function reaches, and computes their digest.

`_KINDS` maps each kind of value to the method that handles it. The walk also records what is needed
to check later whether these values have changed.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import abc
import collections
import copyreg
import enum
import functools
import re
import struct
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from fly.dependencies import stable_names
from fly.dependencies.bytecode import check_source, names_of, source_of
from fly.dependencies.function_parts import (
    MISSING,
    builtins_of,
    contents_of,
    flat,
    keys_and_values,
    parts_of,
)

MOST_VALUES = 20_000  # a function that reaches more is traced at each call

# The annotation of a local variable: from its colon to the end of the line.
_ANNOTATED = re.compile(r"^\s*[A-Za-z_]\w*\s*:(.+)$", re.MULTILINE)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


class Unfollowed(Exception):
    """A value whose influence on the trace cannot be determined."""


@dataclass
class Traversal:
    hash: Any = field(default_factory=lambda: sha256(sys.version.encode()))
    seen: dict[int, int] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)  # keeps the ids valid
    names: dict[tuple[int, str], tuple[Mapping[str, Any], str, Any]] = field(default_factory=dict)
    cells: list[tuple[types.CellType, Any]] = field(default_factory=list)
    functions: list[tuple[types.FunctionType, tuple[Any, ...]]] = field(default_factory=list)
    classes: list[tuple[type, tuple[Any, ...]]] = field(default_factory=list)
    mutables: list[Any] = field(default_factory=list)
    caches: list[Any] = field(default_factory=list)  # caches of functools, all of them empty
    registrations: object = None  # state of ABC registrations, if `isinstance` may use them

    def emit(self, *texts: str | bytes) -> None:
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:%b" % (len(data), data))

    def value(self, value: Any) -> None:
        kind = type(value)
        if kind in _SCALARS:
            if kind is str and value in stable_names.INTROSPECTION:
                raise Unfollowed(f"it looks at {value}")
            self.emit(kind.__name__, _SCALARS[kind](value))
            return
        # Shared values and cycles: later occurrences are represented by a number.
        if (number := self.seen.get(id(value))) is not None:
            self.emit("again", str(number))
            return
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
        if len(self.seen) > MOST_VALUES:
            raise Unfollowed(f"it reaches more than {MOST_VALUES} values")
        for base, follow in _KINDS:
            if isinstance(value, base):
                follow(self, value)
                return
        self.instance(value)

    def values(self, tag: str, values: Iterable[Any]) -> None:
        items = tuple(values)
        self.emit(tag, str(len(items)))
        for item in items:
            self.value(item)

    def mutable(self, value: Any) -> None:
        self.mutables.append(value)

    def subclass(self, value: Any, *exact: type) -> None:
        """Follows what an object of a subclass has in addition to these types."""
        if type(value) not in exact:
            self.value(type(value))
            self.state(value)

    def sequence(self, value: Any) -> None:
        if isinstance(value, list):
            self.mutable(value)
        self.subclass(value, tuple, list)
        # Lists and tuples are distinguished: a kernel may check the type, and each only adds to its
        # own.
        tag = "list" if isinstance(value, list) else "tuple"
        self.values(tag, list.__iter__(value) if isinstance(value, list) else value)

    def slice(self, value: Any) -> None:
        self.values("slice", (value.start, value.stop, value.step))

    def set(self, value: Any) -> None:
        if isinstance(value, set):
            self.mutable(value)
        if not all(type(item) in _SCALARS for item in value):
            raise Unfollowed("a set of other things than numbers and strings has no stable order")
        self.subclass(value, set, frozenset)
        self.values(type(value).__name__, sorted(value, key=lambda item: (str(type(item)), item)))

    def mapping(self, value: Mapping[Any, Any]) -> None:
        self.mutable(value)
        self.subclass(value, dict, types.MappingProxyType)
        if isinstance(value, collections.defaultdict):
            self.value(value.default_factory)
        self.values("mapping", (part for item in value.items() for part in item))

    def function(self, value: types.FunctionType) -> None:
        module = str(value.__globals__.get("__name__"))
        if self.leaf(module, value.__qualname__):
            # Several functions may be created in one place: apart from the closure, the name
            # identifies them.
            self.closure(value)
            return
        self.functions.append((value, parts_of(value)))
        self.emit("function", value.__name__, value.__qualname__, str(value.__doc__))
        check_source(value.__code__)
        self.code(value.__code__)
        self.value(value.__defaults__)
        self.values("kwdefaults", flat(value.__kwdefaults__ or {}))
        self.values("attributes", flat(value.__dict__))
        self.closure(value)
        self.annotations(value)
        names = names_of(value.__code__)
        for name in sorted(names.all & stable_names.INTROSPECTION):
            raise Unfollowed(f"it looks at {name}")
        if names.writes:
            raise Unfollowed(f"it assigns the global {names.writes[0]}")
        for name in names.imports:
            if not stable_names.is_known(name):
                raise Unfollowed(f"it imports {name} when it runs")
        for path in names.paths:
            self.path(value.__globals__, path)
        # Annotations of local variables are only in the source.
        annotations = " ".join(_ANNOTATED.findall(source_of(value.__code__)))
        for dotted in sorted(set(_DOTTED.findall(annotations))):
            path = tuple(dotted.split("."))
            first = value.__globals__.get(path[0], MISSING)
            prose = first is MISSING or (isinstance(first, types.ModuleType) and len(path) == 1)
            if path not in names.paths and not prose:
                self.path(value.__globals__, path)

    def closure(self, value: types.FunctionType) -> None:
        for cell in value.__closure__ or ():
            contents = contents_of(cell)
            self.cells.append((cell, contents))
            if contents is MISSING:
                raise Unfollowed("a variable of a closure is not set yet")
            self.value(contents)

    def annotations(self, value: types.FunctionType) -> None:
        for name, annotation in value.__annotations__.items():
            self.emit("annotation", name)
            self.value(annotation)
            if isinstance(annotation, str):
                for dotted in _DOTTED.findall(annotation):
                    self.path(value.__globals__, tuple(dotted.split(".")))

    def path(self, space: dict[str, Any], path: tuple[str, ...]) -> None:
        """Follows a global and, while it is a module, the attributes looked up in it."""
        name, *attributes = path
        self.emit("path", *path)
        value = self.name(space, name)
        if value is MISSING:
            self.name(space, "__builtins__")
            value = self.name(builtins_of(space), name)
            if name in stable_names.IMPURE and value is not MISSING:
                raise Unfollowed(f"it calls {name}()")
        while isinstance(value, types.ModuleType) and attributes:
            module, attribute = value, attributes.pop(0)
            value = self.name(vars(module), attribute)
            if value is MISSING:  # a module with its own __getattr__
                value = getattr(module, attribute, MISSING)
                self.name(vars(module), attribute)  # __getattr__ may have stored it
                if not (
                    value is MISSING
                    or isinstance(value, types.ModuleType)  # imported on demand
                    or stable_names.is_own(module.__name__)
                ):
                    raise Unfollowed(f"the module {module.__name__} computes {attribute}")
            ours = stable_names.is_own(module.__name__) and stable_names.is_own(
                stable_names.home(value)
            )
            if ours and not isinstance(value, types.ModuleType):
                self.emit("own", module.__name__, attribute)
                return
        self.emit("missing") if value is MISSING else self.value(value)

    def name(self, space: Mapping[str, Any], name: str) -> Any:
        value = space.get(name, MISSING)
        self.names[id(space), name] = (space, name, value)
        return value

    def code(self, code: types.CodeType) -> None:
        """Follows bytecode, constants and positions, and also the source, because bytecode does not
        contain the annotations of local variables."""
        self.emit("code", code.co_filename, code.co_qualname, code.co_code, code.co_linetable)
        self.emit(code.co_exceptiontable, str(code.co_firstlineno), str(code.co_flags))
        self.emit(f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}")
        self.emit(*code.co_names, "", *code.co_varnames, "", *code.co_freevars, *code.co_cellvars)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)
            else:
                self.constant(constant)
        self.emit(source_of(code))

    def constant(self, value: Any) -> None:
        """Follows a constant of bytecode. Sharing is ignored, because whether constants are shared
        is arbitrary."""
        if isinstance(value, tuple | frozenset):
            items = sorted(value, key=repr) if isinstance(value, frozenset) else value
            self.emit(type(value).__name__, str(len(items)))
            for item in items:
                self.constant(item)
        else:
            self.value(value)

    def builtin(self, value: types.BuiltinFunctionType) -> None:
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            module = str(value.__module__)
            impure = module == "builtins" and value.__name__ in stable_names.IMPURE
            if module not in stable_names.PURE or impure:
                raise Unfollowed(f"{module}.{value.__name__} is not known to be pure")
            self.emit("builtin", module, value.__qualname__)
        else:
            self.emit("builtin method", value.__name__)
            self.value(owner)

    def method(self, value: types.MethodType) -> None:
        self.values("method", (value.__func__, value.__self__))

    def wrapper(self, value: staticmethod[Any, Any] | classmethod[Any, Any, Any]) -> None:
        self.values(type(value).__name__, (value.__func__,))
        self.subclass(value, staticmethod, classmethod)

    def property(self, value: property) -> None:
        self.values("property", (value.fget, value.fset, value.fdel))
        self.subclass(value, property)

    def partial(self, value: functools.partial[Any]) -> None:
        self.mutable(value)
        self.values("partial", (value.func, value.args, *flat(value.keywords)))
        self.values("attributes", flat(value.__dict__))
        self.subclass(value, functools.partial)

    def module(self, value: types.ModuleType) -> None:
        if not self.leaf(value.__name__, ""):
            raise Unfollowed(f"the module {value.__name__} is used other than by module.name")

    def member(self, value: enum.Enum) -> None:
        self.emit("member", str(value.name))
        self.values("value", (value.value, type(value)))
        extra = {n: x for n, x in vars(value).items() if n not in stable_names.MEMBER_MACHINERY}
        if extra:
            self.mutable(value)
            self.values("attributes", flat(extra))

    def alias(self, value: Any) -> None:
        self.values("alias", (value.__origin__, *value.__args__))

    def union(self, value: types.UnionType) -> None:
        self.values("union", value.__args__)

    def type(self, value: type) -> None:
        module = stable_names.module_of(value)
        if self.leaf(module, value.__qualname__):
            return
        if stable_names.is_numpy(module):
            self.emit("numpy", _numpy_version(), value.__qualname__)
            return
        if not stable_names.is_written_in_python(value):
            raise Unfollowed(f"the type {value.__qualname__} comes from a C extension")
        self.classes.append((value, keys_and_values(vars(value))))
        self.emit("class", module, value.__qualname__)
        self.values("bases", (type(value), *value.__bases__))
        generated = self.dataclass_fields(value)
        for name, attribute in sorted(vars(value).items()):
            if name in stable_names.CLASS_MACHINERY:
                continue
            self.emit(name)
            code = getattr(attribute, "__code__", None)
            made = generated and name in stable_names.DATACLASS_METHODS
            if made and code and stable_names.is_generated(code):
                self.code(code)
            else:
                self.value(attribute)
        if isinstance(value, abc.ABCMeta):
            self.registered(value)

    def registered(self, value: abc.ABCMeta) -> None:
        """Follows the classes that are registered as subclasses of an abstract class."""
        self.registrations = abc.get_cache_token()
        found = [made for reference in _abc._get_dump(value)[0] if (made := reference())]
        found.sort(key=lambda made: (stable_names.module_of(made), made.__qualname__))
        self.values("registered", found)

    def dataclass_fields(self, value: type) -> bool:
        """Follows the input of a dataclass's generated methods. Returns False for other classes."""
        fields = vars(value).get("__dataclass_fields__")
        if fields is None:
            return False
        self.emit(repr(vars(value)["__dataclass_params__"]))
        for name, item in fields.items():
            self.emit(name, f"{item.init} {item.compare} {item.kw_only} {item._field_type}")
            self.values("defaults", (item.default, item.default_factory))
            if item.metadata:
                self.value(item.metadata)
        return True

    def descriptor(self, value: Any) -> None:
        """Follows a slot of a class, or a method of a builtin type."""
        self.emit("descriptor", value.__name__)
        self.value(value.__objclass__)

    def instance(self, value: Any) -> None:
        """Follows any other object: its class and its attributes, if these are its whole state."""
        kind = type(value)
        module = stable_names.module_of(kind)
        if stable_names.is_own(module) and hasattr(value, "__wrapped__"):
            self.decorated(value)
        elif stable_names.is_numpy(module) and self.numpy(value):
            pass
        elif stable_names.is_own(module) and isinstance(value, int):
            self.emit("number", str(int(value)))  # an extent of the language
        elif (module, kind.__name__) == ("torch", "dtype"):
            self.emit(repr(value))
        elif module == "typing":
            self.emit(repr(value))
            self.values("arguments", getattr(value, "__args__", ()))
            self.values("more", (getattr(value, name, None) for name in _TYPING))
        elif hasattr(value, "__wrapped__") and module == "functools":
            self.cached(value)
        elif all(stable_names.is_written_in_python(base) for base in kind.__mro__[:-1]):
            if not stable_names.is_frozen(kind):
                self.mutable(value)
            self.emit("instance")
            self.value(kind)
            self.state(value)
        elif module in stable_names.PURE:
            self.mutable(value)
            self.emit("reduced", kind.__qualname__)
            self.value(_reduced(value))
        else:
            raise Unfollowed(f"an object of type {module}.{kind.__qualname__}")

    def cached(self, value: Any) -> None:
        """Follows the result of `functools.cache`. Cached results may depend on earlier globals."""
        if value.cache_info().currsize:
            raise Unfollowed(f"the cache of {value.__qualname__} keeps results")
        self.caches.append(value)
        self.values("cached", (value.__wrapped__,))

    def decorated(self, value: Any) -> None:
        """Follows a kernel or a host function: the decorated function, the decorator's arguments,
        and attributes that were added. (The options of `fly.jit` only affect compilation.)"""
        self.emit("decorated", type(value).__qualname__)
        for name in ("function", "name", "block"):
            self.value(self.name(vars(value), name))
        for name in sorted(vars(value).keys() - stable_names.DECORATED_MACHINERY):
            if getattr(value.function, name, MISSING) is not vars(value)[name]:
                self.emit(name)
                self.value(self.name(vars(value), name))

    def state(self, value: Any) -> None:
        """Follows the attributes of an object, in its dictionary and in slots."""
        self.values("state", flat(getattr(value, "__dict__", {})))
        for base in type(value).__mro__:
            if not stable_names.is_written_in_python(base):
                continue
            for name, slot in vars(base).items():
                if isinstance(slot, types.MemberDescriptorType):
                    self.emit("slot", name)
                    try:
                        item = slot.__get__(value)
                    except AttributeError:  # not set
                        self.emit("missing")
                    else:
                        self.value(item)

    def numpy(self, value: Any) -> bool:
        """Follows NumPy's scalars, arrays, dtypes and ufuncs. Returns False for other objects of
        NumPy."""
        numpy = sys.modules["numpy"]
        if isinstance(value, numpy.dtype):
            self.emit("dtype", value.str, repr(value))
            self.value(value.metadata)
        elif isinstance(value, numpy.ufunc):
            self.emit("ufunc", _numpy_version(), value.__name__)
        elif isinstance(value, numpy.generic | numpy.ndarray) and not value.dtype.hasobject:
            self.emit("array", type(value).__qualname__, value.dtype.str, repr(value.shape))
            self.emit(value.tobytes())
            if isinstance(value, numpy.ndarray):
                self.mutable(value)
                self.emit(repr(value.strides), repr(value.flags.writeable))
                if type(value) is not numpy.ndarray:
                    self.state(value)
        else:
            return False
        return True

    def leaf(self, module: str, name: str) -> bool:
        """If (module, name) identifies the value, adds it to the digest and returns True."""
        if not stable_names.is_known(module):
            return False
        self.emit("known", module, name)
        return True


_SCALARS: dict[type, Callable[[Any], str | bytes]] = {
    type(None): repr,
    type(...): repr,
    type(NotImplemented): repr,
    bool: repr,
    int: hex,  # of any length; repr refuses more than 4,300 digits
    float: lambda value: struct.pack(">d", value),
    complex: lambda value: struct.pack(">dd", value.real, value.imag),
    str: lambda value: value,
    bytes: lambda value: value,
    range: repr,
}
# Attributes of `typing` objects that their repr may omit.
_TYPING = ("__metadata__", "__bound__", "__constraints__", "__supertype__", "__forward_arg__")
# The first match is used. Anything else is an instance.
_KINDS: tuple[tuple[Any, Callable[[Traversal, Any], None]], ...] = (
    (enum.Enum, Traversal.member),
    ((types.GenericAlias,), Traversal.alias),
    (types.UnionType, Traversal.union),
    (type, Traversal.type),
    (types.FunctionType, Traversal.function),
    (types.BuiltinFunctionType, Traversal.builtin),
    (types.MethodType, Traversal.method),
    ((staticmethod, classmethod), Traversal.wrapper),
    (property, Traversal.property),
    (
        (
            types.MemberDescriptorType,
            types.GetSetDescriptorType,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
        ),
        Traversal.descriptor,
    ),
    (functools.partial, Traversal.partial),
    (types.ModuleType, Traversal.module),
    ((tuple, list), Traversal.sequence),
    (slice, Traversal.slice),
    ((set, frozenset), Traversal.set),
    ((dict, types.MappingProxyType), Traversal.mapping),
)


def _reduced(value: Any) -> Any:
    """The state that pickle would store for an object of the standard library's C types."""
    reduce = copyreg.dispatch_table.get(type(value))
    try:
        return value.__reduce_ex__(2) if reduce is None else reduce(value)
    except TypeError:
        raise Unfollowed(f"an object of type {type(value).__qualname__}") from None


def _numpy_version() -> str:
    return str(sys.modules["numpy"].__version__)
