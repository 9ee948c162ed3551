"""Applies a mutant to the running process, and to the processes that it starts."""

from __future__ import annotations

import ast
import functools
import gc
import marshal
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from mutation_python.damage import Mutant

STARTUP = Path(__file__).with_name("startup")


class NoMutant(Exception):
    """The mutation does not change the code, or can't be applied while the process runs."""


class NoModule(Exception):
    """The damaged module can't be imported: whoever uses it notices."""


@dataclass
class Functions:
    """The functions of the mutated modules, wherever they are referenced, and all function
    caches."""

    by_place: dict[tuple[str, int, str], list[FunctionType]] = field(default_factory=dict)
    caches: list[functools._lru_cache_wrapper] = field(default_factory=list)

    @staticmethod
    def of(paths: set[str]) -> Functions:
        found = Functions()
        gc.unfreeze()  # what is frozen is not in the list: conftest.py has frozen all of it
        for one in gc.get_objects():
            kind = type(one)
            if kind is FunctionType and one.__code__.co_filename in paths:
                code = one.__code__
                key = (code.co_filename, code.co_firstlineno, code.co_name)
                found.by_place.setdefault(key, []).append(one)
            elif kind is functools._lru_cache_wrapper and one.__module__.startswith("fly"):
                found.caches.append(one)
        return found


def apply(mutant: Mutant, functions: Functions, folder: Path | None) -> None:
    """Applies the mutant to this process and, with a folder, through the environment to those that
    NoMutant where that changes nothing, NoModule where nothing can be imported any more."""
    tree = mutant.tree()
    if mutant.constant:
        _set_constant(mutant, tree)
    else:
        _set_code(mutant, tree, functions)
    for cache in functions.caches:
        cache.cache_clear()
    if folder is None:
        return
    damaged = folder / "mutant.py"
    damaged.write_text(ast.unparse(tree))
    os.environ["FLY_MUTANT"] = f"{mutant.module}={damaged}"
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])]
    )


def _set_code(mutant: Mutant, tree: ast.Module, functions: Functions) -> None:
    path = str(mutant.path)
    name = mutant.function.rpartition(".")[2]
    held = functions.by_place.get((path, mutant.first, name), [])
    if not held:
        raise NoMutant("nobody holds the function")
    whole = compile(tree, path, "exec", dont_inherit=True)
    for code in _codes(whole):
        if code.co_name == name and code.co_firstlineno == mutant.first:
            break
    else:
        raise NoMutant("the function is not there")
    if _content(code) == _content(held[0].__code__):
        raise NoMutant("the same code")
    for function in held:
        try:
            function.__code__ = code
        except ValueError:
            raise NoMutant("other free variables") from None


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _content(code: CodeType) -> bytes:
    """Returns the content of a code object, without line numbers."""
    consts = [_content(c) if isinstance(c, CodeType) else repr(c).encode() for c in code.co_consts]
    return marshal.dumps((code.co_code, code.co_names, code.co_varnames, consts))


def _set_constant(mutant: Mutant, tree: ast.Module) -> None:
    """Assigns the constant again, and those computed from it, in its module and in those that have
    imported them."""
    module = sys.modules[mutant.module]
    changed: set[str] = set()
    for statement in tree.body:
        name = _assigned(statement)
        if name is None or name not in module.__dict__:
            continue
        if statement.lineno == mutant.first or changed & _names(statement):
            old = module.__dict__[name]
            future = ast.parse("from __future__ import annotations").body
            alone = ast.fix_missing_locations(ast.Module([*future, statement], []))
            try:
                exec(compile(alone, str(mutant.path), "exec"), module.__dict__)
            except Exception as error:
                raise NoModule(name) from error
            new = module.__dict__[name]
            if type(new) is type(old) and repr(new) == repr(old):
                continue
            changed.add(name)
            for other in list(sys.modules.values()):
                if isinstance(other, ModuleType) and other.__dict__.get(name) is old:
                    setattr(other, name, new)
    if not changed:
        raise NoMutant("the same value")


def _assigned(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def _names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
