"""MLIR's Python bindings, whichever package carries them. Nothing else imports either name.

`mlir` (the bindings' own package) is preferred; `torch_mlir` (on PyPI) is the whole of upstream
MLIR under another name. PyPI's `mlir-python-bindings` 0.0.1 is an empty placeholder.

Importing this costs 0.1 to 0.25 s: import it inside the function that needs it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from fly_common.errors import MissingError


def _package() -> str:
    for name in ("mlir", "torch_mlir"):
        try:
            importlib.import_module(f"{name}.ir")
        except ImportError:
            continue
        return name
    raise MissingError(
        "MLIR's Python bindings were not found", hint="pip install torch-mlir==20261001"
    )


PACKAGE = _package()

ir: ModuleType = importlib.import_module(f"{PACKAGE}.ir")
passmanager: ModuleType = importlib.import_module(f"{PACKAGE}.passmanager")


def dialect(name: str) -> ModuleType:
    """The module of an upstream dialect (`arith`, `gpu`, `llvm`, …), or `ext`, `rewrite`."""
    return importlib.import_module(f"{PACKAGE}.dialects.{name}")


def module(name: str) -> ModuleType:
    """Any other module of the bindings, such as `rewrite`."""
    return importlib.import_module(f"{PACKAGE}.{name}")
