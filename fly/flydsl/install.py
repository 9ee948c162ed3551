"""Makes `import flydsl` import this package: `import fly.flydsl.install`, before the program."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

NAME, OURS = "flydsl", "fly.flydsl"


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `flydsl.a.b` as the module `fly.flydsl.a.b`: one object with two names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != NAME:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        ours = OURS + spec.name.removeprefix(NAME)
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not ours.startswith(error.name):
                raise
            raise ModuleNotFoundError(
                f"fly.flydsl has no module {spec.name} (docs/flydsl.md)", name=spec.name
            ) from None
        self._kept = vars(module).get("__spec__"), vars(module).get("__loader__")
        return module

    def exec_module(self, module: ModuleType) -> None:
        # What importing under the second name has replaced.
        module.__spec__, module.__loader__ = self._kept


def install() -> None:
    """Installs the alias. FlyDSL itself, if it is installed too, is no longer found."""
    if any(isinstance(finder, Alias) for finder in sys.meta_path):
        return
    loaded = sys.modules.get(NAME)
    if loaded is not None and loaded.__name__ != OURS:
        raise ImportError(
            "flydsl is already imported: import fly.flydsl.install before it, or run"
            " `python -m fly.flydsl program.py`"
        )
    sys.meta_path.insert(0, Alias())


install()
