"""The table of a dispatcher: what native code looks at, in words of 64 bits.

A head, then the parts, each as long as it can be.
"""

from __future__ import annotations

MOST_LAUNCHERS = 32
MOST_ARGUMENTS = 64  # of a call: a word has a bit for each
MOST_RULES = 1024
MOST_NAMES, MOST_CELLS, MOST_FUNCTIONS, MOST_DICTS = 1024, 64, 64, 256

HEAD = ("busy", "deadline", "dicts", "names", "cells", "functions", "launchers", "missing", "sizes")
AT = {name: place for place, name in enumerate(HEAD)}
PARTS = (
    ("dicts", MOST_DICTS, 2),  # dictionary, its tag
    ("sizes", MOST_DICTS, 2),  # dictionary, the number of its keys
    ("names", MOST_NAMES, 3),  # dictionary, key, value or null
    ("cells", MOST_CELLS, 2),  # cell, contents or null
    ("functions", MOST_FUNCTIONS, 5),  # function, code, defaults, keyword defaults, annotations
    # native function, its self, number of arguments, which of them it gets, its rules: first, end
    ("launchers", MOST_LAUNCHERS, 6),
    ("rules", MOST_RULES, 3),  # position of an argument, its type, its value or null for any
)
PLACES: dict[str, int] = {}
WIDTHS = {name: width for name, _, width in PARTS}
_size = len(HEAD)
for _name, _count, _width in PARTS:
    PLACES[_name] = _size
    _size += _count * _width
WORDS = _size
