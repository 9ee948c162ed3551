"""Follows imports inside functions.

Of a module that is loaded, what a function takes from it is followed, as globals are. Bytecode does
not say which attributes of a local variable are used: those of `import os` come from the source.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from fly.dependencies import stable_names
from fly.dependencies.bytecode import Import
from fly.dependencies.function_parts import MISSING
from fly.dependencies.traversal import Traversal, Unfollowed

Path = tuple[str, ...]
FollowPath = Callable[[Traversal, dict[str, Any], Path], None]


def follow_imports(
    walk: Traversal,
    space: dict[str, Any],
    imports: Iterable[Import],
    source: str,
    follow_path: FollowPath,
) -> None:
    """Follows the imports of a function with these globals and this source; `follow_path` follows a
    name in a namespace, with attributes. Unfollowed if one has effects that are not known."""
    uses: dict[str, set[Path] | None] | None = None
    for imported in imports:
        name = "." * imported.level + imported.module
        refused = Unfollowed(f"it imports {name} when it runs")
        if imported.level:
            name = _absolute(space, imported)
        if name and stable_names.is_known(stable_names.module_found(name)):
            continue
        module = _loaded(walk, space, name)
        if module is None:
            raise refused
        if imported.names:
            for part in imported.names:
                if not _follow_taken(walk, module, part):
                    raise refused
            continue
        uses = _uses(source) if uses is None else uses
        paths = uses.get(name)
        if paths is None:
            raise refused
        for path in sorted(paths):
            follow_path(walk, sys.modules, path)


def _absolute(space: dict[str, Any], imported: Import) -> str:
    """The name of the module of a relative import; "" outside of packages."""
    package = space.get("__package__")
    parts = package.split(".") if isinstance(package, str) and package else []
    if len(parts) < imported.level:
        return ""
    kept = parts[: len(parts) - imported.level + 1]
    return ".".join([*kept, imported.module] if imported.module else kept)


def _loaded(walk: Traversal, space: dict[str, Any], name: str) -> types.ModuleType | None:
    """The module, if it is loaded, or of the program: importing that is what the function does."""
    own = str(space.get("__name__")).partition(".")[0]
    if name and name not in sys.modules and name.partition(".")[0] == own:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    found = walk.name(sys.modules, name)
    return found if isinstance(found, types.ModuleType) else None


def _follow_taken(walk: Traversal, module: types.ModuleType, name: str) -> bool:
    """Follows what `from module import name` takes. False for a module, whose attributes are not
    known, and for what is not there."""
    taken = walk.name(vars(module), name)
    if isinstance(taken, types.ModuleType):
        return stable_names.is_known(taken.__name__)
    if taken is not MISSING:
        walk.value(taken)
    return taken is not MISSING


def _uses(source: str) -> dict[str, set[Path] | None]:
    """By the modules that `import` statements of a function name, what is used of them: paths that
    begin with a module. None for a module that is used otherwise, as by passing it on."""
    import ast
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return {}
    bound: dict[str, str] = {}  # variable → module
    modules: dict[str, str] = {}  # module that is imported → variable
    nodes = list(ast.walk(tree))
    for node in nodes:
        for alias in node.names if isinstance(node, ast.Import) else ():
            variable = alias.asname or alias.name.partition(".")[0]
            module = alias.name if alias.asname else variable
            if bound.setdefault(variable, module) != module:
                return {}
            modules[alias.name] = variable
    found: dict[str, set[Path] | None] = {variable: set() for variable in bound}
    within: set[int] = set()  # nodes that are parts of a path
    for node in nodes:  # outer nodes come before inner ones
        if id(node) in within or not isinstance(node, ast.Attribute | ast.Name):
            continue
        path: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            path.insert(0, inner.attr)
            inner = inner.value
            within.add(id(inner))
        if isinstance(inner, ast.Name) and inner.id in bound:
            paths = found[inner.id]
            if not path or not isinstance(node.ctx, ast.Load):
                found[inner.id] = None
            elif paths is not None:
                paths.add((bound[inner.id], *path))
    return {module: found[variable] for module, variable in modules.items()}
