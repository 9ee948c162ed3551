"""What FlyDSL 0.4.2 accepts with another meaning than Python's, refuses without a reason, or aborts
on: see `flydsl_defects.txt`. Here it runs as in Python, or is refused with line and reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import FlyError

sys.path.insert(0, str(Path(__file__).parents[1]))
from both_ways import arguments, on_emulator, run_python, scalars, source_of
from trace_helpers import trace_source

from . import verdicts
from .test_verdicts import FIRST_LINE, SCALARS, TOP, in_program, located
from .verdicts import Row

ROWS = verdicts.rows(Path(__file__).with_name("flydsl_defects.txt"))


def named(row: Row) -> str:
    return " ".join([*row.nodes, row.form])


@pytest.mark.parametrize("row", [row for row in ROWS if not row.said], ids=named)
def test_runs_as_in_python(row: Row, tmp_path: Path) -> None:
    results = on_emulator(source_of(row.body, TOP), [*map(list, SCALARS)], tmp_path / "k.py")
    for given, found in zip(SCALARS, results, strict=True):
        expected = arguments()
        run_python(row.python, [*expected, *scalars(*given)], TOP)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(b, a, err_msg=f"{given}\n{row.body}")


@pytest.mark.parametrize("row", [row for row in ROWS if row.said], ids=named)
def test_refused(row: Row, tmp_path: Path) -> None:
    with pytest.raises(FlyError) as caught:
        trace_source(source_of(row.body, TOP), tmp_path)
    error = caught.value
    place = error.place
    assert place is not None
    assert place.line
    assert place.excerpt(), "no caret"
    where = f"{place.line - FIRST_LINE + 1}:{(place.column or 0) - 4}"
    said = f"{where}: {error.message}" + (f"\n{error.hint}" if error.hint else "")
    assert located(in_program(said)) == located(row.said)


@pytest.mark.parametrize("count", [2, 8, 16])
def test_each_operand_is_traced_once(count: int, tmp_path: Path) -> None:
    """FlyDSL traces 2^n comparisons for n operands."""
    test = " and ".join(f"a > {number}" for number in range(count))
    module = trace_source(source_of(f"if {test}:\n    I[0] = 1"), tmp_path)
    assert module.count("arith.cmpi") == count


@pytest.mark.parametrize("text", ["()", "99999999999", "(1,(2,?{div=0}))"])
def test_texts_of_types_do_not_crash(text: str) -> None:
    """FlyDSL ends by a signal on the first two of them."""
    source = f"func.func private @f(!fly.int_tuple<{text}>)"
    tool = Path(sys.executable).with_name("fly-opt-py")
    done = subprocess.run([tool], input=source, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)
    assert done.returncode == 0 or "fly-opt-py: error: " in done.stderr
