"""What a function reaches: each way to change its trace changes the digest, or is refused.

The functions are written to files and imported, as an application's are; each case edits one thing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fly.dependencies.hashing import dependency_hash
from fly.dependencies.traversal import MOST_VALUES

from .digests import digest, load

SOURCE = """
    import enum
    import math
    from dataclasses import dataclass
    import numpy as np

    BLOCK = 256
    SIZES = (1, 2, 3)
    TABLE = [1, 2, 3]
    OPTIONS = {"fast": True, "level": 3}
    UNUSED = 1
    WEIGHTS = np.arange(4)
    SCALE = np.float32(1.5)

    class Mode(enum.Enum):
        ROW = 1
        COLUMN = 2

    MODE = Mode.ROW

    @dataclass(frozen=True)
    class Config:
        tile: int = 16
        name: str = "c"

        def area(self):
            return self.tile * self.tile

    CONFIG = Config()

    class Namespace:
        WAVES = 4

        @staticmethod
        def lanes():
            return 64

    def deepest(x):
        return x + 1

    def helper(x):
        return deepest(x) * 2

    def make(factor):
        def scaled(x):
            return x * factor
        return scaled

    scaled = make(3)
    twice = lambda x: 2 * x

    def f(a, b=5, *, c: int = 6):
        total = helper(a) + scaled(b) + twice(c)
        for size in SIZES:
            total += size * TABLE[0] * len(TABLE)
        if MODE is Mode.ROW and OPTIONS["fast"]:
            total += CONFIG.area() * Namespace.WAVES * Namespace.lanes()
        inner = lambda y: y + BLOCK
        local: int = inner(total)
        return math.floor(local * math.pi) + WEIGHTS[0] * SCALE
"""


def test_the_same_source_gives_the_same_digest(tmp_path: Path):
    assert digest(tmp_path / "a.py", SOURCE) == digest(tmp_path / "a.py", SOURCE)


def test_another_process_gives_the_same_digest(tmp_path: Path):
    load(tmp_path / "subject.py", SOURCE)
    code = (
        "import subject; from fly.dependencies.hashing import dependency_hash;"
        " print(dependency_hash(subject.f).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BLOCK = 256", "BLOCK = 257"),
        ("BLOCK = 256", "BLOCK = 256.0"),
        ("BLOCK = 256", "BLOCK = True"),
        ("SIZES = (1, 2, 3)", "SIZES = (1, 2, 4)"),
        ("TABLE = [1, 2, 3]", "TABLE = [1, 2, 4]"),
        ('"level": 3', '"level": 2'),
        ("np.arange(4)", "np.arange(1, 5)"),
        ("np.arange(4)", "np.arange(4., 8.)"),
        ("np.float32(1.5)", "np.float64(1.5)"),
        ("MODE = Mode.ROW", "MODE = Mode.COLUMN"),
        ("ROW = 1", "ROW = 3"),
        ("tile: int = 16", "tile: int = 32"),
        ("CONFIG = Config()", "CONFIG = Config(8)"),
        ("self.tile * self.tile", "self.tile + self.tile"),
        ("WAVES = 4", "WAVES = 8"),
        ("return 64", "return 32"),
        ("return x + 1", "return x + 2"),
        ("deepest(x) * 2", "deepest(x) * 3"),
        ("make(3)", "make(4)"),
        ("x * factor", "x / factor"),
        ("lambda x: 2 * x", "lambda x: 3 * x"),
        ("b=5", "b=4"),
        ("c: int = 6", "c: int = 7"),
        ("c: int = 6", "c: bool = 6"),
        ("lambda y: y + BLOCK", "lambda y: y - BLOCK"),
        ("local: int", "local: str"),
        ("math.floor", "math.sqrt"),
        ("    def f(a", "\n    def f(a"),  # its lines are in the trace's locations
    ],
)
def test_what_a_function_reaches_is_in_its_digest(tmp_path: Path, old: str, new: str):
    assert SOURCE.count(old) == 1
    path = tmp_path / "a.py"
    assert digest(path, SOURCE) != digest(path, SOURCE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [("UNUSED = 1", "UNUSED = 2"), ("UNUSED = 1", "UNUSED = object()")]
)
def test_what_it_does_not_reach_is_not(tmp_path: Path, old: str, new: str):
    path = tmp_path / "a.py"
    assert digest(path, SOURCE) == digest(path, SOURCE.replace(old, new))


def test_a_helper_in_another_folder(tmp_path: Path):
    digests = []
    for body in ("x + 1", "x + 2"):
        load(tmp_path / "far" / "helpers.py", f"def helper(x):\n    return {body}\n", "helpers")
        for source in (
            "import helpers\ndef f(x):\n    return helpers.helper(x)\n",
            "from helpers import helper\ndef f(x):\n    return helper(x)\n",
        ):
            digests.append(digest(tmp_path / "near" / "kernels.py", source))
    assert len(set(digests)) == 4


def test_a_constant_of_another_module(tmp_path: Path):
    config = load(tmp_path / "config.py", "BLOCK = 1\nOTHER = 1\n", "config")
    subject = load(tmp_path / "a.py", "import config\ndef f():\n    return config.BLOCK\n")
    found = dependency_hash(subject.f)
    config.OTHER = 2
    assert found.holds()
    config.BLOCK = 2
    assert not found.holds()
    assert dependency_hash(subject.f).digest != found.digest


# Each case changes something in a running process.
CHANGES = {
    "a global number": lambda m: setattr(m, "BLOCK", 128),
    "a global tuple": lambda m: setattr(m, "SIZES", (7,)),
    "a list in place": lambda m: m.TABLE.append(4),
    "a dictionary in place": lambda m: m.OPTIONS.update(fast=False),
    "an array in place": lambda m: m.WEIGHTS.__setitem__(0, 9),
    "a redefined helper": lambda m: setattr(m, "helper", lambda x: x),
    "a redefined helper of a helper": lambda m: setattr(m, "deepest", lambda x: x),
    "a helper's code": lambda m: setattr(m.deepest, "__code__", (lambda x: x).__code__),
    "a helper's default": lambda m: setattr(m.f, "__defaults__", (9,)),
    "a helper's keyword default": lambda m: m.f.__kwdefaults__.update(c=9),
    "an annotation": lambda m: m.f.__annotations__.update(c=float),
    "a closure's variable": lambda m: setattr(m.scaled.__closure__[0], "cell_contents", 9),
    "a class's attribute": lambda m: setattr(m.Namespace, "WAVES", 9),
    "a class's method": lambda m: setattr(m.Config, "area", lambda self: 9),
    "a frozen object by force": lambda m: object.__setattr__(m.CONFIG, "tile", 9),
    "an enum": lambda m: setattr(m, "MODE", m.Mode.COLUMN),
    "a builtin that is hidden": lambda m: setattr(m, "len", lambda x: 9),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_in_a_running_process_is_seen(tmp_path: Path, change):
    module = load(tmp_path / "a.py", SOURCE)
    found = dependency_hash(module.f)
    assert found.digest
    assert found.holds()
    change(module)
    assert not found.holds()
    assert dependency_hash(module.f).digest not in (None, found.digest)


def test_an_equal_value_put_back_gives_the_same_digest(tmp_path: Path):
    module = load(tmp_path / "a.py", SOURCE)
    found = dependency_hash(module.f)
    module.BLOCK = int("256")
    module.TABLE = [1, 2, 3]
    assert dependency_hash(module.f).digest == found.digest


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import random\ndef f():\n    return random.random()", "an object of type random.Random"),
        ("import time\ndef f():\n    return time.time()", "time.time is not known to be pure"),
        ("def f():\n    return globals()['X']", "it calls globals()"),
        ("def f():\n    return eval('X')", "it calls eval()"),
        ("def f():\n    return open('x').read()", "it calls open()"),
        ("import config\ndef f():\n    return getattr(config, 'X')", "the module config is used"),
        ("N = 0\ndef f():\n    global N\n    N += 1", "it assigns the global N"),
        ("import threading\nL = threading.Lock()\ndef f():\n    return L", "type _thread.lock"),
        ("T = {'a': open('/dev/null')}\ndef f():\n    return T['a']", "type _io.TextIOWrapper"),
        ("def g():\n    yield 1\nG = g()\ndef f():\n    return next(G)", "type generator"),
        ("import numpy as np\ndef f():\n    return np.random.rand()", "cython_function"),
        ("S = {(1, 2)}\ndef f():\n    return S", "no stable order"),
        ("import re\nP = re.compile('x')\ndef f():\n    return P.sub", None),
    ],
)
def test_what_cannot_be_followed_is_traced_each_time(tmp_path: Path, source: str, reason):
    load(tmp_path / "config.py", "X = 1\n", "config")
    found = dependency_hash(load(tmp_path / "a.py", source + "\n").f)
    if reason is None:
        assert found.digest
    else:
        assert found.digest is None
        assert not found.holds()
        assert reason in found.reason


def test_recursion_and_cycles_end(tmp_path: Path):
    source = """
        def even(n):
            return n == 0 or odd(n - 1)
        def odd(n):
            return n != 0 and even(n - 1)
        LOOP = [1]
        LOOP.append(LOOP)
        TABLE = {"f": even}
        def f(n):
            return even(n) + LOOP[0] + TABLE["f"](n)
    """
    assert digest(tmp_path / "a.py", source) != digest(
        tmp_path / "a.py", source.replace("n != 0", "n > 0")
    )


def test_string_annotations_reach_what_they_name(tmp_path: Path):
    source = "N = 4\ndef f(a: 'Vector[N]'):\n    return a\n"
    path = tmp_path / "a.py"
    assert digest(path, source) != digest(path, source.replace("N = 4", "N = 5"))


def test_a_type_named_by_a_local_annotation_alone(tmp_path: Path):
    source = (
        "class A:\n    W = 1\nclass B:\n    W = 2\nT = A\ndef f(a):\n    x: T = a\n    return x\n"
    )
    path = tmp_path / "a.py"
    assert digest(path, source) != digest(path, source.replace("T = A", "T = B"))


def test_holding_costs_little(tmp_path: Path):
    """A bound on work, not on time: names are compared, nothing is hashed."""
    source = "BLOCK = 256\ndef g(x):\n    return x + BLOCK\ndef f(x):\n    return g(x) * BLOCK\n"
    found = dependency_hash(load(tmp_path / "a.py", source).f)
    assert not found.mutables
    assert len(found.names) <= 3


def test_a_function_that_reaches_too_much(tmp_path: Path):
    text = "TABLE = tuple((i,) for i in range(COUNT))\ndef f():\n    return TABLE[0]\n"
    reached = {}
    for count in (MOST_VALUES // 2, MOST_VALUES):
        file = tmp_path / f"reach_{count}.py"
        reached[count] = dependency_hash(load(file, text.replace("COUNT", str(count))).f)
    assert reached[MOST_VALUES // 2].digest
    assert reached[MOST_VALUES].digest is None
    assert reached[MOST_VALUES].reason == f"it reaches more than {MOST_VALUES} values"


def test_a_function_that_reaches_something_nested_deeply(tmp_path: Path):
    text = "DEEP = ()\nfor _ in range(5000):\n    DEEP = (DEEP,)\ndef f():\n    return DEEP\n"
    found = dependency_hash(load(tmp_path / "deep.py", text).f)
    assert found.digest is None
    assert found.reason == "what it reaches is nested too deeply"
