"""What a dependency hash says of modules: their attributes, and those of this project."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fly.dependencies.hashing import dependency_hash

from .hashed import module, reached


def test_attributes_of_modules_are_followed():
    outer = module("outer", inner=module("inner", value=1))
    found = reached("outer.inner.value", outer=outer)
    assert found.digest, found.reason
    assert found.holds()
    assert found.digest == reached("outer.inner.value", outer=outer).digest
    outer.inner.value = 2
    assert not found.holds()
    other = reached("outer.inner.value", outer=outer)
    assert other.digest not in (None, found.digest)
    outer.inner = module("inner", value=2)
    assert not other.holds()
    assert reached("outer.inner.value", outer=outer).digest == other.digest


def test_an_attribute_of_a_value_is_not_a_module_s():
    found = reached("outer.value.real", outer=module("outer", value=1))
    assert found.digest, found.reason
    assert found.digest != reached("outer.value.real", outer=module("outer", value=2)).digest


def test_a_module_alone_can_not_be_followed():
    assert reached("outer", outer=module("outer")).reason == (
        "the module outer is used other than by module.name"
    )
    assert reached("outer.inner", outer=module("outer", inner=module("inner"))).digest is None


def test_a_name_that_is_missing_may_come():
    found = reached("missing")
    assert found.digest, found.reason
    assert found.digest != reached("missing", missing=1).digest
    outer = module("outer")
    found = reached("outer.missing", outer=outer)
    assert found.digest, found.reason
    assert found.holds()
    outer.missing = 1
    assert not found.holds()


def test_a_builtin_may_be_hidden():
    space: dict[str, Any] = {"__name__": "subject"}
    exec(compile("def f():\n    return len\n", "<text>", "exec"), space)
    found = dependency_hash(space["f"])
    assert found.holds()
    space["len"] = 1
    assert not found.holds()
    del space["len"]
    assert found.holds()
    space["__builtins__"] = {"len": len}
    assert not found.holds()


@pytest.mark.parametrize("name", ["open", "eval", "globals", "vars", "input"])
def test_builtins_that_look_around_are_refused(name: str):
    assert reached(f"{name}('x')").reason == f"it calls {name}()"
    assert reached(f"{name}('x')", **{name: 1}).digest, "a global of that name is another thing"
    assert reached(f"{name}('x')", __builtins__={}).digest, "where there is none"


def test_a_module_that_computes_its_attributes():
    computing = module("computing", __getattr__=lambda name: 3)
    found = reached("computing.value", computing=computing)
    assert found.reason == "the module computing computes value"
    of_modules = module("computing", __getattr__=lambda name: module("made", value=1))
    found = reached("computing.made.value", computing=of_modules)
    assert found.reason == "", found.reason
    assert found.digest
    ours = module("fly_trace.made_up", __getattr__=lambda name: 3)
    found = reached("ours.value", ours=ours)
    assert found.digest, found.reason


def test_what_is_this_project_s_is_said_by_its_name():
    from fly_trace.values import dtypes

    ours = module("fly_trace.made_up", one=dtypes.named, other=dtypes.rounded, number=1)
    first, again = (reached("ours.one", ours=ours) for _ in range(2))
    assert first.digest == again.digest
    assert first.digest != reached("ours.other", ours=ours).digest
    same = module("fly_trace.another", one=dtypes.named)
    assert first.digest != reached("ours.one", ours=same).digest
    assert reached("ours.number", ours=ours).digest, "a number of ours is followed"
    before = reached("ours.number", ours=ours)
    ours.number = 2
    assert not before.holds()
    assert reached("ours.number", ours=ours).digest != before.digest


def test_what_is_this_project_s_and_in_another_module_is_said_by_its_own_name():
    from fly_trace.values import dtypes

    first = reached("outer.size", outer=module("outer", size=dtypes.named))
    other = reached("outer.size", outer=module("outer", size=dtypes.rounded))
    assert first.digest, first.reason
    assert first.digest != other.digest


def test_an_object_of_this_project_s_is_not_looked_into():
    own = type("Own", (), {"__module__": "fly_trace.made_up"})()
    own.lock = threading.Lock()
    ours = module("fly_trace.made_up", thing=own, inner=module("fly_trace.inner", thing=own))
    assert reached("ours.thing", ours=ours).digest
    assert reached("ours.inner.thing", ours=ours).digest
    assert reached("thing", thing=own).digest is None


def test_a_value_in_a_module_of_this_project_s_is_followed():
    ours = module("fly_trace.made_up", inner=module("fly_trace.inner", number=1))
    found = reached("ours.inner.number", ours=ours)
    assert found.digest, found.reason
    ours.inner.number = 2
    assert not found.holds()
    assert reached("ours.inner.number", ours=ours).digest != found.digest


def test_what_a_path_of_names_is_made_of():
    outer = module("outer", a=1, b=1)
    assert reached("outer.a", outer=outer).digest != reached("outer.b", outer=outer).digest
    one, two = module("one", a=1), module("two", a=1)
    assert reached("x.a", x=one).digest == reached("x.a", x=two).digest
