"""What the digest of a function may take for granted: things that a name alone says enough of."""

from __future__ import annotations

import sys
import types
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# This project's packages: their sources are in the key by `fly_trace.fingerprint()`.
OWN = _words("fly fly_backend fly_common fly_dialect fly_store fly_target fly_trace")

# Modules of the standard library whose functions depend on their arguments alone. Python's version
# is in the key. (Not `decimal`: its results depend on the thread's context.)
PURE = _words(
    """
    abc bisect builtins cmath collections collections.abc copy dataclasses enum
    fractions functools heapq itertools keyword math numbers operator re string struct
    textwrap types typing _operator _functools _collections _bisect _heapq _struct
    """
)

# Builtins that look at, or change, more than their arguments. (`hash` and `id` differ from process
# to process too, but nobody can mean one process's value rather than another's.)
IMPURE = _words(
    """
    __import__ breakpoint compile delattr dir eval exec globals input locals open
    setattr vars
    """
)

# Attributes by which code gets at more than it names: other functions' globals, all subclasses.
INTROSPECTION = _words(
    """
    __globals__ __builtins__ __subclasses__ f_globals f_locals f_builtins f_back gi_frame cr_frame
    ag_frame tb_frame
    """
)

# Entries of a class's namespace that Python and its library make from what is followed anyway.
CLASS_MACHINERY = _words(
    """
    __dict__ __weakref__ __module__ __abstractmethods__ _abc_impl
    __dataclass_fields__ __dataclass_params__ __slotnames__ __static_attributes__
    __firstlineno__ _member_map_ _value2member_map_ _member_names_ _unhashable_values_
    _hashable_values_ _new_member_ _use_args_ _member_type_ _value_repr_
    """
)

# What `dataclass` writes, and what Enum keeps of a member.
DATACLASS_METHODS = _words(
    """
    __init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __setattr__ __delattr__
    __replace__ __getstate__ __setstate__
    """
)
MEMBER_MACHINERY = _words("_value_ _name_ __objclass__ _sort_order_ _inverted_")

# What is known of a kernel or host function otherwise, or says how to compile it.
DECORATED_MACHINERY = _words("function name block options _kept _dependencies __wrapped__")

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: of C code's alone


def is_known(module: str) -> bool:
    """Whether whatever has a name in `module` is said by that name."""
    return is_own(module) or module in PURE


def is_own(module: str) -> bool:
    return module.partition(".")[0] in OWN


def is_numpy(module: str) -> bool:
    return module.partition(".")[0] == "numpy"


def home(value: Any) -> str:
    """The module that made a value: a function's or class's own, else its class's."""
    if isinstance(value, types.FunctionType):
        return str(value.__globals__.get("__name__"))
    if isinstance(value, types.ModuleType):
        return value.__name__
    return module_of(value if isinstance(value, type) else type(value))


def module_of(made: type) -> str:
    """A class's module. Some builtin types have a descriptor there, meant for their objects."""
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
    """Whether a class comes from a `class` statement, so that `__dict__` and `__slots__` hold all
    the state its objects have. Classes of the standard library, where `known`, do."""
    if made.__flags__ & (_HEAP_TYPE | _IMMUTABLE_TYPE) != _HEAP_TYPE:
        return made is types.SimpleNamespace
    module = module_of(made)
    if module.partition(".")[0] in sys.stdlib_module_names:
        return module in PURE
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    # pybind11 and nanobind give their classes a metaclass of their own.
    ordinary = type(made) is type or is_written_in_python(type(made))
    return ordinary and not file.endswith((".so", ".pyd"))


def is_frozen(made: type) -> bool:
    """Whether objects of a class stay what they are: this project's frozen dataclasses. (Anybody
    else's may be changed by `object.__setattr__`.)"""
    parameters = getattr(made, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and is_own(module_of(made))


def is_generated(code: types.CodeType) -> bool:
    """Whether `dataclass` wrote a method."""
    return code.co_filename == "<string>" or code.co_filename.endswith("reprlib.py")
