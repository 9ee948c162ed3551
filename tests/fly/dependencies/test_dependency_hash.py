"""When a dependency hash still holds, and what it says of what can't be followed."""

from __future__ import annotations

import abc
import functools
from pathlib import Path
from typing import Any

import pytest
from fly_host import library

from fly.dependencies import traversal
from fly.dependencies.function_parts import MISSING, contents_of, keys_and_values, parts_of
from fly.dependencies.hashing import DependencyHash, dependency_hash
from fly.dependencies.kinds import KINDS
from fly.dependencies.traversal import Traversal, Unfollowed

from .hashed import module, reached


def cell_of(value: Any) -> Any:
    def inner() -> Any:
        return value

    assert inner.__closure__
    return inner.__closure__[0]


def test_what_has_no_digest_never_holds():
    assert DependencyHash("digest").holds()
    assert not DependencyHash(None).holds()


def test_names_are_compared_by_identity():
    value = [1]
    space: dict[str, Any] = {"a": value}
    found = DependencyHash("digest", names=((space, "a", value),))
    assert found.holds()
    value.append(2)
    assert found.holds()
    space["a"] = list(value)
    assert not found.holds()
    del space["a"]
    assert not found.holds()


def test_cells_are_compared_by_identity():
    value = [1]
    cell = cell_of(value)
    found = DependencyHash("digest", cells=((cell, value),))
    assert found.holds()
    cell.cell_contents = [1]
    assert not found.holds()
    del cell.cell_contents
    assert contents_of(cell) is MISSING
    assert not found.holds()


def function(x=1, *, y=2):
    return x


@pytest.mark.parametrize(
    "change",
    [
        lambda f: setattr(f, "__code__", (lambda x=1, *, y=2: y).__code__),
        lambda f: setattr(f, "__name__", "other"),
        lambda f: setattr(f, "__qualname__", "other"),
        lambda f: setattr(f, "__defaults__", (5,)),
        lambda f: f.__kwdefaults__.update(y=5),
        lambda f: f.__kwdefaults__.update(z=2),
        lambda f: f.__annotations__.update(x=int),
        lambda f: setattr(f, "attribute", 1),
    ],
)
def test_functions_are_compared_by_their_parts(change):
    from types import FunctionType

    made = FunctionType(function.__code__, {}, "made", (1,))
    made.__kwdefaults__ = {"y": 2}
    found = DependencyHash("digest", functions=((made, parts_of(made)),))
    assert found.holds()
    change(made)
    assert not found.holds()


def test_classes_are_compared_by_their_attributes():
    made = type("Made", (), {"a": 1})
    found = DependencyHash("digest", classes=((made, keys_and_values(vars(made))),))
    assert found.holds()
    made.b = 2  # type: ignore[attr-defined]
    assert not found.holds()
    del made.b  # type: ignore[attr-defined]
    assert found.holds()
    made.a = 2  # type: ignore[attr-defined]
    assert not found.holds()


def test_mutable_values_are_compared_by_content():
    space = {"f": lambda: TABLE}
    found = dependency_hash(space["f"])
    assert found.holds()
    TABLE.append(open)
    assert not found.holds(), "what it holds now can't be followed"
    TABLE.pop()
    assert found.holds()


TABLE = [1, 2]


def test_dictionaries_are_compared_by_identity():
    first, inner = 10**9, {"a": [1]}
    table = {1: first, 2.5: inner}
    found = dependency_hash(lambda: table)
    assert found.holds()
    table[1] = int("1000000000")
    assert not found.holds(), "an equal number, but another object"
    table[1] = first
    assert found.holds()
    inner["a"].append(2)
    assert not found.holds()
    inner["a"].pop()
    inner["b"] = inner.pop("a")
    assert not found.holds()


def test_caches_are_to_be_empty():
    cache = functools.cache(lambda: 1)
    found = DependencyHash("digest", caches=(cache,))
    assert found.holds()
    cache()
    assert not found.holds()
    cache.cache_clear()
    assert found.holds()


def test_registrations_are_compared_where_they_matter():
    class Base(abc.ABC):  # noqa: B024
        pass

    without = DependencyHash("digest")
    found = DependencyHash("digest", registrations=abc.get_cache_token())
    assert found.holds()
    Base.register(int)
    assert not found.holds()
    assert without.holds()


def test_what_is_nested_too_deeply():
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    found = dependency_hash(value)
    assert found.digest is None
    assert found.reason == "what it reaches is nested too deeply"
    while value:  # freed from outside in, not by recursion
        value = value[0]


def test_what_reaches_too_much():
    assert traversal.MOST_VALUES == 20_000
    assert dependency_hash([[] for _ in range(19_999)]).digest
    found = dependency_hash([[] for _ in range(20_000)])
    assert found.digest is None
    assert found.reason == "it reaches more than 20000 values"


# -- the walk itself


def digest(*values: Any) -> str:
    walk = Traversal(KINDS)
    for value in values:
        walk.value(value)
    return walk.hash.hexdigest()


def test_texts_do_not_run_into_each_other():
    def emitted(*texts: str | bytes) -> str:
        walk = Traversal(KINDS)
        walk.emit(*texts)
        return walk.hash.hexdigest()

    several = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("1:a",), ("a",)]
    assert len({emitted(*texts) for texts in several}) == len(several)
    assert emitted("a") == emitted(b"a")
    assert emitted("\ud800") != emitted("?")


def test_what_is_shared_is_not_what_is_equal():
    one, other = [1], [1]
    assert digest([one, one]) != digest([one, other])
    assert digest([one, other, one]) != digest([one, other, other])
    assert digest([one, other]) == digest([[1], [1]])


def test_names_that_look_into_functions_are_refused_as_text():
    for text in ("__globals__", "f_locals", "__subclasses__"):
        with pytest.raises(Unfollowed, match=f"it looks at {text}"):
            digest(text)
    assert digest("globals")


def test_a_name_is_written_down_with_its_value():
    walk = Traversal(KINDS)
    space = {"a": 1}
    assert walk.name(space, "a") == 1
    missing = walk.name(space, "b")
    found = DependencyHash("digest", names=tuple(walk.names.values()))
    assert found.holds()
    space["b"] = 2
    assert not found.holds()
    assert missing is not None


def test_known_modules_say_all_by_a_name():
    walk = Traversal(KINDS)
    before = walk.hash.hexdigest()
    assert walk.leaf("os", "path") is False
    assert walk.hash.hexdigest() == before
    assert walk.leaf("math", "sin") is True
    assert walk.hash.hexdigest() != before


# -- annotations of local variables, which are in the source alone

ANNOTATED = """\
def f(x):
    '''Text.

    see: config and nothing
    '''
    y: {annotation} = x
    return y
"""


def annotated(path: Path, annotation: str, **space: Any) -> tuple[DependencyHash, dict[str, Any]]:
    path.write_text(ANNOTATED.format(annotation=annotation))
    made = {"__name__": "subject", "config": module("config"), **space}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), made)
    return dependency_hash(made["f"]), made


def test_prose_that_looks_like_an_annotation_reaches_nothing(tmp_path: Path):
    found, space = annotated(tmp_path / "a.py", "int")
    assert found.digest, found.reason
    space["nothing"] = 1
    space["config"] = module("config")
    assert found.holds()


@pytest.mark.parametrize(
    ("annotation", "change"),
    [
        ("kind", lambda space: space.update(kind=2)),
        ("list[kind]", lambda space: space.update(kind=2)),
        ("types.kind", lambda space: setattr(space["types"], "kind", 2)),
        ("list[types.kind]", lambda space: setattr(space["types"], "kind", 2)),
        ("types.inner.kind", lambda space: setattr(space["types"].inner, "kind", 2)),
    ],
)
def test_a_local_annotation_reaches_what_it_names(tmp_path: Path, annotation: str, change):
    types = module("types_of_mine", kind=1, inner=module("inner", kind=1))
    found, space = annotated(tmp_path / "a.py", annotation, kind=1, types=types)
    assert found.digest, found.reason
    assert found.holds()
    change(space)
    assert not found.holds()
    assert dependency_hash(space["f"]).digest not in (None, found.digest)


@pytest.mark.parametrize("annotation", ["kind", "list[kind]", "types.kind", "list[types.kind]"])
def test_a_text_that_is_an_annotation_reaches_what_it_names(annotation: str):
    types = module("types_of_mine", kind=1)
    space: dict[str, Any] = {"__name__": "subject", "kind": 1, "types": types}
    exec(f"def f(x: {annotation!r}): return x", space)
    found = dependency_hash(space["f"])
    assert found.digest, found.reason
    types.kind = 2
    space["kind"] = 2
    assert not found.holds()
    assert dependency_hash(space["f"]).digest not in (None, found.digest)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(): return g.__globals__\ndef g(): pass", "it looks at __globals__"),
        ("def f():\n    global N\n    N = 1", "it assigns the global N"),
        ("def f():\n    import random", "it imports random when it runs"),
        ("def f():\n    import math\n    return math.pi", ""),
        ("def make():\n    def f(): return later\n    return f\n    later = 1\nf = make()",
         "a variable of a closure is not set yet"),
    ],
)  # fmt: skip
def test_what_a_function_may_not_do(text: str, why: str):
    space: dict[str, Any] = {"__name__": "subject"}
    exec(text, space)
    found = dependency_hash(space["f"])
    assert found.reason == why
    assert (found.digest is None) is bool(why)


def function_of(text: str, name: str = "f", file: str = "<text>") -> Any:
    space: dict[str, Any] = {"__name__": "subject"}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    return space[name]


def test_what_a_function_is_made_of():
    """Each of these differs from the first in one thing alone."""
    base = "def f(a, b=1, *, c=2): return a"
    made = [
        function_of(base),
        function_of(base, file="<other>"),
        function_of("\n" + base),
        function_of("def f(a, b=2, *, c=2): return a"),
        function_of("def f(a, b=1, *, c=3): return a"),
        function_of("def f(a, b=1, *, d=2): return a"),
        function_of("def f(a, b=1, /, *, c=2): return a"),
        function_of("def f(a, b=1, c=2): return a"),
        function_of("def f(a, b=1, *c): return a"),
        function_of("def f(a, b=1, *, c=2): return b"),
        function_of("def f(a, b=1, *, c=2): return 1"),
        function_of("def f(a, b=1, *, c=2): return (1, (2, 3))"),
        function_of("def f(a, b=1, *, c=2): return (1, (2, 4))"),
        function_of("def f(a, b=1, *, c=2): return ((1, 2), 3)"),
        function_of("def f(a, b=1, *, c=2): return a in {1, 2}"),
        function_of("def f(a, b=1, *, c=2): return a in {1, 3}"),
        function_of("def f(a, b=1, *, c=2): return lambda: 1"),
        function_of("def f(a, b=1, *, c=2): return lambda: 2"),
        function_of("def f(a: 1, b=1, *, c=2): return a"),
        function_of("def f(a: 2, b=1, *, c=2): return a"),
        function_of("def f(a, b: 1=1, *, c=2): return a"),
        function_of("def f(a, b=1, *, c=2): 'text'; return a"),
        function_of("async def f(a, b=1, *, c=2): return a"),
        function_of("def f(a, b=1, *, c=2): return a.b"),
        function_of("def f(a, b=1, *, c=2): return a.c"),
    ]
    for name, value in (("__name__", "g"), ("__qualname__", "g"), ("__doc__", "g"), ("x", 1)):
        made.append(function_of(base))
        setattr(made[-1], name, value)
    for named in ({"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}):
        made.append(function_of(base))
        made[-1].__annotations__ = named
    digests = [dependency_hash(one).digest for one in made]
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert dependency_hash(function_of(base)).digest == digests[0]


def test_what_is_nested_too_deeply_has_no_digest():
    nested: Any = ()
    for _ in range(100_000):
        nested = (nested,)

    def reaches() -> Any:
        return nested

    found = dependency_hash(reaches)
    assert (found.digest, found.reason) == (None, "what it reaches is nested too deeply")
    while nested:  # without a recursion of destructors
        (nested,) = nested


def test_a_source_that_changes_on_disk(tmp_path: Path):
    """A process that traces again reads the file: what is stored for later ones must be of what
    the file says."""
    path = tmp_path / "source.py"
    path.write_text("def f(x):\n    return x\n")
    space: dict[str, Any] = {"__name__": "user"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    found = dependency_hash(space["f"])
    assert found.sources
    assert found.holds()
    assert found.holds_on_disk()
    path.write_text("def f(x):\n    return x + 1\n")
    assert found.holds()
    assert not found.holds_on_disk()
    path.write_text("def f(x):\n    return x\n")
    assert found.holds_on_disk()
    space["f"].__defaults__ = (1,)
    assert not found.holds_on_disk()


def helper(value):
    return value


def test_a_library_function_is_its_shape_rule(monkeypatch: pytest.MonkeyPatch):
    """It is called by its name, or is a global of the function."""
    monkeypatch.setattr(library, "registered", {})
    unknown = dependency_hash("tests.helper")
    library.register("tests.helper", shape=lambda value: value, function=helper)
    found = [dependency_hash("tests.helper"), reached("called(1)", called=helper)]
    assert all(one.digest and one.holds() for one in found)
    assert found[0].digest != unknown.digest
    library.register("tests.helper", shape=lambda value: (value, value), function=helper)
    assert not any(one.holds() for one in found)
    again = [dependency_hash("tests.helper"), reached("called(1)", called=helper)]
    assert all(one.digest != two.digest for one, two in zip(found, again, strict=True))
