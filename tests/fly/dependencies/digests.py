"""Programs in files, and the digests of their functions."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType

from fly.dependencies.hashing import dependency_hash


def load(path: Path, text: str, name: str = "subject") -> ModuleType:
    """The module of `text`, imported from `path` afresh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Not through .pyc files: two edits within one second would be taken for the same.
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


def digest(path: Path, text: str) -> str:
    found = dependency_hash(load(path, text).f)
    assert found.digest, found.reason
    assert found.holds()
    return found.digest
