"""Names that the dependency hash trusts: the name alone identifies the value."""

from __future__ import annotations

import sys
import types
from typing import Any

from fly_trace.core import locations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# This project's packages: `fly_trace.fingerprint()` covers their sources.
OWN = _words("fly fly_backend fly_common fly_dialect fly_store fly_target fly_trace")

# MLIR's bindings: `fingerprint` names their version.
BINDINGS = _words("mlir torch_mlir")

# Modules of the standard library whose functions depend only on their arguments. The key includes
# Python's version. (`decimal` is missing because its results depend on the thread's context.)
PURE = _words(
    """
    abc bisect builtins cmath collections collections.abc copy dataclasses enum
    fractions functools heapq itertools keyword math numbers operator re string struct
    textwrap types typing _operator _functools _collections _bisect _heapq _struct
    """
)

# Builtins that read or change more than their arguments. (`hash` and `id` also vary between
# processes, but no program depends on one particular value.)
IMPURE = _words(
    """
    __import__ breakpoint compile delattr dir eval exec globals input locals open
    setattr vars
    """
)

# Attributes that reach more than the code names: other functions' globals, all subclasses.
INTROSPECTION = _words(
    """
    __globals__ __builtins__ __subclasses__ f_globals f_locals f_builtins f_back gi_frame cr_frame
    ag_frame tb_frame
    """
)

# Entries of a class's namespace that Python generates from what is followed anyway.
CLASS_MACHINERY = _words(
    """
    __dict__ __weakref__ __module__ __abstractmethods__ _abc_impl
    __dataclass_fields__ __dataclass_params__ __slotnames__ __static_attributes__
    __firstlineno__ _member_map_ _value2member_map_ _member_names_ _unhashable_values_
    _hashable_values_ _new_member_ _use_args_ _member_type_ _value_repr_
    """
)

# Methods that `dataclass` generates, and Enum's attributes of a member.
DATACLASS_METHODS = _words(
    """
    __init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __setattr__ __delattr__
    __replace__ __getstate__ __setstate__
    """
)
MEMBER_MACHINERY = _words("_value_ _name_ __objclass__ _sort_order_ _inverted_")

# Attributes of a kernel or host function that are hashed elsewhere, or configure compilation.
DECORATED_MACHINERY = _words("function name block options _kept _dependencies __wrapped__")

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE, set only by C code


def is_known(module: str) -> bool:
    """Returns whether a value with a name in `module` is identified by that name."""
    return is_own(module) or module in PURE or module.partition(".")[0] in BINDINGS


def module_found(name: str) -> str:
    """The name of the module that an import finds by `name`, which may be another one's alias, or
    in the package of that one."""
    known, rest = name, ""
    while known:
        if isinstance(found := sys.modules.get(known), types.ModuleType):
            return found.__name__ + rest
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return name


def is_own(module: str) -> bool:
    return module.partition(".")[0] in OWN and locations.is_own_module(module)


def is_numpy(module: str) -> bool:
    return module.partition(".")[0] == "numpy"


def home(value: Any) -> str:
    """Returns the module that defines a value: its own, or that of its class."""
    if isinstance(value, types.FunctionType):
        return str(value.__globals__.get("__name__"))
    if isinstance(value, types.ModuleType):
        return value.__name__
    return module_of(value if isinstance(value, type) else type(value))


def module_of(made: type) -> str:
    """Returns a class's module. For some builtin types `__module__` is a descriptor."""
    module = made.__module__
    return module if isinstance(module, str) else "builtins"


def is_at_home(made: type) -> bool:
    """Whether a class is what its module has under its name. Others may say that they are of the
    module that made them: of `abc` what `ABCMeta` was called for, of `types` what
    `dataclasses.make_dataclass` makes."""
    module = module_of(made)
    if is_own(module) or not made.__flags__ & _HEAP_TYPE:
        return True
    found: Any = sys.modules.get(module)
    for name in made.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is made


def is_written_in_python(made: type) -> bool:
    """Returns whether a class comes from a `class` statement, so that `__dict__` and `__slots__`
    hold the whole state of its objects. True for classes of `known` modules of the standard
    library."""
    if made.__flags__ & (_HEAP_TYPE | _IMMUTABLE_TYPE) != _HEAP_TYPE:
        return made is types.SimpleNamespace
    module = module_of(made)
    if module.partition(".")[0] in sys.stdlib_module_names:
        return module in PURE
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    # pybind11 and nanobind classes have a metaclass written in C++.
    ordinary = type(made) is type or is_written_in_python(type(made))
    return ordinary and not file.endswith((".so", ".pyd"))


def is_frozen(made: type) -> bool:
    """Returns whether a class is one of this project's frozen records or dataclasses, whose objects
    do not change. (Those of other frozen classes may be changed by `object.__setattr__`.)"""
    settings = getattr(made, "__dataclass_params__", None)
    frozen = getattr(made, "__record_frozen__", False) or getattr(settings, "frozen", False)
    return frozen and is_own(module_of(made))


def is_generated(code: types.CodeType) -> bool:
    """Returns whether `dataclass` generated a method."""
    return code.co_filename == "<string>" or code.co_filename.endswith("reprlib.py")
