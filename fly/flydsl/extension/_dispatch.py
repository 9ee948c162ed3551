"""A library's functions, replaced by those of a target where it has its own."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from fly.flydsl.compiler.backends import compile_backend_name


class Dispatcher:
    """`targets` maps a backend to the module of a package that has its functions: in `__all__`."""

    def __init__(self, package: str, *, targets: Mapping[str, str]):
        self.package = package
        self.targets = dict(targets)

    def load_target(self, name: str) -> ModuleType:
        """The module of a target. AttributeError for a name that is none."""
        if name not in self.targets.values():
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        return importlib.import_module(f"{self.package}.{name}")

    def dispatch(self, universal: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls the target's of the same name, or `universal`."""
        name = universal.__name__

        @functools.wraps(universal)
        def chosen(*arguments: Any, **named: Any) -> Any:
            own = self.targets.get(compile_backend_name())
            if own is not None:
                module = self.load_target(own)
                if name in module.__all__:
                    return getattr(module, name)(*arguments, **named)
            return universal(*arguments, **named)

        return chosen

    def dispatch_all(self, namespace: dict[str, Any], names: Iterable[str]) -> None:
        """Replaces the functions of a module."""
        for name in names:
            namespace[name] = self.dispatch(namespace[name])
