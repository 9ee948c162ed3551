"""What bytecode looks up outside itself, and the source that it came from."""

from __future__ import annotations

import linecache
import os
import textwrap
import time
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from fly_common.errors import InputError

from fly.dependencies import bytecode
from fly.dependencies.bytecode import Import, Names, check_source, names_of, source_of


def function(text: str, file: str = "<text>") -> FunctionType:
    """The function `f` of a module's text."""
    space: dict = {"__name__": "subject"}
    exec(compile(textwrap.dedent(text), file, "exec", dont_inherit=True), space)
    return space["f"]


def names(text: str) -> Names:
    return names_of(function(text).__code__)


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("return a", [("a",)]),
        ("return a.b.c", [("a", "b", "c")]),
        ("return a.b.c()", [("a", "b", "c")]),
        ("return a.b(c.d)", [("a", "b"), ("c", "d")]),
        ("return a.b + a.c", [("a", "b"), ("a", "c")]),
        ("return a[0].b", [("a",)]),  # what it indexes may be anything
        ("return a().b", [("a",)]),
        ("x = a\n    return x.b", [("a",)]),
        ("return x.b", []),
        ("return x.b().c", []),
        ("a.b = x", [("a",)]),
        ("a(b)(c)", [("a",), ("b",), ("c",)]),
        ("return lambda: a.b", [("a", "b")]),
        ("return lambda: lambda: a.b", [("a", "b")]),
        ("return [y.b for y in a.b]", [("a", "b")]),
        ("def g():\n        return a.b\n    return g", [("a", "b")]),
        ("class C:\n        d = a.b", [("__name__",), ("a", "b")]),
        ("class C:\n        d = x", [("__name__",)]),  # the function's own
    ],
)
def test_globals_with_the_attributes_that_follow(body: str, paths):
    assert names(f"def f(x=0):\n    {body}\n").paths == tuple(sorted(paths))


@pytest.mark.parametrize("count", [300, 33_000])
def test_names_beyond_a_byte(count: int):
    """An argument of more than 255 takes a prefix, one of more than 65,535 takes two."""
    text = "def f():\n    return [" + ", ".join(f"n{index}" for index in range(count)) + "]\n"
    assert set(names(text).paths) == {(f"n{index}",) for index in range(count)}


def test_attributes_beyond_a_byte():
    text = "def f():\n    return [" + ", ".join(f"n.m{index}" for index in range(300)) + "]\n"
    assert set(names(text).paths) == {("n", f"m{index}") for index in range(300)}


def test_what_is_assigned_and_what_is_imported():
    text = """
        def f():
            global a, b
            a = 1
            del b
            import os.path
            from c.d import e
            def g():
                global h
                h = 1
                import i
            return os
    """
    found = names(text)
    assert found.writes == ("a", "b", "h")
    assert found.imports == (
        Import("os.path", 0, ()),
        Import("c.d", 0, ("e",)),
        Import("i", 0, ()),
    )
    assert found.paths == ()


def test_all_names_are_those_of_attributes_as_well():
    found = names("def f(x):\n    return [x.b, lambda: x.c().d, a]\n")
    assert {"a", "b", "c", "d"} <= found.all
    assert "x" not in found.all


# -- sources

MODULE = """\
ONE = 1


def before():
    return 0


def f(x):
    y = (
        x
        + 1
    )

    def g(z: int = 0):
        return (
            2
        )

    return y, g


def after():
    return 3
"""


@pytest.fixture
def subject(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(bytecode, "_files", {})
    path = tmp_path / "subject.py"
    path.write_text(MODULE)
    return path


def code_of(path: Path) -> CodeType:
    return function(path.read_text(), str(path)).__code__


def test_the_source_of_a_function_is_its_lines(subject: Path):
    source = source_of(code_of(subject))
    assert source == MODULE[MODULE.index("def f") : MODULE.index("\n\ndef after")]


@pytest.mark.parametrize(
    "head", ["return lambda: (", "def g(): return (", "class C: x = lambda: ("]
)
def test_the_source_ends_with_that_of_inner_code(subject: Path, head: str):
    subject.write_text(f"def f():\n    {head}\n        1,\n        2,\n    )\n\nX = 1\n")
    assert source_of(code_of(subject)).endswith("        2,\n    )\n")


def test_the_source_is_read_again_once_it_changed(subject: Path):
    code = code_of(subject)
    before = source_of(code)
    subject.write_text(MODULE.replace("+ 1", "+ 7"))
    assert source_of(code) == before.replace("+ 1", "+ 7")


def test_an_unchanged_source_is_read_once(subject: Path):
    code = code_of(subject)
    before = source_of(code)
    status = os.stat(subject)
    subject.write_text(MODULE.replace("+ 1", "+ 7"))
    os.utime(subject, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert source_of(code) == before, "of the same time and size"
    os.utime(subject, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert "+ 7" in source_of(code)


def test_the_source_of_a_notebook_s_cell_is_in_linecache(monkeypatch):
    code = function("def f():\n    return 1\n", "<cell 1>").__code__
    assert source_of(code) == ""
    lines = ["def f():\n", "    return 1\n"]
    monkeypatch.setitem(linecache.cache, "<cell 1>", (20, None, lines, "<cell 1>"))
    assert source_of(code) == "".join(lines)
    monkeypatch.delitem(bytecode.sys.modules, "linecache")
    assert source_of(code) == ""


def test_bytes_that_are_no_text_are_read_all_the_same(subject: Path):
    code = code_of(subject)
    subject.write_bytes(MODULE.encode().replace(b"+ 1", b"+ 1  # \xff"))
    assert "+ 1  # \udcff" in source_of(code)


# -- a source that is not what runs


def edited(path: Path, text: str) -> None:
    path.write_text(text)
    later = time.time() + 10
    os.utime(path, (later, later))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ 1", "+ 7"),
        ("            2\n", "            4\n"),
        ("x\n        + 1", "x\n        - 1"),
        ("return y, g", "return g, y"),
        ("def f(x):\n    y = (\n        x", "def f(z):\n    y = (\n        z"),
        ("ONE = 1\n", "ONE = 1\n\n"),
        ("def f(x)", "def h(x)"),
        ("return y, g", "return y, g, 'more'"),
        ("def after", "def after ("),
    ],
    ids=["constant", "inner", "operator", "order", "names", "lines", "name", "constants", "syntax"],
)
def test_an_edited_source_is_not_what_runs(subject: Path, old: str, new: str):
    code = code_of(subject)
    check_source(code)
    assert old in MODULE
    edited(subject, MODULE.replace(old, new))
    with pytest.raises(InputError) as refused:
        check_source(code)
    assert refused.value.message == "the source of f changed since it was loaded"
    assert refused.value.place is not None
    assert (refused.value.place.file, refused.value.place.line) == (str(subject), 8)
    assert refused.value.hint == "reload the module, or restart the process"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1", "1.0"),
        ("1", "True"),
        ("0.0", "-0.0"),
        ("(1, 2)", "(1, 2.0)"),
        ("(1, (2, 3))", "(1, (2, True))"),
        ("x in {1, 2}", "x in {1, 2.0}"),
        ("lambda: 1", "lambda: 1.0"),
        ("'a'", "b'a'"),
    ],
)
def test_an_edit_to_an_equal_constant(subject: Path, old: str, new: str):
    subject.write_text(f"def f(x=0):\n    return {old}\n")
    code = code_of(subject)
    edited(subject, f"def f(x=0):\n    return {old}\n\n")
    check_source(code)
    edited(subject, f"def f(x=0):\n    return {new}\n")
    with pytest.raises(InputError, match="the source of f changed"):
        check_source(code)


@pytest.mark.parametrize(
    ("old", "new"), [("return 0", "return 9"), ("return 3", "return 9"), ("ONE = 1", "ONE = 9")]
)
def test_an_edit_elsewhere_in_the_file_is_no_edit_of_the_function(subject: Path, old, new):
    code = code_of(subject)
    edited(subject, MODULE.replace(old, new))
    check_source(code)


def test_files_that_are_older_than_the_process_are_not_looked_into(subject: Path, monkeypatch):
    """pytest and others transform what they load."""
    code = code_of(subject)
    subject.write_text(MODULE.replace("+ 1", "+ 7"))
    changed = os.stat(subject).st_mtime
    monkeypatch.setattr(bytecode, "_STARTED", changed + 0.001)
    check_source(code)
    monkeypatch.setattr(bytecode, "_STARTED", changed)
    with pytest.raises(InputError):
        check_source(code)


def test_a_file_that_is_gone_is_not_looked_into(subject: Path):
    code = code_of(subject)
    subject.unlink()
    check_source(code)
