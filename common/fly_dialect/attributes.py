"""The attributes named `fly.…` on modules, functions and their arguments, and their types.

They are discardable attributes (MLIR Language Reference, "Attributes"): no op defines them, so
MLIR's verifier accepts any value. The tools read them by the types that are checked here.
"""

from __future__ import annotations

from collections.abc import Callable

from fly_common.quoting import shortened

from fly_dialect.bindings import ir


def _is_string(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.StringAttr)


def _is_unit(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.UnitAttr)


def _is_constant(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, (ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr, ir.StringAttr))


def _is_shape(attribute: ir.Attribute) -> bool:
    kinds = (ir.StringAttr, ir.IntegerAttr, ir.UnitAttr)
    return isinstance(attribute, ir.ArrayAttr) and all(isinstance(one, kinds) for one in attribute)


def _is_results(attribute: ir.Attribute) -> bool:
    if isinstance(attribute, ir.ArrayAttr):
        return all(map(_is_results, attribute))
    if isinstance(attribute, ir.DictAttr):
        checks = {"name": _is_string, "value": _is_constant}
        return all(item.name in checks and checks[item.name](item.attr) for item in attribute)
    return isinstance(attribute, ir.UnitAttr)


_STRING = (_is_string, "a string")
_TYPES: dict[str, tuple[Callable[[ir.Attribute], bool], str]] = {
    # of a module
    "fly.target": _STRING,
    "fly.backend": _STRING,
    "fly.entry": _STRING,
    "fly.host_program": _STRING,
    # of a host function
    "fly.results": (_is_results, "made of arrays, unit, {name = string} and {value = constant}"),
    # of its arguments
    "fly.name": _STRING,
    "fly.dtype": _STRING,
    "fly.access": _STRING,
    "fly.shape": (_is_shape, "an array of strings, integers and unit"),
    "fly.contiguous": (_is_unit, "unit"),
    "fly.default": (_is_constant, "a number, a boolean or a string"),
}


def check_attributes(op: ir.Operation) -> None:
    """Raises ValueError for an attribute of the op, or of its arguments, of a wrong type."""
    for name in op.attributes:
        if name in _TYPES:
            _check(name, op.attributes[name], "")
        elif name == "arg_attrs":
            for number, argument in enumerate(op.attributes[name]):
                for item in argument:
                    _check(item.name, item.attr, f" of argument {number}")


def _check(name: str, attribute: ir.Attribute, of: str) -> None:
    if name in _TYPES:
        accepts, wanted = _TYPES[name]
        if not accepts(attribute):
            raise ValueError(
                f"the attribute {name}{of} is {shortened(str(attribute))}, not {wanted}"
            )
