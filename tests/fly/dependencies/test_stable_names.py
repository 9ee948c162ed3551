"""Which classes are followed: those whose state is all in Python."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass

import pytest

from fly.dependencies import stable_names


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that says that it is an extension in C++."""
    module = types.ModuleType("some_native_module")
    module.__file__ = "/site-packages/some_native_module.cpython-311-x86_64-linux-gnu.so"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def class_of(module: str, made: type = type) -> type:
    return made("Made", (), {"__module__": module})


def test_classes_of_extensions_are_not_written_in_python(
    native: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not stable_names.is_written_in_python(class_of(native))
    for file in ("/x/module.py", "/x/module.pyd.py", None):
        monkeypatch.setattr(sys.modules[native], "__file__", file)
        assert stable_names.is_written_in_python(class_of(native))
    monkeypatch.setattr(sys.modules[native], "__file__", "C:/x/module.pyd")
    assert not stable_names.is_written_in_python(class_of(native))
    monkeypatch.delattr(sys.modules[native], "__file__")
    assert stable_names.is_written_in_python(class_of(native))
    assert stable_names.is_written_in_python(class_of("no_such_module"))


def test_a_metaclass_of_an_extension(native: str) -> None:
    """As pybind11 and nanobind have: the class itself lies in any module."""
    meta = type("Meta", (type,), {"__module__": native})
    assert not stable_names.is_written_in_python(class_of(__name__, meta))
    own = type("Meta", (type,), {"__module__": __name__})
    assert stable_names.is_written_in_python(class_of(__name__, own))


def test_types_in_c() -> None:
    for made in (int, bool, object, type, types.FunctionType):
        assert not stable_names.is_written_in_python(made)
    assert stable_names.is_written_in_python(types.SimpleNamespace)


def test_only_frozen_classes_of_ours_are_frozen() -> None:
    @dataclass(frozen=True)
    class Frozen:
        pass

    @dataclass
    class Open:
        pass

    classes = (Frozen, Open, class_of(__name__))
    assert not any(map(stable_names.is_frozen, classes))
    for made in classes:
        made.__module__ = "fly.somewhere"
    assert [stable_names.is_frozen(made) for made in classes] == [True, False, False]
