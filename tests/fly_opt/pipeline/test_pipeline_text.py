"""The textual pipelines: what is read, what is printed, what is refused where."""

from __future__ import annotations

import contextlib

import pytest
from fly_common.errors import UsageError
from fly_opt.pipeline.text import ROOT, Nest, Step, parse
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "builtin.module()"),
        ("builtin.module()", "builtin.module()"),
        ("canonicalize", "builtin.module(canonicalize)"),
        (" builtin.module ( a , b ) ", "builtin.module(a,b)"),
        ("a{x=1  y=2}", "builtin.module(a{x=1 y=2})"),
        ("gpu.module(a,func.func(b)),c", "builtin.module(gpu.module(a,func.func(b)),c)"),
        (
            "inline{op-pipelines=func.func(a{x=1})}",
            "builtin.module(inline{op-pipelines=func.func(a{x=1})})",
        ),
        ("a{x='}'}", "builtin.module(a{x='}'})"),
        (
            "builtin.module(\n  a,\n  gpu.module(\n    b\n  )\n)\n",
            "builtin.module(a,gpu.module(b))",
        ),
        ("builtin.module(a),b", "builtin.module(builtin.module(a),b)"),
    ],
)
def test_read_and_printed(text, printed):
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a,,b", 1, 3, "expected the name"),
        ("a,", 1, 3, "expected the name"),
        (",a", 1, 1, "expected the name"),
        ("a b", 1, 3, "expected ',' or the end"),
        ("a)", 1, 2, "expected ',' or the end"),
        ("builtin.module(a", 1, 15, "'(' is never closed"),
        ("x(a,y(b)", 1, 2, "'(' is never closed"),
        ("a{x=1", 1, 2, "'{' is never closed"),
        ("a{x='}", 1, 2, "'{' is never closed"),
        ("a,\n  b{x=1}(c)", 2, 3, "takes no options"),
        ("a,\n  $", 2, 3, "expected the name"),
    ],
)
def test_refused_with_a_place(text, line, column, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (line, column)
    assert caught.value.place.text == text.splitlines()[line - 1]


names = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
steps = st.builds(Step, names, st.sampled_from(["", "a=1", "a=1 b={x=2}", "p='}{'"]))
nests = st.recursive(
    steps,
    lambda inner: st.builds(Nest, names, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=8,
)


@given(st.lists(nests, max_size=4).map(lambda elements: Nest(ROOT, tuple(elements))))
def test_printing_and_reading_is_the_identity(pipeline):
    # A single root inside the root is the root itself; everything else comes back as it was.
    if len(pipeline.elements) == 1 and getattr(pipeline.elements[0], "anchor", "") == ROOT:
        return
    assert parse(str(pipeline)) == pipeline


@given(st.text(alphabet="ab.{}(),'\" =\n$", max_size=30))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse(text).anchor == ROOT
