"""Tracing does work in proportion to the program: the calls that Python makes are counted for a
kernel and for one of twice the size. Times would depend on the machine."""

import gc
import sys
from pathlib import Path

import pytest
from fly_opt.pipeline.options import Options
from fly_opt.pipeline.stage import compile as lower
from fly_trace import rewrite
from fly_trace.effects import snapshots
from fly_trace.session.load import find_entry, load_file
from fly_trace.session.trace import trace_function

sys.path.insert(0, str(Path(__file__).parent))
from trace_helpers import kernel_source

MOST = 2.2  # times the calls, for twice the size


def calls_of(work):
    """How many calls `work` makes, of Python's functions and of C's."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    # A collection in between would call the finalizers of what other tests have left.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def straight_line(size):
    lines = ["x0 = A[0]", "x1 = A[1]"]
    lines += [f"x{j} = x{j - 1} * x0 + x{j - 2}" for j in range(2, size)]
    return [*lines, f"A[2] = x{size - 1}"]


def branches(size):
    lines = ["total = A[0]"]
    for j in range(size):
        lines += [f"a{j} = A[{j}]", f"if a{j} > total:", f"    total = total + a{j}"]
        lines += ["else:", "    total = total - 1.0"]
    return [*lines, "A[0] = total"]


def all_live(size):
    """Each variable is read at the end, and there are branches among them."""
    lines = [f"a{j} = A[{j}]" for j in range(size)]
    for j in range(size):
        lines += [f"if a{j} > x:", f"    a{j} = a{j} + x"]
    return [*lines, *(f"A[{j}] = a{j}" for j in range(size))]


def loops(size):
    lines = ["total = A[0]"]
    for _ in range(size):
        lines += ["for i in range(n):", "    last = total", "    total = last + A[i]"]
    return [*lines, "A[0] = total"]


def early_exits(size):
    lines = []
    for j in range(size):
        lines += [f"for i{j} in range(n):", f"    if A[i{j}] > x:", "        break"]
        lines += [f"    A[i{j}] = x"]
    return lines


def static_loop(size):
    return [
        *("a, b = A[0], A[1]", f"for _ in fx.range_constexpr({size}):"),
        *("    a = a * b + b", "    b = b * a - a", "A[0] = a"),
    ]


def unrolled(size):
    return [
        *("a = A[0]", f"for _ in fx.range_constexpr({size}):"),
        *("    for _ in fx.range_constexpr(32):", "        a = a * x + x", "A[0] = a"),
    ]


def where_chain(size):
    return [
        *("a = A[0]", f"for j in fx.range_constexpr({size}):"),
        *("    a = fx.where(a < x, a * x + j, a)", "A[0] = a"),
    ]


def where_of_indices(size):
    """Integers, whose intervals are looked for in the ops before."""
    return [
        *("i = fx.thread_idx.x", f"for j in fx.range_constexpr({size}):"),
        *("    i = fx.where(i < n, i + j, i & 7)", "    A[i] = x"),
    ]


def conditional_chain(size):
    return ["a = A[0]", *[f"a = a + {j}.0 if a < x else a" for j in range(size)], "A[0] = a"]


def deep(size):
    """Expressions that are nested to the right, of a fixed depth."""
    expression = "x"
    for j in range(60):
        expression = f"(A[0] {'+*'[j % 2]} {expression})" if j % 3 else f"-{expression}"
    return [f"A[{j}] = {expression}" for j in range(size)]


def helpers(size):
    return ["def f(a):", "    return a * x + 1.0", *(f"A[{j}] = f(A[{j}])" for j in range(size))]


PROGRAMS = {
    straight_line: 200,
    branches: 60,
    all_live: 60,
    loops: 40,
    early_exits: 20,
    static_loop: 200,
    unrolled: 16,
    where_chain: 100,
    where_of_indices: 60,
    conditional_chain: 60,
    deep: 20,
    helpers: 60,
}


def entry(lines, folder, name):
    file = folder / f"{name}.py"
    file.write_text(kernel_source("\n".join(lines)))
    return find_entry(load_file(str(file)), str(file), None)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_tracing(program, tmp_path):
    size = PROGRAMS[program]
    trace_function(entry(program(4), tmp_path, "first"), {})
    one, two = (
        calls_of(lambda f=entry(program(n), tmp_path, f"k{n}"): trace_function(f, {}))
        for n in (size, 2 * size)
    )
    assert two < MOST * one


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_lowering(program, tmp_path):
    size, target = PROGRAMS[program], Options(target="gfx942")
    texts = [
        trace_function(entry(program(n), tmp_path, f"k{n}"), {}).encode()
        for n in (4, size, 2 * size)
    ]
    lower(texts[0], target)
    one, two = (calls_of(lambda text=text: lower(text, target)) for text in texts[1:])
    assert two < MOST * one


@pytest.mark.parametrize("head", ["if x > {}.0:", "for i{} in range(n):", "while A[{}] > x:"])
def test_nesting(head, tmp_path):
    """What a loop in a loop reads in its next iteration is found without looking at it again for
    each iteration of the outer one."""
    calls = []
    for depth in (2, 9, 16):
        lines = ["total = x", *(f"p{level} = x" for level in range(depth))]
        tail = []
        for level in range(depth):
            lines.append("    " * level + head.format(level))
            lines.append("    " * (level + 1) + f"total = total + p{level}")
            tail.insert(0, "    " * (level + 1) + f"p{level} = total")
        function = entry([*lines, *tail, "A[0] = total"], tmp_path, f"k{depth}")
        kernel = function.function.__globals__["kernel"].function
        calls.append(calls_of(lambda f=kernel: rewrite._compile(f)))
    assert calls[2] - calls[1] < 1.3 * (calls[1] - calls[0])


def test_objects_are_found_in_many_variables(tmp_path):
    """`f_locals` takes quadratic time for variables that nested functions share, and a kernel with
    many has its own list of them. It holds what `f_locals` does."""
    seen = []
    original = snapshots._contents

    def noted(names, cells):
        found = original(names, cells)
        seen.append(found)
        return found

    lines = [f"a{j} = A[{j}]" for j in range(40)]
    lines += ["held = [x, x]", "if a0 > x:", "    a1 = a0 + held[0]", "    later = a1"]
    lines += ["A[0] = a1"]
    snapshots._contents = noted
    try:
        trace_function(entry(lines, tmp_path, "many"), {})
    finally:
        snapshots._contents = original
    assert len(seen) == 2  # before each side of the `if`
    names = {f"a{j}" for j in range(40)} | {"held", "A", "I", "x", "n", "later"}
    assert set(seen[0]) == names
    assert type(seen[0]["held"]) is list


def test_a_call_is_checked_in_proportion_to_what_may_change():
    """What a function and its arguments can reach may be much more, as the code of a library."""
    lists = [[] for _ in range(2 * snapshots.FEW)]
    snapshot = snapshots.Snapshot(snapshots.Origin.OUTSIDE)
    snapshot.add([(lists, ("lists", None))])

    def reached(size):
        graph = lists[3]
        for number in range(size):
            graph = [number, graph]
        return calls_of(lambda: snapshot.reached_by((graph,)))

    assert reached(8000) == reached(4000)
    lists[3].append(1)
    changed = [entry for entry in snapshot.reached_by(([lists[3]],)) if entry.changed]
    assert [entry.value for entry in changed] == [[1]]
    changed = [one for one in snapshot.reached_by(([[], *range(9), lists],)) if one.changed]
    assert [entry.value for entry in changed] == [[1]]
