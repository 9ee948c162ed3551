"""What the class of a struct has besides its fields: methods, properties, operators, constants."""

from __future__ import annotations

from typing import Any

# What Python itself puts into the namespace of a class. `__slots__` would exclude the fields, and
# their descriptors are of the class as it was written.
_PYTHONS = frozenset(
    (*vars(type("_", (), {})), "__annotations__", "__annotate__", "__annotate_func__")
)
_PYTHONS |= {"__qualname__", "__slots__", "__static_attributes__", "__firstlineno__"}
_PYTHONS |= {"__annotations_cache__", "__conditional_annotations__", "__type_params__"}


def members_of(plain: type, fields: dict[str, Any]) -> dict[str, Any]:
    """The members of a class that is made a struct, its base classes' too, which the struct's class
    gets. A field's default is not one.

    TypeError where a base class is a struct: its fields would be lost. ValueError for a method of a
    field's name.
    """
    for base in plain.__mro__[1:]:
        if hasattr(base, "__fly_fields__"):
            raise TypeError(
                f"{plain.__name__} has the struct {base.__name__} as a base class;"
                " make that a field, or repeat its fields"
            )
    found: dict[str, Any] = {}
    for base in reversed(plain.__mro__[:-1]):
        found |= {name: value for name, value in vars(base).items() if name not in _PYTHONS}
    conflicts = [name for name in fields if _is_behavior(found.pop(name, None))]
    if conflicts:
        raise ValueError(f"{plain.__name__}: members conflict with fields: {conflicts}")
    return found


def _is_behavior(value: Any) -> bool:
    return isinstance(value, (property, staticmethod, classmethod)) or callable(value)
