"""A program that defines kernels again and again keeps nothing of the old ones."""

from __future__ import annotations

import gc
import linecache
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fly_trace.core import locations
from fly_trace.session.load import load_file
from fly_trace.session.trace import trace_function
from trace_helpers import kernel_source

TOP = """
def twice(a):
    if a > 3:
        return a
    return a + a

class Pair:
    __slots__ = ("first",)

    def __init__(self, first):
        self.first = first
"""
BODY = """
I[0, 0] = twice(Pair(I[0, 1]).first)
"""


def test_nothing_is_kept_of_functions_that_are_gone(tmp_path: Path):
    kept = []
    path = tmp_path / "k.py"
    path.write_text(kernel_source(BODY, TOP))
    for _ in range(4):
        linecache.checkcache(str(path))
        module = load_file(str(path))
        assert "scf.if" in trace_function(module.entry, {})
        del module
        gc.collect()
        kept.append(len(locations.TABLES))
    assert len(set(kept[1:])) == 1
