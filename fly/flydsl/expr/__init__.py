"""`flydsl.expr`, usually imported as `fx`: the language's names, and FlyDSL's own ones."""

from __future__ import annotations

import importlib
from typing import Any

import fly_trace.expr as _language

import fly.flydsl.numbers.classes
import fly.flydsl.numbers.methods  # noqa: F401  FlyDSL's methods of numbers

# Modules with names that FlyDSL has in another form than the language, or alone. The first one that
# has a name gives it.
_HOMES = ("struct", "typing", "arith", "gpu", "primitive", "llvm")
_MODULES = {
    **{name: name for name in ("arith", "gpu", "math", "meta", "rocdl")},
    **{name: name for name in ("typing", "utils", "vector", "numeric", "primitive")},
    **{name: name for name in ("derived", "enum", "extern", "llvm")},
    "ffi": "extern",
    "tdm_ops": "rocdl.tdm_ops",
}
_EXTENSIONS = ("coop", "random")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _EXTENSIONS:
        return importlib.import_module(f"fly.flydsl.extension.{name}")
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    for home in _HOMES:
        module = importlib.import_module(f"{__name__}.{home}")
        if name in module.__all__:
            value = getattr(module, name)
            break
    else:
        value = getattr(_language, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = [one for home in _HOMES for one in importlib.import_module(f"{__name__}.{home}").__all__]
    return sorted({*own, *_MODULES, *_EXTENSIONS, *dir(_language)})
