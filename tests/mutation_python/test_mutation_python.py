"""The mutants of a small module, and what a process does with one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation_python import applying, damage

SOURCE = '''"""Text."""

from functools import cache
from typing import TypeAlias

LIMIT = 10
Number: TypeAlias = "int | float"
TWICE = LIMIT * 2


@cache
def inside(a: int, b: int = 0) -> bool:
    """Whether it is."""
    if a < 0:
        raise ValueError(f"{a} is too small")
    return a <= LIMIT and a < TWICE


class Box:
    def put(self, thing):
        self.thing = thing
'''


@pytest.fixture
def module(tmp_path: Path):
    path = tmp_path / "fly_subject.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("fly_subject", path)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    sys.modules["fly_subject"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["fly_subject"]


def mutants(module) -> list[damage.Mutant]:
    return damage.mutants("fly_subject", Path(module.__file__))


def test_which_there_are(module):
    assert [f"{one.function}: {one.what}" for one in mutants(module)] == [
        "LIMIT: 10 → 11",
        "TWICE: LIMIT * 2 → LIMIT // 2",
        "TWICE: 2 → 3",
        "inside: a < 0 → a <= 0",
        "inside: a < 0 → a >= 0",
        "inside: 0 → 1",
        "inside: raise ValueError(f'{a} is too small') → pass",
        "inside: return a <= LIMIT and a < TWICE → return None",
        "inside: a <= LIMIT and a < TWICE → a <= LIMIT or a < TWICE",
        "inside: a <= LIMIT and a < TWICE → a < TWICE",
        "inside: a <= LIMIT and a < TWICE → a <= LIMIT",
        "inside: a <= LIMIT → a < LIMIT",
        "inside: a <= LIMIT → a > LIMIT",
        "inside: a < TWICE → a <= TWICE",
        "inside: a < TWICE → a >= TWICE",
        "Box.put: self.thing = thing → pass",
    ]


def applied(module, what: str, folder: Path) -> None:
    """Damages the module in this process; NoMutant where that changes nothing."""
    functions = applying.Functions.of({module.__file__})
    (one,) = (mutant for mutant in mutants(module) if mutant.what == what)
    applying.apply(one, functions, folder)


@pytest.mark.parametrize(
    ("what", "answers"),
    [
        ("a <= LIMIT → a < LIMIT", (True, False, False)),
        ("a <= LIMIT and a < TWICE → a <= LIMIT or a < TWICE", (True, True, True)),
        ("10 → 11", (True, True, True)),
        ("return a <= LIMIT and a < TWICE → return None", (None, None, None)),
    ],
)
def test_a_process_and_those_it_starts_are_damaged(module, what, answers, tmp_path, monkeypatch):
    """Whoever imported the function has the damaged one, and nothing that was remembered."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("FLY_MUTANT", "")
    held = module.inside
    assert [held(n) for n in (9, 10, 11)] == [True, True, False]
    applied(module, what, tmp_path)
    assert tuple(held(n) for n in (9, 10, 11)) == answers
    program = "import fly_subject as m; print([m.inside(n) for n in (9, 10, 11)])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == str(list(answers)), done.stderr


def test_a_constant_that_can_not_be_made_is_noticed(module, tmp_path):
    path = Path(module.__file__)
    path.write_text(f'TABLE = {{"a": 1}}\nONE = TABLE["a"]\n{SOURCE}')
    (one,) = (m for m in mutants(module) if (m.function, m.what) == ("ONE", "'a' → 'a?'"))
    module.TABLE, module.ONE = {"a": 1}, 1
    with pytest.raises(applying.NoModule):
        applying.apply(one, applying.Functions.of({str(path)}), tmp_path)


def test_a_constant_is_judged_by_who_uses_it(module):
    (limit,) = (one for one in mutants(module) if one.function == "LIMIT")
    lines = SOURCE.splitlines()
    assert [lines[n - 1].strip() for n in limit.lines][-1] == "return a <= LIMIT and a < TWICE"
    (put,) = (one for one in mutants(module) if one.function == "Box.put")
    assert [lines[n - 1].strip() for n in put.lines] == ["self.thing = thing"]


ORDERED = """
import time
from fly_subject import inside

called = []


def test_before_the_slow_one():
    assert inside(1) and called


def test_alone():
    assert inside(2)


def test_slow():
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    called.append(inside(3))
"""
# Recorded as they are called here, the slow one first; a control runs the quick ones first.
RUN = """
import sys
from pathlib import Path
from mutation_python import suite, trials

def judge(tests):
    failing = trials.failing(tests, 2)
    left = tests.without(failing)
    print(len(tests.judges), *(name.rpartition(":")[2] for name in left.broken), file=sys.stderr)
    print(*(one.item.name for one in left.judges), file=sys.stderr)

folder = Path(sys.argv[1])
names = ["test_slow", "test_before_the_slow_one", "test_alone"]
tests = [f"{folder}/test_ordered.py::{name}" for name in names]
(folder / "run").mkdir()
suite.within(tests, {f"{folder}/fly_subject.py"}, folder / "run", judge)
"""


def test_a_test_that_needs_another_is_left_out(tmp_path):
    (tmp_path / "fly_subject.py").write_text(SOURCE)
    (tmp_path / "test_ordered.py").write_text(ORDERED)
    search = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-2:] == ["3 test_before_the_slow_one", "test_slow test_alone"]
