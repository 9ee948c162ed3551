"""The stubs of MLIR's bindings (typings/) say what the bindings have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from fly_dialect.bindings import ir

STUBS = Path(__file__).parents[2] / "typings/torch_mlir/ir.pyi"
CLASSES = {
    node.name: node
    for node in ast.parse(STUBS.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef)
}
# What only the subclasses have in the bindings, both of them.
COMMON = {"_OperationBase": ("Operation", "OpView")}


def members(node: ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            yield item.name, item
        elif isinstance(item, ast.AnnAssign):
            assert isinstance(item.target, ast.Name)
            yield item.target.id, item
        elif isinstance(item, ast.Assign):
            assert isinstance(item.targets[0], ast.Name)
            yield item.targets[0].id, item


def is_property(item: ast.AST) -> bool:
    """Whether a method is a property's getter or setter."""
    return isinstance(item, ast.FunctionDef) and any(
        ast.unparse(one) in ("property", f"{item.name}.setter") for one in item.decorator_list
    )


def wrong(node: ast.ClassDef) -> Iterator[str]:
    """What the bindings' class of this name lacks, or has as something else."""
    real = getattr(ir, node.name, None)
    if real is None:
        yield f"{node.name} is not there"
        return
    for base in node.bases:
        own = isinstance(base, ast.Name) and base.id in CLASSES
        if own and not issubclass(real, getattr(ir, base.id)):
            yield f"{node.name} is no {base.id}"
    for name, item in members(node):
        for owner in COMMON.get(node.name, (node.name,)):
            found = getattr(getattr(ir, owner), name, None)
            if found is None:
                yield f"{owner} has no {name}"
            elif isinstance(item, ast.FunctionDef) and is_property(item) == callable(found):
                yield f"{owner}.{name} is {found!r}"


@pytest.mark.parametrize("name", CLASSES)
def test_the_bindings_have_it(name):
    assert not list(wrong(CLASSES[name]))


def test_functions_are_there():
    for node in ast.parse(STUBS.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(ir, node.name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Missing: ...", "Missing is not there"),
        ("class Value:\n    def missing(self): ...", "Value has no missing"),
        ("class Value:\n    def type(self): ...", "Value.type is"),
        ("class Value(Type): ...", "Value is no Type"),
    ],
)
def test_what_is_wrong_is_seen(text, said):
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.ClassDef)
    (found,) = wrong(node)
    assert found.startswith(said)
