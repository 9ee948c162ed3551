"""The HSACOs that a side's own tests link, by the test's name.

Each side runs its own tests, because they import that side's modules. A test is identified by its
function's name and parameters, not by its file, which may have been moved.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from same_bytes.sides import Side

# The files of tests that compile kernels, in any folder of tests/. Tests without kernels, tests
# that compile plugins in C++, and those that the examples' own comparison covers are excluded.
FILES = (
    *("test_ahead.py", "test_exact_cache.py", "test_extents.py", "test_jit.py", "test_marked.py"),
    *("test_pipe.py", "test_rank_zero.py", "test_tuning.py", "test_link.py", "test_insert.py"),
    *("test_algebra_in_ir.py", "test_atoms_run.py", "test_emission.py", "test_mathematics.py"),
    *("test_promote_run.py", "test_target.py", "test_jit_changes.py"),
)
# Tests whose kernels compile for the target in FLY_TARGET: run once for each.
FILES_OF_ANY_TARGET = (
    *("test_assume.py", "test_fastmath.py", "test_layout_arguments.py", "test_on_device.py"),
    *("test_narrow_matrices.py", "test_narrow_types.py", "test_tiles_on_device.py"),
)

# nodeid as pytest has it in PYTEST_CURRENT_TEST, with the phase.
_TEST = re.compile(r"(?:\S*/)?(?P<file>[^/:]+\.py)::(?P<test>.*) \(\w+\)$")


@dataclass
class Recorded:
    """`made` counts which HSACOs a test linked; `summaries` are pytest's last lines."""

    made: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    summaries: dict[str, str] = field(default_factory=dict)


def start(side: Side, llvm: Path, target: str | None, pattern: str) -> subprocess.Popen:
    """Starts the tests of one side: those of any target for `target`, or if that is None the
    others. `pattern` is pytest's -k, empty for all."""
    records = side.folder / "records"
    records.mkdir(exist_ok=True)
    names = FILES if target is None else FILES_OF_ANY_TARGET
    tests = side.checkout / "tests"
    files = [path for name in names for path in sorted(tests.rglob(name))]
    words = ["-p", "no:cacheprovider", f"--basetemp={side.folder}/tests"]
    environment = {**side.environment(llvm), "SAME_BYTES_RECORDS": str(records)}
    if target is not None:
        environment["FLY_TARGET"] = target
    with open(records / f"pytest.{target}.txt", "wb") as said:
        return subprocess.Popen(
            [side.python, "-m", "pytest", *words, *(["-k", pattern] if pattern else []), *files],
            cwd=side.checkout,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )


def missing(side: Side) -> list[str]:
    """Returns the test files that a side doesn't have."""
    tests = side.checkout / "tests"
    return [name for name in (*FILES, *FILES_OF_ANY_TARGET) if not any(tests.rglob(name))]


def linked(side: Side) -> int:
    """Returns the number linked so far."""
    try:
        return (side.folder / "records" / "log").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def read(side: Side) -> Recorded:
    found = Recorded()
    try:
        log = (side.folder / "records" / "log").read_text()
    except FileNotFoundError:
        log = ""
    for line in log.splitlines():
        digest, target, test = line.split("\t")
        match = _TEST.match(test)
        name = match["test"] if match else test or "outside a test"
        found.made[f"{name} {target}".strip()][digest] += 1
    for said in sorted((side.folder / "records").glob("pytest.*.txt")):
        lines = said.read_text(errors="replace").splitlines()
        last = next((line.strip("= ") for line in reversed(lines) if line.strip()), "")
        found.summaries[said.suffixes[0][1:].replace("None", "own targets")] = last
    return found
