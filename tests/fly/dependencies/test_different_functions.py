"""Functions that differ have digests that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from fly.dependencies.hashing import dependency_hash

from .digests import digest, load

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
