"""The fly dialect in MLIR: its types as `ir.Type`, and the verifier.

In MLIR, the dialect is an unregistered one: a type is an OpaqueType, which keeps FlyDSL's text
unchanged, and ops have FlyDSL's dotted names. IRDL, the other way to define a dialect from Python,
does not allow dots in op names, requires quoted type texts, and restricts a variadic operand to one
type (make_int_tuple mixes i32 and i64). `verify` checks what registration would check: names,
operand counts, and result types, which it infers again from the operands.

`new_context` creates a context with the dialect; `load` adds it to an existing one.
"""

from __future__ import annotations

import difflib
import linecache
import re
from collections.abc import Iterable
from typing import Any

from fly_common.errors import InputError, Place
from fly_common.record import replace

from fly_dialect.attributes import check_attributes
from fly_dialect.bindings import ir
from fly_dialect.extension import is_of_plugin, namespaces, plugins_type
from fly_dialect.op_info import OpInfo
from fly_dialect.op_table import every, find
from fly_dialect.type_text import parse_type
from fly_dialect.types import (
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    PtrSpec,
    Spec,
)

# The namespaces of this dialect and of the backends' dialects.
NAMESPACES = ("fly", *namespaces())
PREFIX = "fly."
_PREFIXES = tuple(f"{namespace}." for namespace in NAMESPACES)

# The upstream dialects whose ops are built here by name. An op of a dialect that is not loaded
# would be built as unregistered. The parser and MLIR's passes load the dialects that they need.
_BUILT = ("arith", "cf", "func", "gpu", "llvm", "math", "memref", "scf", "ub", "vector")

# MLIR's name for text that it parses from memory.
PARSED_TEXT = "-"
_FILE_LOCATION = re.compile(r'loc\("(.*)":(\d+):(\d+).*\)')
_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def new_context() -> ir.Context:
    """Creates a context with the dialect, for one module.

    Only the required ones of MLIR's fifty dialects are loaded: all of them take 4 ms to load and 2
    ms to free, as long as the passes of a small kernel. Threads are disabled: they are not
    worthwhile for small modules, and make the order of diagnostics nondeterministic.
    """
    context = load(ir.Context(load_on_create_dialects=list(_BUILT)))
    context.enable_multithreading(False)
    return context


def load_upstream(context: ir.Context, names: Iterable[str]) -> None:
    """Loads MLIR's dialects of a backend. Registering their many types takes time, so only code
    that builds their ops calls this."""
    for name in names:
        _ = context.dialects[name]


def load(context: ir.Context) -> ir.Context:
    """Adds the dialect to `context` and returns it. May be called twice."""
    context.allow_unregistered_dialects = True
    return context


def type_of(spec: Spec, context: ir.Context | None = None) -> ir.Type:
    """The `ir.Type` of a spec. A string is parsed as a type."""
    if isinstance(spec, str):
        return _plain_type(spec, context)
    namespace, data = str(spec)[1:].split(".", 1)
    return ir.OpaqueType.get(namespace, data, context)


def memref_type(spec: MemRefSpec, context: ir.Context | None = None) -> ir.Type:
    return type_of(spec, context)


def ptr_type(spec: PtrSpec, context: ir.Context | None = None) -> ir.Type:
    return type_of(spec, context)


def int_tuple_type(spec: IntTupleSpec, context: ir.Context | None = None) -> ir.Type:
    return type_of(spec, context)


def layout_type(spec: LayoutSpec, context: ir.Context | None = None) -> ir.Type:
    return type_of(spec, context)


def element_type(spec: Spec, context: ir.Context | None = None) -> ir.Type:
    """The `ir.Type` of an element of a memref or pointer."""
    if not isinstance(spec, (MemRefSpec, PtrSpec)):
        raise TypeError(f"{spec} has no elements")
    return _plain_type(spec.element, context)


def spec_of(type_: ir.Type) -> Spec:
    """The spec of a type, or the text of another dialect's. Raises ValueError if it is invalid."""
    if isinstance(type_, ir.OpaqueType):
        namespace, data = type_.dialect_namespace, type_.data
        if namespace in NAMESPACES:
            return parse_type(f"!{namespace}.{data}")
        return plugins_type(namespace, data) or str(type_)
    if isinstance(type_, ir.IntegerType):
        return f"i{type_.width}" if type_.is_signless else str(type_)
    return str(type_)


def pointer_of(value: ir.Value) -> PtrSpec:
    """The type of a pointer value. Raises ValueError for other values."""
    spec = spec_of(value.type)
    if not isinstance(spec, PtrSpec):
        raise ValueError(f"{spec} is not a pointer")
    return spec


def int_tuple_of(value: ir.Value) -> IntTupleSpec:
    """The type of an int_tuple value. Raises ValueError for other values."""
    spec = spec_of(value.type)
    if not isinstance(spec, IntTupleSpec):
        raise ValueError(f"{spec} is not an int_tuple")
    return spec


def memref_of(value: ir.Value) -> MemRefSpec:
    """The type of a memref value. Raises ValueError for other values."""
    spec = spec_of(value.type)
    if not isinstance(spec, MemRefSpec):
        raise ValueError(f"{spec} is not a memref")
    return spec


def _plain_type(text: str, context: ir.Context | None) -> ir.Type:
    simple = {"f32": ir.F32Type, "f16": ir.F16Type, "bf16": ir.BF16Type, "f64": ir.F64Type}
    if text in simple:
        return simple[text].get(context)
    if text[0] == "i" and text[1:].isdigit():
        return ir.IntegerType.get_signless(int(text[1:]), context)
    return ir.Type.parse(text, context)


def plain(attribute: ir.Attribute) -> Any:
    """Converts an attribute to Python data: integers, booleans, strings, lists and dictionaries."""
    if isinstance(attribute, (ir.BoolAttr, ir.IntegerAttr, ir.StringAttr, ir.FloatAttr)):
        return attribute.value
    if isinstance(attribute, (ir.DenseI32ArrayAttr, ir.DenseI64ArrayAttr)):
        return list(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return [plain(element) for element in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {item.name: plain(item.attr) for item in attribute}
    return attribute


def attributes_of(op: ir.Operation) -> dict[str, Any]:
    """The attributes of an op as Python data. ValueError for one that Python has no type for, such
    as an array of i128."""
    if not len(op.attributes):
        return {}
    found = {}
    for item in op.attributes:
        try:
            found[item] = plain(op.attributes[item])
        except TypeError:
            raise ValueError(f"the attribute {item} has elements of an unknown type") from None
    return found


# -- verification ---------------------------------------------------------------------------------
def verify(module: ir.Module, source: str | None = None, name: str = "<stdin>") -> None:
    """Raises InputError for the first invalid fly op, or type of a block argument.

    `source` is the text the module was parsed from, and `name` the file's name, for the error's
    excerpt. Ops of other dialects are verified by MLIR; this only checks that their names are
    known.
    """
    failures: list[InputError] = []
    seen: set[tuple[object, ...]] = set()
    known: set[str] = set()  # ops of other dialects
    advance = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in known and not len(op.regions):
            return advance
        op = op.operation
        try:
            if check(op, seen):
                known.add(op.name)
        except ValueError as error:
            place = place_of(op.location, source, name)
            failures.append(InputError(f"{op.name}: {error}", place=place))
            return ir.WalkResult.INTERRUPT
        return advance

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if failures:
        raise failures[0]


def check(op: ir.Operation, seen: set[tuple[object, ...]] | None = None) -> bool:
    """Raises ValueError if an op is invalid. Ops without attributes whose types are in `seen` are
    skipped; checked ones are added to it. Returns whether the op is another dialect's."""
    name = op.name
    if not name.startswith(_PREFIXES) and not is_of_plugin(name):
        _check_foreign(op, name)
        return True
    info = find(name)
    if info is None:
        known = [known.full_name for known in every().values()]
        near = difflib.get_close_matches(name, known, n=1)
        raise ValueError(f"unknown op{f'; did you mean {near[0]}?' if near else ''}")
    types = [operand.type for operand in op.operands], [result.type for result in op.results]
    attributes = attributes_of(op)
    key = None
    if seen is not None and not attributes:
        key = (name, *map(tuple, types))
        if key in seen:
            return False
    operands, results = ([spec_of(type_) for type_ in group] for group in types)
    check_types(info, operands, results, attributes)
    if key is not None and seen is not None:
        seen.add(key)
    return False


def check_operand_count(info: OpInfo, found: int) -> None:
    """Raises ValueError unless the op can have this number of operands."""
    counts = info.operands
    if counts is None or found == counts or (isinstance(counts, tuple) and found in counts):
        return
    expected = " or ".join(map(str, counts)) if isinstance(counts, tuple) else counts
    raise ValueError(f"takes {expected} operands, but has {found}")


def check_types(
    info: OpInfo, operands: list[Spec], results: list[Spec], attributes: dict[str, Any]
) -> None:
    """Raises ValueError unless the op can have these operands and results."""
    check_operand_count(info, len(operands))
    if info.results is not None and info.results != len(results):
        raise ValueError(f"takes {info.results} results, but has {len(results)}")
    if info.infer is not None:
        inferred = info.infer(operands, attributes)
        if inferred != results:
            raise ValueError(
                f"the inferred type {_list(inferred)} is not the result's type {_list(results)}"
            )
    if info.check is not None:
        info.check(operands, results, attributes)


def _list(specs: list[Spec]) -> str:
    return str(specs[0]) if len(specs) == 1 else f"({', '.join(map(str, specs))})"


def _check_foreign(op: ir.Operation, name: str) -> None:
    if not op.context.is_registered_operation(name):
        raise ValueError("no dialect defines this op")
    if len(op.regions):
        check_attributes(op)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                spec_of(argument.type)


def place_of(
    location: ir.Location, source: str | None = None, name: str = "<stdin>"
) -> Place | None:
    """The place of a location, with the line's text if `source` or the file contains it."""
    position = file_position(location)
    if position is None:
        return None
    file, line, column = position
    if file == PARSED_TEXT:
        lines = source.split("\n") if source is not None else []
        text = lines[line - 1] if 0 < line <= len(lines) else None
        return Place(name, line, column, text)
    found = _in_file(file, line, column)
    if calls := _calls_of(location):
        return replace(found, calls=tuple(_in_file(*one) for one in calls))
    return found


def _in_file(file: str, line: int, column: int) -> Place:
    return Place(file, line, column, linecache.getline(file, line).rstrip("\n") or None)


def _calls_of(location: ir.Location) -> list[tuple[str, int, int]]:
    """The calls on the way to a CallSiteLoc, innermost first."""
    if isinstance(location, ir.CallSiteLoc):
        found = [file_position(location.caller)]
        return [one for one in found if one] + _calls_of(location.caller)
    if isinstance(location, (ir.FusedLoc, ir.NameLoc, ir.FileLineColLoc)):
        return []
    # As in `file_position`: the text of nested `callsite(place at place)`.
    text = str(location)
    if not text.startswith("loc(callsite("):
        return []
    return [(file, int(line), int(column)) for file, line, column in _PLACE.findall(text)[1:]]


def file_position(location: ir.Location) -> tuple[str, int, int] | None:
    """File, line and column of a location. For a NameLoc uses its child, for a FusedLoc its first
    part, for a CallSiteLoc its callee."""
    if isinstance(location, ir.NameLoc):
        return file_position(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return file_position(location.callee)
    if isinstance(location, ir.FusedLoc):
        found = map(file_position, location.locations)
        return next((position for position in found if position), None)
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    # The location of a diagnostic has the base class. Its text is `loc("file":line:column)`.
    text = str(location)
    if text.startswith("loc(callsite("):
        match = _PLACE.search(text)
    else:
        match = _FILE_LOCATION.fullmatch(text)
    return (match[1], int(match[2]), int(match[3])) if match else None
