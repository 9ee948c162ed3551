"""Functions that Python calls itself have stand-ins while a trace runs, and only then."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from pathlib import Path

import pytest
from fly_common.errors import InputError
from fly_trace.rewrite import stand_ins
from fly_trace.session.load import find_entry, load_file
from fly_trace.session.trace import trace_function

from fly.dependencies.function_parts import parts_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from trace_helpers import kernel_source

TOP = """
class Base:
    def __neg__(self):
        return self.v if self.v > 0 else -self.v

class Box(Base):
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        if other > 3:
            return Box(self.v + other)
        return self

    @property
    def size(self):
        return self.v * 2

    @classmethod
    def of(cls, v):
        return cls(v)

    def __del__(self):
        pass

def callback(v):
    return v + 1
"""
BODY = """
before = Box, Box.__add__, Box.__dict__["__add__"], Box.size, type(Box(1))
box = Box(n) + n
A[0] = box.size + -box + sum(map(callback, (n, 2))) + Box.of(n).v
assert before == (Box, Box.__add__, Box.__dict__["__add__"], Box.size, type(box))
"""


def load(tmp_path: Path, body: str = BODY, name: str = "k"):
    path = tmp_path / f"{name}.py"
    path.write_text(kernel_source(body, TOP))
    module = load_file(str(path))
    return module, find_entry(module, str(path), None)


def functions(module) -> list:
    box = module.Box.__dict__
    found = [box["__init__"], box["__add__"], box["size"].fget, box["of"].__func__, box["__del__"]]
    return [*found, module.Base.__dict__["__neg__"], module.callback]


def test_functions_are_the_same_before_and_after(tmp_path: Path) -> None:
    module, entry = load(tmp_path, name="same")
    before = [(one, one.__code__, vars(module.Box).copy()) for one in functions(module)]
    trace_function(entry, {})
    after = [(one, one.__code__, vars(module.Box).copy()) for one in functions(module)]
    assert after == before
    assert not stand_ins._replaced
    assert not stand_ins._twins


def test_functions_are_the_same_after_an_error(tmp_path: Path) -> None:
    module, entry = load(tmp_path, "A[0] = -Box(n)\nA[0, 1] = 2", "error")
    before = [one.__code__ for one in functions(module)]
    with pytest.raises(InputError):
        trace_function(entry, {})
    assert [one.__code__ for one in functions(module)] == before
    assert not stand_ins._replaced


def test_another_thread_runs_the_function_as_it_is(tmp_path: Path) -> None:
    module, _ = load(tmp_path, name="threads")
    function = module.callback
    parts, code = parts_of(function), function.__code__
    stand_ins.replace(function)
    try:
        assert function.__code__ is not code
        assert parts_of(function) == parts, "the dependency hash is that of the function"
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(function(4)))
        thread.start()
        thread.join()
        assert found == [5]
        stand_ins.replace(function)  # for another trace
        stand_ins.restore(function)
        assert function.__code__ is not code
    finally:
        stand_ins.restore(function)
    assert function.__code__ is code


def test_defaults_keywords_closures_and_errors() -> None:
    held, arguments, named = 3, 4, 5

    def function(a, /, b=2, *rest, c, d=5, **more):
        return a, b, rest, c, d, more, held, arguments, named

    expected = function(1, 7, 8, c=4, x=9), function(1, c=2)
    stand_ins.replace(function)
    try:
        assert (function(1, 7, 8, c=4, x=9), function(1, c=2)) == expected
        with pytest.raises(TypeError, match=r"function\(\) missing 1 required keyword-only"):
            function(1)
    finally:
        stand_ins.restore(function)


def test_a_trace_without_classes_replaces_nothing(tmp_path: Path, monkeypatch) -> None:
    def refuse(_):
        raise AssertionError("a function got a stand-in")

    monkeypatch.setattr(stand_ins, "replace", refuse)
    _, entry = load(tmp_path, "A[0] = fx.Float32(sum([n, 2])) + min(x, 1.0)", "plain")
    trace_function(entry, {})
    _, entry = load(tmp_path, "A[0] = Box(n).v", "box")
    with pytest.raises(InputError, match="a function got a stand-in"):
        trace_function(entry, {})


def test_a_traced_class_is_not_kept(tmp_path: Path) -> None:
    module, entry = load(tmp_path, name="kept")
    trace_function(entry, {})
    kept = weakref.ref(module.Box)
    module, entry = load(tmp_path, name="another")  # the last file's module is kept
    gc.collect()
    assert kept() is None
