"""FlyDSL's Python interface on this project's language and chain.

A program that imports `flydsl` runs unmodified: `python -m fly.flydsl program.py`, or after
`import fly.flydsl.install`. Or replace `flydsl` by `fly.flydsl` in its import lines. docs/flydsl.md
lists what is there, and where it differs from FlyDSL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fly.flydsl.autotune import Config as Config
    from fly.flydsl.autotune import autotune as autotune

__version__ = "0.4.2"  # of FlyDSL, whose interface this is

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name in ("Config", "autotune"):
        import importlib

        # The module and the function have one name, and the function is what FlyDSL exports.
        module = importlib.import_module("fly.flydsl.autotune")
        globals().update(Config=module.Config, autotune=module.autotune)
        return globals()[name]
    raise AttributeError(f"module 'flydsl' has no attribute {name!r}")
