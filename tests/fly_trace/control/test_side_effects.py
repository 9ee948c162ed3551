"""What changes Python's objects outside a kernel, or outside a dynamic branch, is refused, however
it is done, and undone."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from fly_common.errors import InputError
from fly_trace.session.load import find_entry, load_file
from fly_trace.session.trace import trace_function

sys.path.insert(0, str(Path(__file__).parents[1]))
from trace_helpers import kernel_source, refusal, trace_body

TOP = """
import array, bisect, collections, functools, heapq, itertools, operator, random, types
from dataclasses import dataclass
import numpy as np

LIST = [3, 1, 2]
DICT = {"a": 1}
SET = {1}
DEQUE = collections.deque([1, 2])
DEFAULTS = collections.defaultdict(lambda: 7)
COUNTER = collections.Counter()
ORDERED = collections.OrderedDict(a=1, b=2)
ARRAY = np.arange(4)
BYTES = bytearray(b"abc")
NUMBERS = array.array("i", [1, 2])
ITERATOR = iter([1, 2, 3])
COUNT = itertools.count()
GENERATOR = (item for item in (5, 5, 6))
NESTED = {"lists": [[1], [2]]}

class Thing:
    made = 0

    def __init__(self):
        self.v = 1
        self.items = []

    def grow(self):
        self.v += 1
        return self.v

    def __len__(self):
        self.items.append(1)
        return 1

    def __add__(self, other):
        self.v += other
        return self.v

    def __getitem__(self, key):
        Thing.made += 1
        return 1

    @property
    def next(self):
        self.v += 1
        return self.v

    def __contains__(self, key):
        global SCALAR
        SCALAR += 1
        return True

SCALAR = 1
THING = Thing()

class Slotted:
    __slots__ = ("__hidden", "seen")

    def __init__(self):
        self.__hidden, self.seen = 1, 2

    def __eq__(self, other):
        self.__hidden += 1
        return True

    __hash__ = None

SLOTTED = Slotted()

@dataclass(frozen=True)
class Frozen:
    size: int = 4

FROZEN = Frozen()

class Stack(list):
    top = 0

STACK = Stack([1])
PARTIAL = functools.partial(LIST.append, 4)

def appends(held=[]):
    held.append(1)
    return len(held)

def keyword(*, held={}):
    held["x"] = 1
    return len(held)

def helper(values):
    values.append(1)

def deeper(values):
    helper(values)

def fill(t):
    t.fill(1)
"""

# What is done → the object's name in the message, and the column of the caret.
WAYS = {
    "LIST.append(4)": "LIST",
    "LIST[0] = 4": "LIST",
    "LIST[0] += 4": "LIST",
    "LIST[0:2] = [1]": "LIST",
    "t = LIST; t += [4]": "LIST",
    "LIST.sort()": "LIST",
    "LIST.pop()": "LIST",
    "list.append(LIST, 4)": "LIST",
    "operator.setitem(LIST, 0, 4)": "LIST",
    "operator.iadd(LIST, [4])": "LIST",
    "operator.methodcaller('append', 4)(LIST)": "LIST",
    "LIST.__setitem__(0, 4)": "LIST",
    "list(map(LIST.append, [4]))": "LIST",
    "[LIST.append(k) for k in [4]]": "LIST",
    "tuple(LIST.append(k) for k in [4])": "LIST",
    "PARTIAL()": "PARTIAL.func.__self__",
    "functools.partial(list.append, LIST)(4)": "LIST",
    "functools.reduce(operator.iadd, [[4]], LIST)": "LIST",
    "heapq.heapify(LIST)": "LIST",
    "heapq.heappush(LIST, 0)": "LIST",
    "bisect.insort(LIST, 0)": "LIST",
    "random.shuffle(LIST)": "",
    "random.random()": "",
    "random.seed(3)": "",
    "np.random.rand()": "",
    "DICT['b'] = 2": "DICT",
    "DICT.pop('a')": "DICT",
    "DICT.setdefault('b', 1)": "DICT",
    "d = DICT; d |= {'b': 2}": "DICT",
    "SET.add(2)": "SET",
    "set.add(SET, 2)": "SET",
    "s = SET; s ^= {2}": "SET",
    "DEQUE.rotate(1)": "DEQUE",
    "DEQUE.appendleft(1)": "DEQUE",
    "collections.deque.append(DEQUE, 1)": "DEQUE",
    "A[0] = DEFAULTS['x']": "DEFAULTS",
    "COUNTER.update('ab')": "COUNTER",
    "ORDERED.move_to_end('a')": "ORDERED",
    "ARRAY[0] = 9": "ARRAY",
    "ARRAY.fill(9)": "ARRAY",
    "np.copyto(ARRAY, 9)": "ARRAY",
    "np.add(ARRAY, 1, out=ARRAY)": "ARRAY",
    "a = ARRAY; a += 1": "ARRAY",
    "BYTES.extend(b'x')": "BYTES",
    "NUMBERS.append(4)": "NUMBERS",
    "A[0] = next(ITERATOR)": "ITERATOR",
    "A[0] = next(COUNT)": "COUNT",
    "A[0] = next(GENERATOR)": "GENERATOR",
    "for v in ITERATOR: A[0] = v": "ITERATOR",
    "a, b, c = ITERATOR": "ITERATOR",
    "t = [*ITERATOR]": "ITERATOR",
    "t = [v for v in ITERATOR]": "ITERATOR",
    "t = [v for u in [1] for v in ITERATOR]": "ITERATOR",
    "t = sum(v for v in ITERATOR)": "ITERATOR",
    "t = list(zip([1], ITERATOR))": "ITERATOR",
    "t = list(itertools.islice(ITERATOR, 2))": "ITERATOR",
    "t = max(*ITERATOR)": "ITERATOR",
    "t = 1 in ITERATOR": "ITERATOR",
    "NESTED['lists'][0].append(4)": "NESTED['lists'][0]",
    "THING.v = 2": "THING",
    "THING.v += 2": "THING",
    "THING.grow()": "THING",
    "THING.items.append(1)": "THING.items",
    "setattr(THING, 'v', 3)": "THING",
    "delattr(THING, 'v')": "THING",
    "object.__setattr__(THING, 'v', 3)": "THING",
    "THING.__setattr__('v', 3)": "THING",
    "THING.__dict__['v'] = 3": "THING",
    "len(THING)": "THING.items",
    "t = THING + 1": "THING",
    "t = THING[0]": "Thing",
    "t = THING.next": "THING",
    "t = 1 in THING": "",
    "Thing.made = 3": "Thing",
    "Thing.made += 3": "Thing",
    "setattr(Thing, 'made', 3)": "Thing",
    "type.__setattr__(Thing, 'made', 3)": "Thing",
    "SLOTTED.seen = 3": "SLOTTED",
    "t = SLOTTED == 3": "SLOTTED",
    "object.__setattr__(FROZEN, 'size', 3)": "FROZEN",
    "STACK.append(1)": "STACK",
    "STACK.top = 1": "STACK",
    "helper.count = 1": "helper",
    "np.scale = 1": "numpy",
    "appends()": "",
    "keyword()": "",
    "helper(LIST)": "LIST",
    "deeper(LIST)": "LIST",
    "list(map(helper, [LIST]))": "LIST",
    "(lambda t: t.append(1))(LIST)": "LIST",
}


def state(module) -> dict:
    """All that a change could be seen in."""
    found = {name: getattr(module, name) for name in dir(module) if name.isupper()}
    shown = {k: repr(v) for k, v in found.items() if k not in ("THING", "SLOTTED", "PARTIAL")}
    shown["THING"] = repr(vars(module.THING)) + repr(module.Thing.made)
    shown["SLOTTED"] = repr((module.SLOTTED.seen, module.SLOTTED._Slotted__hidden))
    shown["defaults"] = repr((module.appends.__defaults__, module.keyword.__kwdefaults__))
    shown["helper"] = repr(vars(module.helper))
    shown["random"] = str(hash(module.random.getstate()))
    shown["numpy"] = repr(module.np.random.get_state()[1][:4]) + str(hasattr(module.np, "scale"))
    return shown


UNDONE = {"next(", "ITERATOR", "COUNT", "GENERATOR"}


@pytest.mark.parametrize("indented", [False, True], ids=["kernel", "branch"])
@pytest.mark.parametrize("way", WAYS)
def test_a_change_outside_the_kernel(way: str, indented: bool, tmp_path: Path) -> None:
    body = f"if n > 3:\n    {way}" if indented else way
    path = tmp_path / f"kernel_{abs(hash((way, indented)))}.py"
    path.write_text(kernel_source(body, TOP))
    module = load_file(str(path))
    before = state(module)
    with pytest.raises(InputError) as raised:
        trace_function(find_entry(module, str(path), None), {})
    error = raised.value
    if f"change {WAYS[way]}," not in error.message:
        assert f"modifies {WAYS[way]}" in error.message, error
    assert "from outside the kernel" in error.message, error
    assert "while tracing" in str(error.hint)
    assert error.place is not None
    assert error.place.excerpt()
    after = state(module)
    if not any(word in way for word in UNDONE):
        assert after == before


LOCAL = """
l = [3, 1, 2]
d = {"a": 1}
D = collections.defaultdict(lambda: 7)
a = np.arange(4)
b = bytearray(b"abc")
q = collections.deque([1])
it = iter([1, 2, 3])
t = Thing()
s = Slotted()
nested = {"x": ([1],)}
p = functools.partial(l.append, 4)
grow = lambda: l.append(4)
def add(v):
    nested["x"][0].append(v)
k = 1
if n > 3:
    {way}
A[0] = l[0] + k
"""

# What a dynamic branch does to objects that the kernel made before it → their type.
IN_A_BRANCH = {
    "list.append(l, 4)": "list",
    "operator.setitem(l, 0, 4)": "list",
    "operator.iadd(l, [4])": "list",
    "list(map(l.append, [4]))": "list",
    "operator.methodcaller('append', 4)(l)": "list",
    "heapq.heappush(l, 4)": "list",
    "bisect.insort(l, 4)": "list",
    "p()": "list",
    "grow()": "list",
    "add(1)": "list",
    "helper(l)": "list",
    "deeper([l][0])": "list",
    "[l.append(v) for v in (1, 2)]": "list",
    "random.shuffle(l)": "list",
    "np.copyto(a, 9)": "ndarray",
    "a.fill(9)": "ndarray",
    "fill(a)": "ndarray",
    "a[1:][0] = 9": "ndarray",
    "np.add(a, 1, out=a)": "ndarray",
    "k = D['x']": "defaultdict",
    "k = D['x'] if n > 5 else 1": "defaultdict",
    "d.setdefault('b', 1)": "dict",
    "operator.ior(d, {'b': 2})": "dict",
    "b.extend(b'x')": "bytearray",
    "q.rotate(1); q.append(2)": "deque",
    "k = next(it)": "list_iterator",
    "k = sum(v for v in it)": "list_iterator",
    "k = max(*it)": "list_iterator",
    "k = 1 if 2 in it else 3": "list_iterator",
    "object.__setattr__(t, 'v', 4)": "Thing",
}


@pytest.mark.parametrize("way", IN_A_BRANCH)
def test_a_change_in_a_branch_of_what_was_made_before_it(way: str, tmp_path: Path) -> None:
    said = refusal(kernel_source(LOCAL.replace("{way}", way), TOP), tmp_path)
    assert f" modifies a Python {IN_A_BRANCH[way]} created outside this dynamic" in said.split(
        "\n"
    )[0] or (
        f"modifies random.shuffle.__self__, a Python {IN_A_BRANCH[way]}" in said
        or "a Python Random from outside" in said
    )
    assert "^" in said.splitlines()[2]


# What functions that Python calls change there, as functions that the program calls do.
CARRIED = ("k = t + 1", "k = t.next", "k = 1 if s == 3 else 2")


@pytest.mark.parametrize("way", CARRIED)
def test_a_change_in_a_branch_by_a_function_that_python_calls(way: str, tmp_path: Path) -> None:
    body = LOCAL.replace("{way}", way) + "A[1] = t.v + s._Slotted__hidden"
    assert re.search(r"scf.if %\w+ -> \(i32(, i32)?\)", trace_body(body, tmp_path, TOP))


# The kernel's own objects, and what leaves others as they are.
ALLOWED = """
l = [3, 1, 2]; list.append(l, 4); heapq.heapify(l); operator.setitem(l, 0, 4)
t = Thing(); t.v = 5; t.grow(); t.items.append(1); setattr(t, "w", 2)
D = collections.defaultdict(lambda: 7); x7 = D["x"]
a = np.arange(4); a.fill(9); np.copyto(a, 1); a[0] = 4
it = iter(l); first = next(it); rest = [v for v in it]
q = collections.deque(LIST); q.append(4)
c = LIST.copy(); c.append(4); c.sort()
e = list(DICT.items()); e.append(1)
m = copy.deepcopy(NESTED); m["lists"][0].append(4)
DEFAULTS.get("x"); DICT.setdefault("a", 5); LIST.extend([])
g = sum(v * w for v, w in zip(LIST, LIST))
seen = [k for k in LIST if k in DICT]
CACHED.area; cached(3)
FLAGS = Colour.RED | Colour.BLUE; ~FLAGS
def h(v): return v
h.count = 1
if n > 3:
    own = [1]; own += [2, 3]; own.append(2); own[0] = 4
    thing = Thing(); thing.v = 3; thing.grow()
    z = sum(v * w for v, w in zip(l, own))
    fresh = iter(own); y = next(fresh) + max(*fresh)
    b = bytearray(4); b[0] = 1
    arrays = np.zeros(3); arrays.fill(2); np.copyto(arrays, 1)
    E = collections.defaultdict(list); E["k"].append(1)
    made = tuple(v + 1 for v in own)
    CACHED.other
    for i in range(n):
        inner = []; inner.append(i); inner += [i]
        A[i] = inner[0]
    A[0] = z + y + thing.v
A[1] = l[0]
"""


def test_changes_of_what_the_kernel_makes_stay_allowed(tmp_path: Path) -> None:
    top = """
import copy, enum
class Cached:
    @functools.cached_property
    def area(self): return 4
    @functools.cached_property
    def other(self): return 5
CACHED = Cached()
@functools.cache
def cached(x): return x + 1
class Colour(enum.Flag):
    RED = 1
    BLUE = 2
"""
    assert "gpu.func" in trace_body(ALLOWED, tmp_path, TOP + top)


def test_a_thousand_objects_are_compared_too(tmp_path: Path) -> None:
    top = "MANY = [[k] for k in range(1000)]\ndef grow(x): x.append(1)"
    for way in ("MANY[500].append(1)", "list(map(grow, MANY[3:4]))", "list.append(MANY[7], 2)"):
        said = refusal(kernel_source(way, top), tmp_path)
        assert "append() modifies MANY[" in said or "list() modifies MANY[" in said


KERNEL_IN_HOST = """
import fly
import fly.expr as fx

@fly.jit
def entry(A: fx.Tensor[fx.Float32, "n"]):
    size = 1
    sizes = [1]
    @fly.kernel
    def within(A: fx.Tensor):
        A[0] = float(size + len(sizes))
    within(A).launch(grid=1, block=1)
    {between}
    within(A).launch(grid=1, block=1)
"""


def test_a_kernel_is_traced_again_where_what_it_sees_has_changed(tmp_path: Path) -> None:
    """It was traced once for each combination of arguments, whatever its closure held."""
    from trace_helpers import trace_source

    for between, kernels in (("size = 5", 2), ("sizes.append(3)", 2), ("other = 4", 1)):
        module = trace_source(KERNEL_IN_HOST.replace("{between}", between), tmp_path)
        assert module.count("gpu.func @within") == kernels, between
        assert ("7.000000e+00" in module or "6.000000e+00" in module) == (between == "size = 5")
