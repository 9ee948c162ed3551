"""What docs/language.md shows in Python says what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np
from fly_trace.session.load import find_entry, load_file

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_layouts_in_python():
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 8
    assert outcome.failed == 0


def test_programs_run(tmp_path: Path):
    """Every program of the page that has a host function, on its own."""
    programs = [block for block in BLOCK.findall(PAGE.read_text()) if "@fly.jit" in block]
    assert len(programs) == 3
    for index, program in enumerate(programs):
        file = tmp_path / f"program_{index}.py"
        file.write_text(f"import fly\nimport fly.expr as fx\n\n{program}")
        function = find_entry(load_file(str(file)), str(file), None)
        if function.name == "double":
            a = np.random.default_rng(0).standard_normal((16, 64), dtype=np.float32)
            b = np.zeros_like(a)
            function(a, b)
            np.testing.assert_array_equal(b, 2 * a)
        elif function.name == "row_sums":
            a = np.random.default_rng(0).integers(-9, 9, (5, 100)).astype(np.float32)
            found = function(a)
            assert found.shape == (5, 1)
            np.testing.assert_array_equal(found[:, 0], a.sum(axis=1))
        else:
            a = np.arange(1000, dtype=np.float32)
            function(a, 3.0)
            np.testing.assert_array_equal(a, 3 * np.arange(1000, dtype=np.float32))
