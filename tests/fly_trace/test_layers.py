"""The package's modules import one another in one direction, and `fx` has the names they give."""

from __future__ import annotations

import ast
import importlib
from graphlib import TopologicalSorter
from pathlib import Path

import fly_trace
from fly_trace import expr

FOLDER = Path(fly_trace.__file__).parent


def module_of(path: Path) -> str:
    parts = ("fly_trace", *path.relative_to(FOLDER).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imports_of(tree: ast.Module, modules: set[str]) -> set[str]:
    """What a module imports from its package, in functions too; not what only type checkers see."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= names or {node.module}
        waiting += ast.iter_child_nodes(node)
    return found & modules


def test_no_circles():
    files = {module_of(path): path for path in FOLDER.rglob("*.py")}
    graph = {
        name: imports_of(ast.parse(path.read_text()), set(files)) - {name}
        for name, path in files.items()
    }
    assert graph["fly_trace.session.trace"], "no import was found"
    list(TopologicalSorter(graph).static_order())  # CycleError shows the circle


def test_fx_has_what_its_modules_give():
    assert expr.NAMES
    for module, names in expr.NAMES.items():
        assert sorted(names.split()) == sorted(importlib.import_module(module).__all__), module
        for name in names.split():
            assert getattr(expr, name) is getattr(importlib.import_module(module), name)
