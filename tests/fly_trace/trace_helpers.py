"""Traces source snippets for the tests of fly-trace."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from pathlib import Path

from fly_common.errors import FlyError
from fly_trace.session.load import find_entry, load_file
from fly_trace.session.trace import trace_function

HEAD = """\
import fly
import fly.expr as fx

{top}
@fly.kernel
def kernel(A: fx.Tensor, I: fx.Tensor, x: fx.Float32, n: fx.Int32):
{body}

@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"], I: fx.Tensor[fx.Int32, 8, 4], x: fx.Float32, n: fx.Int32):
    kernel(A, I, x, n).launch(grid=1, block=64)
"""

_numbers = itertools.count()


def kernel_source(body: str, top: str = "") -> str:
    """Returns a file whose kernel has this body: A is f32[n], I is i32[8,4], x an f32, n an i32."""
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return HEAD.format(body=body, top=textwrap.dedent(top))


def trace_source(
    source: str, folder: Path, entry: str | None = None, on: str | None = None, **signature
) -> str:
    """Returns the module traced from a file with this source for the target `on`, or for all,
    without locations."""
    path = folder / f"kernel_{next(_numbers)}.py"
    path.write_text(source)
    linecache.checkcache(str(path))
    function = find_entry(load_file(str(path)), str(path), entry)
    return trace_function(function, signature, locations=False, target=on)


def trace_body(body: str, folder: Path, top: str = "") -> str:
    return trace_source(kernel_source(body, top), folder)


def refusal(
    source: str, folder: Path, entry: str | None = None, on: str | None = None, **signature
) -> str:
    """Returns fly-trace's error for a source, with the file's name as `k.py`."""
    try:
        text = trace_source(source, folder, entry, on, **signature)
    except FlyError as error:
        import re

        return re.sub(r"\S*kernel_\d+\.py", "k.py", error.render("fly-trace"))
    raise AssertionError(f"nothing was refused; the module is\n{text}")
