"""Follows functions: their code, closure, annotations, and the globals that they name."""

from __future__ import annotations

import re
import types
from typing import Any

from fly_common.code_tables import code_of
from fly_host import library

from fly.dependencies import stable_names
from fly.dependencies.bytecode import check_source, names_of, source_of
from fly.dependencies.function_parts import MISSING, builtins_of, contents_of, flat, parts_of
from fly.dependencies.imports import follow_imports
from fly.dependencies.traversal import Traversal, Unfollowed

# The annotation of a local variable: from its colon to the end of the line.
_ANNOTATED = re.compile(r"^\s*[A-Za-z_]\w*\s*:(.+)$", re.MULTILINE)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def follow_function(walk: Traversal, value: types.FunctionType) -> None:
    module = str(value.__globals__.get("__name__"))
    if walk.leaf(module, value.__qualname__):
        # Several functions may be created in one place: apart from the closure, the name
        # identifies them.
        _follow_closure(walk, value)
        return
    walk.functions.append((value, parts_of(value)))
    walk.emit("function", value.__name__, value.__qualname__, str(value.__doc__))
    code = code_of(value)
    check_source(code)
    source = follow_code(walk, code)
    walk.value(value.__defaults__)
    walk.values("kwdefaults", flat(value.__kwdefaults__ or {}))
    walk.values("attributes", flat(value.__dict__))
    _follow_closure(walk, value)
    _follow_annotations(walk, value)
    names = names_of(code)
    for name in sorted(names.all & stable_names.INTROSPECTION):
        raise Unfollowed(f"it looks at {name}")
    if names.writes:
        raise Unfollowed(f"it assigns the global {names.writes[0]}")
    follow_imports(walk, value.__globals__, names.imports, source, _follow_path)
    for path in names.paths:
        _follow_path(walk, value.__globals__, path)
    # Annotations of local variables are only in the source.
    annotations = " ".join(_ANNOTATED.findall(source))
    for dotted in sorted(set(_DOTTED.findall(annotations))):
        path = tuple(dotted.split("."))
        first = value.__globals__.get(path[0], MISSING)
        prose = first is MISSING or (isinstance(first, types.ModuleType) and len(path) == 1)
        if path not in names.paths and not prose:
            _follow_path(walk, value.__globals__, path)


def _follow_closure(walk: Traversal, value: types.FunctionType) -> None:
    for cell in value.__closure__ or ():
        contents = contents_of(cell)
        walk.cells.append((cell, contents))
        if contents is MISSING:
            raise Unfollowed("a variable of a closure is not set yet")
        walk.value(contents)


def _follow_annotations(walk: Traversal, value: types.FunctionType) -> None:
    for name, annotation in value.__annotations__.items():
        walk.emit("annotation", name)
        walk.value(annotation)
        if isinstance(annotation, str):
            for dotted in _DOTTED.findall(annotation):
                _follow_path(walk, value.__globals__, tuple(dotted.split(".")))


def _follow_path(walk: Traversal, space: dict[str, Any], path: tuple[str, ...]) -> None:
    """A global and, as long as it is a module, the attributes looked up in it. What they are called
    is in the code, or in the source."""
    name, *attributes = path
    value = walk.name(space, name)
    if value is MISSING:
        walk.name(space, "__builtins__")
        value = walk.name(builtins_of(space), name)
        if name in stable_names.IMPURE and value is not MISSING:
            raise Unfollowed(f"it calls {name}()")
    while isinstance(value, types.ModuleType) and attributes:
        module, attribute = value, attributes.pop(0)
        value = walk.name(vars(module), attribute)
        if value is MISSING:  # a module with its own __getattr__
            value = getattr(module, attribute, MISSING)
            walk.name(vars(module), attribute)  # __getattr__ may have stored it
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
            walk.emit("own", module.__name__, attribute)
            return
    if value is MISSING:
        walk.emit("missing")
    elif callable(value) and (called := library.name_of(value)) is not None:
        walk.library_function(called)
    else:
        walk.value(value)


def follow_code(walk: Traversal, code: types.CodeType) -> str:
    """Follows bytecode, constants and positions, and also the source, because bytecode does not
    contain the annotations of local variables. Returns the source."""
    walk.emit("code", code.co_filename, code.co_qualname, code.co_code, code.co_linetable)
    walk.emit(code.co_exceptiontable, str(code.co_firstlineno), str(code.co_flags))
    walk.emit(f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}")
    walk.emit(*code.co_names, "", *code.co_varnames, "", *code.co_freevars, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            follow_code(walk, constant)
        else:
            _follow_constant(walk, constant)
    walk.sources.append((code, source := source_of(code)))
    walk.emit(source)
    return source


def _follow_constant(walk: Traversal, value: Any) -> None:
    """Follows a constant of bytecode. Sharing is ignored, because whether constants are shared
    is arbitrary."""
    if isinstance(value, tuple | frozenset):
        items = sorted(value, key=repr) if isinstance(value, frozenset) else value
        walk.emit(type(value).__name__, str(len(items)))
        for item in items:
            _follow_constant(walk, item)
    else:
        walk.value(value)
