"""What surrounds the statements of a random program: its variables, what it stores, helpers.

All variables have values from the start. `a b c k` are i32, `u w` f64, `y z` begin as Python
numbers; `t` and `d` are lists that are changed in place, `m` a matrix as a list of lists, `e` a
dictionary, `p` an object, `o` one with a list, and `j` one with a tuple. What is assigned anew: `s`
is a tuple, `q` and `r` are objects, `f` is a list, `l` a matrix and `n` a dictionary. The
operators, properties and other methods of `g`, which is changed in place, and of `h`, which is
assigned anew, have dynamic control flow.
"""

HEAD = """\
c = fx.Int32(4)
w = fx.Float64(0.5)
t = [a + 0, b + 0, u + 0.0]
p = Pair(b + 1, a + 2)
s = (a + 3, (b + 1, 5))
q = Pair(c + 0, c + 1)
s = (fx.Int32(s[0]), (fx.Int32(s[1][0]), fx.Int32(5)))
k = fx.Int32(0)
g = Gauge(a + 1)
h = Wide(b)
d = [a + 0, b + 1, a - b]
y, z = 0, 1
m = [[a + 0, b + 0, 1], [c + 1, 2, b - a]]
e = {"x": a + 1, "y": 2, 3: c + 0}
o = Bag(a, b)
j = Best(a)
r = Point(a + 0, (b + 0, 1))
f = [a + 0, b + 1, fx.Int32(2)]
l = [[a - 1, b + 0], [c + 0, fx.Int32(1)]]
n = {"x": a + 1, "y": fx.Int32(3)}
"""
TAIL = """\
I[0] = a
I[1] = c
I[2] = t[0] ^ t[1]
I[3] = p.x - p.y
I[4] = s[0] + s[1][0] * 3
I[5] = q.x - q.y * 5
I[6] = k ^ g.v - h.v
I[7] = d[0] ^ d[1] - d[2] ^ fx.Int32(z)
I[5] += m[0][0] ^ m[0][1] * 3 ^ m[0][2] * 5 ^ m[1][0] * 7 ^ m[1][1] * 9 ^ m[1][2] * 11
I[6] += e["x"] ^ e["y"] * 3 ^ e[3] * 5
I[4] += o.items[0] ^ o.items[1] * 3 ^ o.items[2] * 5 ^ o.count
I[7] += j.pair[0] ^ j.pair[1] * 3 ^ j.low * 5 ^ j.tries * 7
I[2] += f[0] ^ f[1] * 3 ^ f[2] * 5
I[1] += l[0][0] ^ l[0][1] * 3 ^ l[1][0] * 5 ^ l[1][1] * 7
I[0] += n["x"] ^ n["y"] * 3
I[3] += r.x ^ r.rest[0] * 3 ^ r.rest[1] * 5
F[0] = w + y
F[1] = t[2]
"""
TOP = """
import dataclasses
import functools
import math

class Gauge:
    def __init__(self, v):
        if v > 30:
            self.v = fx.Int32(v - 30)
            return
        self.v = fx.Int32(v)

    def __add__(self, other):
        if other > 3:
            return Gauge(self.v ^ other)
        return Gauge(self.v - 1)

    def __iadd__(self, other):
        if other > 2:
            self.v = fx.Int32(self.v + other)
        return self

    def __lt__(self, other):
        for i in range(self.v & 3):
            if i + self.v > other.v:
                return False
        return self.v < other.v

    def __getitem__(self, i):
        if i > 1:
            return self.v
        return fx.Int32(self.v + i)

    def __setitem__(self, i, value):
        if i > 1:
            self.v = fx.Int32(value)
        else:
            self.v = fx.Int32(self.v ^ value)

    def __call__(self, limit):
        n = fx.Int32(1)
        while n * n < (limit & 63):
            if n > self.v & 7:
                return fx.Int32(-n)
            n = n + 2
        return n

    def __bool__(self):
        if self.v > 2:
            return True
        return False

    def __contains__(self, x):
        if x > 2:
            return self.v > x
        return self.v == x

    def __iter__(self):
        for k in range(2):
            yield fx.Int32(self.v + k) if self.v > k else fx.Int32(k)

    def __enter__(self):
        if self.v > 1:
            return self.v
        return fx.Int32(self.v ^ 5)

    def __exit__(self, *_):
        if self.v > 1:
            self.v = fx.Int32(self.v - 1)
        return False

    @property
    def size(self):
        if self.v > 4:
            return fx.Int32(self.v & 31)
        return fx.Int32(self.v + 1)

    @size.setter
    def size(self, value):
        if value > 4:
            self.v = fx.Int32(value)
        else:
            self.v = fx.Int32(value - 1)

class Wide(Gauge):
    def __add__(self, other):
        if other > self.v:
            return super().__add__(other - 1)
        return super().__add__(other)

    @property
    def size(self):
        return super().size ^ 1 if self.v > 3 else super().size

def larger(x, y):
    if x > y:
        return fx.Int32(x)
    return fx.Int32(y)

class Pair:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Pair(self.x + other, self.y)

    @property
    def sum(self):
        return self.x + self.y

class Scaled:
    def __init__(self, by):
        self.by = by

    def __enter__(self):
        return self.by + 1

    def __exit__(self, *_):
        return False

def sign(v):
    if v > 2:
        return fx.Int32(1)
    if v < -2:
        return fx.Int32(-1)
    return v

def find(I, wanted, n):
    for i in range(n):
        if I[i] == wanted:
            return fx.Int32(i)
        elif i == 6:
            continue
        for j in range(3):
            if I[j] + i > wanted + 9:
                return fx.Int32(-j)
            if j > i:
                break
    return fx.Int32(-1)

def steps(v):
    n = fx.Int32(0)
    while True:
        n = n + 1
        if v == 1 or n > 12:
            return n
        v = v // 2 if v % 2 == 0 else v + 1

def bump(t, v):
    if v > 1:
        t[0] = t[0] + v
        return t[0]
    t[1] = v
    return t[1]

def numbers(v, n):
    s = fx.Int32(v)
    for k in range(n):
        if s > 7:
            s = s - v
        yield s
        s = s * 3 + k
    yield fx.Int32(n)

def nested(v):
    yield from numbers(v, 1)
    for w in numbers(v ^ 5, 2):
        if w < 0:
            w = w + 1
        yield w - v

@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    rest: tuple

    def moved(self, by):
        if by > 3:
            return dataclasses.replace(self, x=fx.Int32(self.x + by))
        return Point(fx.Int32(self.x), (fx.Int32(self.rest[1]), self.rest[0]))

class Best:
    tries = 0

    def __init__(self, x):
        self.pair = (0, fx.Int32(x))
        self.low = fx.Int32(x)

    def offer(self, i, value):
        self.tries += 1
        if value > self.pair[1]:
            self.pair = (fx.Int32(i), fx.Int32(value))
        elif value < self.low:
            self.low = fx.Int32(value)
        else:
            return False
        return True

class Bag:
    def __init__(self, x, y):
        self.items = [fx.Int32(x), fx.Int32(y), fx.Int32(1)]
        self.count = 0

    def put(self, at, value):
        for i in range(len(self.items)):
            if i == at:
                self.items[i] = fx.Int32(value)
                self.count += 1
                return True
        return False

    def turn(self):
        first, *rest = self.items
        self.items[:] = [*rest, first]
        return self

    def total(self):
        s = 0
        for x in self.items:
            if x < 0:
                continue
            s += x
        return s

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)

def position(t, wanted):
    for i, x in enumerate(t):
        if x == wanted:
            return fx.Int32(i)
    return fx.Int32(-1)

def largest(t):
    best, at = t[0], 0
    for i in range(1, len(t)):
        if t[i] > best:
            best, at = t[i], i
    return best, at

def running(t):
    s, sums = 0, []
    for x in t:
        s = s + x
        sums.append(s)
    return sums

def ordered(t):
    t = list(t)
    for i in range(len(t)):
        for j in range(len(t) - 1 - i):
            if t[j] > t[j + 1]:
                t[j], t[j + 1] = t[j + 1], t[j]
    return t

def spread(t, v):
    for i in range(len(t)):
        if v < i:
            break
        t[i] = t[i] ^ v
        if t[i] > 99:
            return fx.Int32(i)
    else:
        t[-1] = t[-1] + 1
    return fx.Int32(7)

def flipped(m):
    return [list(column) for column in zip(*m)]

def product(m, n):
    return [[sum(m[i][k] * n[k][j] for k in range(len(n))) for j in range(len(n[0]))]
            for i in range(len(m))]

def clear_row(m, wanted):
    for i in range(len(m)):
        for j in range(len(m[i])):
            if m[i][j] == wanted:
                m[i][:] = [fx.Int32(j) for _ in m[i]]
                return True
    return False

def counted(e, key, by):
    if key in e:
        if by > 2:
            e[key] = e[key] + by
        return e[key]
    return by

def fibonacci(n, limit):
    x, y = 0, 1
    for _ in range(n):
        if y > limit:
            break
        x, y = y, x + y
    return fx.Int32(x)

def digits(v):
    v = fx.Int32(v & 1023)
    s = 0
    while v > 0:
        s, v = s + v % 10, v // 10
    return s

def pairs(t):
    for i in range(len(t) - 1):
        yield t[i], t[i + 1]

def power(v, n):
    return fx.Int32(1) if n == 0 else v * power(v, n - 1)
"""
