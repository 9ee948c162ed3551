"""Expected diagnostics in comments."""

from __future__ import annotations

import pytest
from fly_opt.pipeline.split_input import Expected, expectations


@pytest.mark.parametrize(
    ("where", "line"),
    [("", 2), ("@+1", 3), ("@-1", 1), ("@above", 1), ("@below", 3)],
)
def test_the_line_of_an_expectation(where: str, line: int) -> None:
    text = f"module {{\n// expected-error{where} {{{{no}}}}\n}}\n"
    assert expectations(text, 1) == [Expected("error", line, "no")]


def test_an_offset_of_thousands_of_digits() -> None:
    """Python's `int` refuses to read it. No line has it, so the diagnostic is missing."""
    (found,) = expectations(f"// expected-note@+{'9' * 5000} {{{{no}}}}\n", 1)
    assert found.line > 10**9
