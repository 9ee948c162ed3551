"""What tests of dependency hashes share."""

from __future__ import annotations

from typing import Any

from fly.dependencies.hashing import DependencyHash, dependency_hash

# -- paths of names


def reached(text: str, **space: Any) -> DependencyHash:
    """The hash of a function of this text, with these globals."""
    made: dict[str, Any] = {"__name__": "subject", **space}
    exec(compile(f"def f():\n    return {text}\n", "<text>", "exec", dont_inherit=True), made)
    return dependency_hash(made["f"])


def module(name: str, **attributes: Any) -> Any:
    import types

    made = types.ModuleType(name)
    vars(made).update(attributes)
    return made
