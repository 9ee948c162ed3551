"""The dependency hash of functions that import when they run, or read the environment."""

from __future__ import annotations

import itertools
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from fly.dependencies.hashing import dependency_hash

COUNT = itertools.count()
NUMBERS = "PACKAGE.numbers_of_mine"
AS_N = f"def f():\n    import {NUMBERS} as n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch):
    """A package of the program: returns a function that imports `f` of a new module of it."""
    name = f"package_of_mine_{next(COUNT)}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "numbers_of_mine.py").write_text("ONE = 1\nTWO = 2\ndef twice(x): return TWO * x\n")
    (folder / "math.py").write_text("pi = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(body: str) -> Any:
        file = f"module_{next(COUNT)}"
        text = body.replace("PACKAGE", name)
        (folder / f"{file}.py").write_text(text)
        module = __import__(f"{name}.{file}", fromlist=["f"])
        return module.f

    made.name = name
    return made


def numbers(package) -> types.ModuleType:
    return sys.modules[f"{package.name}.numbers_of_mine"]


@pytest.mark.parametrize(
    "body",
    [
        "def f():\n    from PACKAGE.numbers_of_mine import ONE\n    return ONE",
        "def f():\n    from .numbers_of_mine import ONE\n    return ONE",
        "def f():\n    import PACKAGE.numbers_of_mine as n\n    return n.ONE",
        "def f():\n    import PACKAGE.numbers_of_mine\n    return PACKAGE.numbers_of_mine.ONE",
        "def f():\n    def g():\n        from .numbers_of_mine import ONE as n\n        return n\n"
        "    return g()",
    ],
)  # fmt: skip
def test_what_is_imported_is_followed(package, body: str):
    f = package(body)
    found = dependency_hash(f)
    assert found.digest, found.reason
    assert found.holds()
    assert dependency_hash(f).digest == found.digest
    numbers(package).ONE = 5
    assert not found.holds()
    assert dependency_hash(f).digest not in (None, found.digest)


def test_a_relative_import_of_the_package_above(package, tmp_path: Path):
    inner = tmp_path / package.name / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("")
    (inner / "kernels.py").write_text(
        "def f():\n    from ..numbers_of_mine import ONE\n    return ONE\n"
    )
    f = __import__(f"{package.name}.inner.kernels", fromlist=["f"]).f
    found = dependency_hash(f)
    assert found.digest, found.reason
    numbers(package).ONE = 5
    assert dependency_hash(f).digest not in (None, found.digest)


def test_modules_of_others_are_not_imported(package, tmp_path: Path):
    """The hash imports what is the program's own, as the function does when it runs."""
    other = f"of_others_{next(COUNT)}"
    (tmp_path / f"{other}.py").write_text("ONE = 1\n")
    found = dependency_hash(package(f"def f():\n    from {other} import ONE\n    return ONE"))
    assert found.digest is None
    assert found.reason == f"it imports {other} when it runs"
    assert other not in sys.modules


def test_a_function_that_is_imported_is_followed(package):
    f = package("def f():\n    from .numbers_of_mine import twice\n    return twice(4)")
    found = dependency_hash(f)
    assert found.digest, found.reason
    numbers(package).TWO = 5
    assert not found.holds()
    assert dependency_hash(f).digest not in (None, found.digest)


def test_a_module_of_a_known_name_in_a_package(package):
    """`from .math import pi` is not the standard library's."""
    f = package("def f():\n    from .math import pi\n    return pi")
    found = dependency_hash(f)
    assert found.digest, found.reason
    sys.modules[f"{package.name}.math"].pi = 4
    assert not found.holds()
    assert dependency_hash(f).digest not in (None, found.digest)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (f"{AS_N}\n    return n", NUMBERS),
        (f"{AS_N}\n    return vars(n)['ONE']", NUMBERS),
        (f"{AS_N}\n    n.ONE = 2", NUMBERS),
        ("def f():\n    from . import numbers_of_mine as n\n    return n.ONE", "."),
        ("def f():\n    from PACKAGE import numbers_of_mine as n\n    return n.ONE", "PACKAGE"),
        ("def f():\n    from .numbers_of_mine import THREE\n    return THREE", ".numbers_of_mine"),
        ("def f():\n    from .nothing import ONE\n    return ONE", ".nothing"),
        ("def f():\n    import not_there\n    return not_there.x", "not_there"),
        ("def f(x):\n    import PACKAGE.math as n\n    if x:\n"
         "        import PACKAGE.numbers_of_mine as n\n    return n.ONE", "PACKAGE.math"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed(package, body: str, what: str):
    found = dependency_hash(package(body))
    assert found.digest is None
    reason = f"it imports {what.replace('PACKAGE', package.name)} when it runs"
    assert found.reason in (reason, "it calls vars()")


def test_another_name_of_a_known_module(monkeypatch):
    import fly.expr

    monkeypatch.setitem(sys.modules, "other_name", sys.modules["fly"])
    monkeypatch.setitem(sys.modules, "other_name.expr", fly.expr)
    space: dict[str, Any] = {"__name__": "subject"}
    exec("def f():\n    from other_name.expr import Float32\n    return Float32", space)
    found = dependency_hash(space["f"])
    assert found.digest, found.reason


@pytest.mark.parametrize(
    "body",
    [
        "import os\ndef f(): return os.environ.get('FLY_TEST_OF_MINE')",
        "import os\ndef f(): return os.getenv('FLY_TEST_OF_MINE')",
        "def f():\n    import os\n    return os.environ.get('FLY_TEST_OF_MINE')",
        "def f():\n    from os import environ\n    return 'FLY_TEST_OF_MINE' in environ",
    ],
)
def test_variables_of_the_process(package, body: str, monkeypatch):
    f = package(body)
    found = dependency_hash(f)
    assert found.digest, found.reason
    assert found.holds()
    monkeypatch.setitem(os.environ, "FLY_TEST_OF_MINE", "1")
    assert not found.holds()
    other = dependency_hash(f).digest
    assert other not in (None, found.digest)
    monkeypatch.delitem(os.environ, "FLY_TEST_OF_MINE")
    assert found.holds()
    assert dependency_hash(f).digest == found.digest


def test_classes_of_the_bindings():
    from fly_dialect.bindings import ir

    space: dict[str, Any] = {"__name__": "subject", "ir": ir}
    exec("def f(): return ir.IntegerType", space)
    found = dependency_hash(space["f"])
    assert found.digest, found.reason
