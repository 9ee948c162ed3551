"""What a function reaches: each way to change its trace changes the digest, or is refused.

The functions are written to files and imported, as an application's are; each case edits one thing.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from fly.dependencies.hashing import dependency_hash


def load(path: Path, text: str, name: str = "subject") -> ModuleType:
    """The module of `text`, imported from `path` afresh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Not through .pyc files: two edits within one second would be taken for the same.
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


def digest(path: Path, text: str) -> str:
    found = dependency_hash(load(path, text).f)
    assert found.digest, found.reason
    assert found.holds()
    return found.digest


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
        ("import os\ndef f():\n    return os.environ['X']", "type os._Environ"),
        ("import os\ndef f():\n    return os.getenv('X')", "type os._Environ"),
        ("import time\ndef f():\n    return time.time()", "time.time is not known to be pure"),
        ("def f():\n    return globals()['X']", "it calls globals()"),
        ("def f():\n    return eval('X')", "it calls eval()"),
        ("def f():\n    return open('x').read()", "it calls open()"),
        ("import config\ndef f():\n    return getattr(config, 'X')", "the module config is used"),
        ("def f():\n    import config\n    return config.X", "it imports config"),
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


LAYOUTS = """
    import fly.expr as fx

    LAYOUT = fx.make_layout((4, 8), {stride})
    SIZE = fx.size(LAYOUT)
    COPY = fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy{bits}b(), fx.Float32), LAYOUT, fx.make_layout(1, 1)
    )

    def f():
        return LAYOUT, SIZE, COPY
"""


def test_layouts_and_tiled_copies_of_a_module(tmp_path: Path):
    path = tmp_path / "subject.py"
    first = digest(path, LAYOUTS.format(stride="(1, 4)", bits=32))
    assert digest(path, LAYOUTS.format(stride="(1, 4)", bits=32)) == first
    assert digest(path, LAYOUTS.format(stride="(8, 1)", bits=32)) != first
    assert digest(path, LAYOUTS.format(stride="(1, 4)", bits=64)) != first


# The source of a module with `f`, and what is edited in it → another digest, or none.
DIFFERENT = {
    "itemgetter": ("import operator\nG = operator.itemgetter(1)\ndef f(): return G", "(1)", "(2)"),
    "attrgetter": (
        "import operator\nG = operator.attrgetter('a')\ndef f(): return G",
        "'a'",
        "'b'",
    ),
    "methodcaller": (
        "import operator\nG = operator.methodcaller('a', 1)\ndef f(): return G",
        "1",
        "2",
    ),
    "pattern": ("import re\nG = re.compile('x')\ndef f(): return G", "'x'", "'y'"),
    "struct": ("import struct\nG = struct.Struct('i')\ndef f(): return G", "'i'", "'q'"),
    "default factory": (
        "import collections\nG = collections.defaultdict(lambda: 3)\ndef f(): return G",
        "3",
        "4",
    ),
    "deque's bound": (
        "import collections\nG = collections.deque([1], 3)\ndef f(): return G",
        "3",
        "4",
    ),
    "dict subclass's attribute": (
        "class D(dict): pass\nG = D()\nG.scale = 3\ndef f(): return G",
        "3",
        "4",
    ),
    "set subclass's attribute": (
        "class D(set): pass\nG = D()\nG.scale = 3\ndef f(): return G",
        "3",
        "4",
    ),
    "set subclass": (
        "class D(set): w = 3\nG = D()\ndef f(): return G",
        "w = 3",
        "w = 4",
    ),
    "private slot": (
        "class S:\n    __slots__ = ('__x',)\n    def __init__(self): self.__x = 3\n"
        "G = S()\ndef f(): return G",
        "G = S()",
        "G = S(); object.__setattr__(G, '_S__x', 4)",
    ),
    "slice": ("class C: v = 3\nG = slice(C, None)\ndef f(): return G", "v = 3", "v = 4"),
    "matrix": (
        "import numpy as np\nG = np.asarray([[1, 2], [3, 4]])\ndef f(): return G",
        "np.asarray(",
        "np.matrix(",
    ),
    "mask": (
        "import numpy as np\nG = np.ma.array([1, 2], mask=[0, 1])\ndef f(): return G",
        "[0, 1]",
        "[1, 0]",
    ),
    "array of one and its number": (
        "import numpy as np\nG = np.float32(1.5)\ndef f(): return G",
        "np.float32(1.5)",
        "np.array(1.5, np.float32)",
    ),
    "strides": (
        "import numpy as np\nG = np.zeros((2, 2))\ndef f(): return G",
        "(2, 2)",
        "(2, 2), order='F'",
    ),
    "partial's attribute": (
        "import functools\nG = functools.partial(len)\nG.scale = 3\ndef f(): return G",
        "3",
        "4",
    ),
    "property subclass": (
        "class P(property):\n    w = 3\nclass C:\n    v = P(len)\ndef f(): return C",
        "w = 3",
        "w = 4",
    ),
    "function's name": ("def g(): pass\ng.__name__ = 'a'\ndef f(): return g", "'a'", "'b'"),
    "docstring of a class": ("class C:\n    'a'\ndef f(): return C", "'a'", "'b'"),
    "dataclass's metadata": (
        "import dataclasses as d\n@d.dataclass\nclass C:\n"
        "    v: int = d.field(default=1, metadata={'w': 3})\ndef f(): return C",
        "3",
        "4",
    ),
    "dataclass's made method": (
        "import dataclasses as d\n@d.dataclass\nclass C:\n    exec('def area(self): return 3')\n"
        "def f(): return C",
        "3",
        "4",
    ),
    "dataclass's made repr": (
        "import dataclasses as d\n@d.dataclass\nclass C:\n"
        "    exec('def __repr__(self): return 3')\ndef f(): return C",
        "3",
        "4",
    ),
    "enum member's attribute": (
        "import enum\nclass E(enum.Enum):\n    A = 1\nE.A.w = 3\ndef f(): return E.A",
        "w = 3",
        "w = 4",
    ),
    "annotated": (
        "from typing import Annotated\nclass C:\n    v = 3\n    __repr__ = lambda s: 'C'\n"
        "G = Annotated[int, C()]\ndef f(): return G",
        "v = 3",
        "v = 4",
    ),
    "type variable": (
        "import typing\nclass C:\n    v = 3\nG = typing.TypeVar('G', bound=C)\n"
        "def f(): return G.__bound__.v",
        "v = 3",
        "v = 4",
    ),
    "registered with an ABC": (
        "import abc\nclass B(abc.ABC): pass\nclass C: pass\nB.register(C)\n"
        "def f(): return isinstance(3, B)",
        "register(C)",
        "register(int)",
    ),
    "singledispatch": (
        "import functools\n@functools.singledispatch\ndef g(x): return 3\ndef f(): return g(1)",
        "return 3",
        "return 4",
    ),
    "reads another's globals": (
        "W = 3\ndef g(): pass\ndef f(): return g.__globals__['W']",
        "W = 3",
        "W = 4",
    ),
    "reads subclasses": (
        "class B: pass\nclass C(B): w = 3\ndef f(): return B.__subclasses__()[0].w",
        "3",
        "4",
    ),
    "reads globals by a getter": (
        "import operator\nW = 3\ndef g(): pass\n"
        "def f(): return operator.attrgetter('__globals__')(g)['W']",
        "W = 3",
        "W = 4",
    ),
    "decimal context": (
        "import decimal\ndecimal.getcontext().prec = 3\nG = decimal.Decimal(1)\n"
        "def f(): return G / 3",
        "prec = 3",
        "prec = 4",
    ),
    "kernel's attribute": (
        "import fly\n@fly.kernel\ndef k(): pass\nk.w = 3\ndef f(): return k.w",
        "3",
        "4",
    ),
    "closure of the language": (
        "import fly.expr as fx\nfrom fly_trace.values import operators\n"
        "G = (lambda w: fx.Vector.__add__)(1)\nH = 3\ndef f(): return G, H",
        "H = 3",
        "H = 4",
    ),
    "module's getattr": (
        "import config, sys\nW = 3\nconfig.__getattr__ = lambda name: W\n"
        "def f(): return config.anything",
        "W = 3",
        "W = 4",
    ),
    "large number": (
        "G = 10 ** 5000\ndef f(): return G",
        "** 5000",
        "** 5001",
    ),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(("source", "old", "new"), DIFFERENT.values(), ids=DIFFERENT)
def test_no_two_functions_that_differ_have_one_digest(tmp_path: Path, source, old, new):
    load(tmp_path / "config.py", "X = 1\n", "config")
    assert source.count(old) == 1
    first = dependency_hash(load(tmp_path / "a.py", source + "\n").f)
    second = dependency_hash(load(tmp_path / "a.py", source.replace(old, new) + "\n").f)
    assert first.digest is None or first.digest != second.digest


def test_builtins_of_ones_own(tmp_path: Path):
    digests = []
    for number in (3, 4):
        path = tmp_path / "a.py"
        path.write_text("def f():\n    return max(1)\n")
        space = {"__name__": "a", "__builtins__": {"max": compile(f"{number}", "x", "eval")}}
        space["__builtins__"]["max"] = (lambda w: lambda x: w)(number)
        exec(compile(path.read_text(), str(path), "exec"), space)
        found = dependency_hash(space["f"])
        assert found.digest, found.reason
        assert found.holds()
        digests.append(found.digest)
        space["__builtins__"] = {"max": max}
        assert not found.holds()
    assert digests[0] != digests[1]


def test_a_cache_that_holds_results_is_not_followed(tmp_path: Path):
    """What it holds was computed when the globals were others."""
    source = """
        import functools
        W = 3
        @functools.cache
        def g():
            return W
        def f():
            return g()
    """
    module = load(tmp_path / "a.py", source)
    empty = dependency_hash(module.f)
    assert empty.digest
    module.g()
    assert not empty.holds()
    assert "keeps results" in dependency_hash(module.f).reason
    module.g.cache_clear()
    assert dependency_hash(module.f).digest == empty.digest


SWAPPED = {
    "a function's attributes": ("def g(): pass\ng.a = 1\ndef f(): return g", "g"),
    "a class's attributes": ("class g: pass\ng.a = 1\ndef f(): return g", "g"),
}


@pytest.mark.parametrize(("source", "name"), SWAPPED.values(), ids=SWAPPED)
def test_a_value_under_another_name_is_seen(tmp_path: Path, source: str, name: str):
    module = load(tmp_path / "a.py", source + "\n")
    found = dependency_hash(module.f)
    assert found.holds()
    thing = getattr(module, name)
    thing.b = thing.a
    del thing.a
    assert not found.holds()
    assert dependency_hash(module.f).digest != found.digest
