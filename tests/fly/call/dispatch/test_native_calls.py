"""Calls by native code: they take over from the second call of a kind on, and give way at once when
anything changes that the code depends on."""

import gc
import os
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault, FlyError, InputError
from fly_host.native.unavailable import Unavailable
from fly_trace.session.load import load_file as load

from fly.call import function as calling
from fly.call import known_calls
from fly.call.dispatch import dispatcher, native_calls
from fly.call.dispatch.dispatch_table import AT
from fly.call.dispatch.dispatcher import Dispatcher
from fly.call.dispatch.native_calls import NativeCalls, _namespace
from fly.dependencies.function_parts import MISSING
from fly.dependencies.hashing import DependencyHash

PROGRAM = """
import fly
import fly.expr as fx

FACTOR = 2
SHIFT = [1]
TABLE = {7: 1}


def twice(x, factor=FACTOR):
    return x * factor


@fly.kernel
def scale_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = twice(X[i]) * FACTOR + a


@fly.jit
def scale(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32 = 0.0):
    n = X.shape[0]
    scale_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 64), block=64)


@fly.kernel
def add_kernel(X: fx.Tensor, Y: fx.Tensor, k: fx.Constexpr, n: fx.Int64):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = X[i] + k


@fly.jit
def add(X: fx.Tensor, k: fx.Constexpr, Y: fx.Tensor):
    add_kernel(X, Y, k, X.shape[0]).launch(grid=fx.ceildiv(X.shape[0], 64), block=64)


@fly.kernel
def shift_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[0] + SHIFT[0]


@fly.jit
def shifted(X: fx.Tensor, Y: fx.Tensor):
    shift_kernel(X, Y).launch(grid=1, block=64)


@fly.kernel
def looked_up_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[0] + TABLE[7]


@fly.jit
def looked_up(X: fx.Tensor, Y: fx.Tensor):
    looked_up_kernel(X, Y).launch(grid=1, block=64)


@fly.kernel
def wild_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[fx.thread_idx.x]


@fly.jit
def wild(X: fx.Tensor, Y: fx.Tensor):
    wild_kernel(X, Y).launch(grid=1, block=64)
"""

CLASSES = """
import fly
import fly.expr as fx


class Base:
    EXTRA = 1


class Sizes(Base):
    BLOCK = 2


@fly.kernel
def sizes_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[0] + Sizes.BLOCK + Sizes.EXTRA


@fly.jit
def add_sizes(X: fx.Tensor, Y: fx.Tensor):
    sizes_kernel(X, Y).launch(grid=1, block=64)
"""


@pytest.fixture
def made(tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return load(str(path))


@pytest.fixture
def slow(monkeypatch):
    """Counts the calls that go the Python way."""
    seen = []
    run = calling.JitFunction.run

    def counted(self, arguments, named):
        seen.append(self.name)
        return run(self, arguments, named)

    monkeypatch.setattr(calling.JitFunction, "run", counted)
    monkeypatch.setattr(known_calls, "LOOK_AFTER", 1000.0)
    return seen


def numbers(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def test_the_third_call_is_native(made, slow):
    x, y = numbers()
    for count in range(1, 6):
        y[:] = 0
        made.scale(x, y)
        np.testing.assert_array_equal(y, 4 * x)
        assert len(slow) == min(count, 2)
    for n in (1, 63, 1000, 0):
        x, y = numbers(n)
        made.scale(x, y)
        np.testing.assert_array_equal(y, 4 * x)
    assert len(slow) == 2


def warm(made, *more) -> tuple[np.ndarray, np.ndarray]:
    x, y = numbers()
    for _ in range(3):
        made.scale(x, y, *more)
    return x, y


def test_a_global_that_changes(made, slow):
    x, y = warm(made)
    before = len(slow)
    made.FACTOR = 3
    made.scale(x, y)
    np.testing.assert_array_equal(y, 6 * x)  # the default of `twice` is what it was
    assert len(slow) == before + 1
    made.scale(x, y)
    made.scale(x, y)
    assert len(slow) == before + 2
    made.unrelated = 1  # the dictionary changes, and no name that matters
    made.scale(x, y)
    assert len(slow) == before + 2


def test_a_class_that_changes(tmp_path, slow):
    path = tmp_path / "classes.py"
    path.write_text(CLASSES)
    made = load(str(path))
    X, Y = numbers()

    def told() -> float:
        before = len(slow)
        made.add_sizes(X, Y)
        native.append(len(slow) == before)
        return float(Y[0])

    native: list[bool] = []
    assert [told() for _ in range(4)] == [3.0] * 4
    assert native == [False, False, True, True]
    changes = (
        (lambda: setattr(made.Sizes, "BLOCK", 5), 6.0),
        (lambda: setattr(made.Base, "EXTRA", 7), 12.0),
        (lambda: setattr(made.Sizes, "EXTRA", 2), 7.0),
        (lambda: delattr(made.Sizes, "EXTRA"), 12.0),
        (lambda: setattr(made.Sizes, "unused", 1), 12.0),
    )
    for change, wanted in changes:
        native.clear()
        change()
        assert [told() for _ in range(3)] == [wanted] * 3
        assert native[0] is False
        assert native[-1] is True


def test_a_mutable_value_goes_the_python_way(made, slow):
    X, Y = numbers()
    for _ in range(3):
        made.shifted(X, Y)
        assert Y[0] == 1
    assert made.shifted._calls.native.reasons == ["the function reaches mutable values"]
    made.SHIFT[0] = 4
    made.shifted(X, Y)
    assert Y[0] == 4
    assert len(slow) == 4


def test_a_dictionary_is_looked_at(made, slow):
    X, Y = numbers()

    def told(count: int) -> list[float]:
        results = []
        for _ in range(count):
            made.looked_up(X, Y)
            results.append(float(Y[0]))
        return results

    assert told(4) == [1.0] * 4
    assert len(slow) == 2, "native code takes the others"
    for change, wanted in (
        (lambda: made.TABLE.update({7: 3}), 3.0),
        (lambda: made.TABLE.update({8: 0}), 3.0),
        (lambda: made.TABLE.pop(8), 3.0),
    ):
        before = len(slow)
        change()
        assert told(1) == [wanted]
        assert len(slow) == before + 1
    assert told(3) == [3.0] * 3


def test_attributes_of_functions_are_looked_at(made, slow):
    """In CPython 3.13 the tag of their dictionary does not tell."""
    X, Y = numbers()
    for _ in range(4):
        made.scale(X, Y)
    assert len(slow) == 2
    made.twice.added = 1
    made.scale(X, Y)
    assert len(slow) == 3


def test_the_dispatcher_sees_each_change_of_a_dictionary():
    from fly.call.dispatch.dispatcher import Dispatcher, State

    class Holder:
        pass

    holder = Holder()
    holder.value = 1
    space, missing = vars(holder), object()
    state = State([(space, "value", 1), (space, "other", missing)], [space], [], [], missing)
    busy = np.zeros(1, np.uint64)

    def looked() -> bool:
        """Whether a dispatcher still answers: behind a change its deadline is over."""
        return dispatcher._table[AT["deadline"]] != 0

    for change in (
        lambda: setattr(holder, "value", 2),
        lambda: setattr(holder, "other", 2),
        lambda: setattr(holder, "third", 2),
        lambda: delattr(holder, "value"),
        lambda: space.update(value=3),
    ):
        vars(holder).clear()
        holder.value = 1
        dispatcher = Dispatcher(state, busy.ctypes.data)
        dispatcher.until(time.monotonic_ns() + 10**12)
        assert dispatcher.call() is NotImplemented
        assert dispatcher.call() is NotImplemented
        assert looked()
        change()
        assert dispatcher.call() is NotImplemented
        assert not looked()


def test_a_default_and_a_function_that_change(made, slow):
    x, y = warm(made)
    made.twice.__defaults__ = (5,)
    made.scale(x, y)
    np.testing.assert_array_equal(y, 10 * x)
    x, y = warm(made)

    def other(value):
        return value

    made.twice.__code__, made.twice.__defaults__ = other.__code__, None
    made.scale(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_the_environment(made, slow, monkeypatch):
    x, y = warm(made)
    before = len(slow)
    monkeypatch.setenv("UNRELATED", "1")
    made.scale(x, y)
    assert len(slow) == before
    monkeypatch.setenv("FLY_TARGET", "gfx90a")
    made.scale(x, y)
    assert len(slow) == before + 1
    assert {one.target for one in made.scale._kept.values()} == {"gfx942", "gfx90a"}


def test_what_is_looked_at_after_a_while(made, slow, monkeypatch):
    """Native code takes calls up to a deadline; then Python looks, and sets the next one."""
    deadlines: list[int] = []
    until = Dispatcher.until

    def recorded(self, nanoseconds):
        deadlines.append(nanoseconds)
        until(self, nanoseconds)

    monkeypatch.setattr(Dispatcher, "until", recorded)
    start = time.monotonic_ns()
    x, y = warm(made)
    before = len(slow)
    made.scale(x, y)
    assert len(slow) == before
    until(made.scale._calls.native.dispatcher, start)  # a deadline that has passed
    made.scale(x, y)
    assert len(slow) == before + 1
    made.scale(x, y)
    assert len(slow) == before + 1
    latest = time.monotonic_ns() + int(known_calls.LOOK_AFTER * 1e9)
    assert deadlines
    assert all(start < deadline <= latest for deadline in deadlines)


def test_constants_and_their_types(made, slow):
    x, y = numbers()
    for k in (1, 2.5, 2):
        for _ in range(3):
            made.add(x, k, y)
            np.testing.assert_array_equal(y, x + np.float32(k))
    count = len(slow)
    for k in (2, 1, 2.5):
        made.add(x, k, y)
        np.testing.assert_array_equal(y, x + np.float32(k))
    assert len(slow) == count
    made.add(x, 1.0, y)  # equal to 1, and of another type
    assert len(slow) == count + 1


def test_defaults_and_names(made, slow):
    x, y = warm(made)
    made.scale(x, y, 1.5)
    np.testing.assert_array_equal(y, 4 * x + 1.5)
    made.scale(X=x, Y=y)
    np.testing.assert_array_equal(y, 4 * x)
    made.scale(x, Y=y, a=2.0)
    np.testing.assert_array_equal(y, 4 * x + 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x, y[:50]), "extent n is 100 in X, but 50 in Y"),
        (lambda x, y: (x.astype("f8"), y), "X must be f32, but the array is f64"),
        (lambda x, y: (x, None), "argument Y of scale must be an array, not NoneType"),
        (lambda x, y: (x, y, "a"), "a must be one f32 number"),
        (lambda x, y: (x, y, 1e40), "a=1e+40 does not fit in f32"),
        (lambda x, y: (x,), "scale needs Y"),
    ],
)
def test_misuse_has_the_same_words(made, slow, change, message):
    x, y = numbers()
    with pytest.raises(FlyError) as first:
        made.scale(*change(x, y))
    warm(made)
    with pytest.raises(FlyError) as second:
        made.scale(*change(x, y))
    assert message in str(first.value)
    assert str(second.value) == str(first.value)


def test_other_strides(made, slow):
    x, y = warm(made)
    for _ in range(3):
        made.scale(x[::-2], y[::2])
        np.testing.assert_array_equal(y[::2], 4 * x[::-2])
    made.scale(x, y)
    np.testing.assert_array_equal(y, 4 * x)


def test_devices_that_are_closed(made, slow):
    from fly_run.launch import runtime

    x, y = warm(made)
    before = len(slow)
    runtime.close_all()
    y[:] = 0
    for _ in range(3):
        made.scale(x, y)
        np.testing.assert_array_equal(y, 4 * x)
    assert len(slow) == before + 1


def test_read_only_results_are_refused(made):
    x, y = warm(made)
    y.flags.writeable = False
    with pytest.raises(InputError, match="the array is read-only"):
        made.scale(x, y)


def test_faults_name_the_line(made, slow):
    x, y = numbers(64)
    for _ in range(3):
        made.wild(x, y)
    count = len(slow)
    with pytest.raises(Fault, match=r"program\.py:\d+") as fault:
        made.wild(x, y[:32])
    assert len(slow) == count
    assert "Y[fx.thread_idx.x]" in fault.value.render("fly")
    made.wild(x, y)
    np.testing.assert_array_equal(x, y)


def test_torch(made, slow):
    torch = pytest.importorskip("torch")
    x, y = torch.arange(100, dtype=torch.float32), torch.zeros(100)
    for _ in range(4):
        made.scale(x, y)
    assert len(slow) == 2
    assert torch.equal(y, 4 * x)
    # An array of another kind is another launcher's.
    a, b = numbers()
    for _ in range(3):
        made.scale(a, b)
    made.scale(x, y)
    np.testing.assert_array_equal(b, 4 * a)


def test_threads(made, slow):
    warm(made)
    count, errors = len(slow), []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(seed: int) -> None:
        for turn in range(200):
            x, y = numbers(64 + (seed * 37 + turn) % 500)
            x += seed
            made.scale(x, y)
            if not (y == 4 * x).all():
                errors.append((seed, turn))

    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert errors == []
    assert len(slow) == count


def test_a_fork(made, slow):
    x, y = warm(made)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            y[:] = 0
            made.scale(x, y)
            status = int(not (y == 4 * x).all())
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_kept_of_a_call(made):
    x, y = warm(made)
    made.scale(x, y)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(None)
    for _ in range(1000):
        made.scale(x, y)
    after = sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(None)
    assert before[:2] == after[:2]
    assert abs(before[2] - after[2]) < 50


def test_a_compiler_that_fails_is_told_once(made, slow, monkeypatch, capfd, tmp_path):
    from fly_host.native import engine

    def broken(*_):
        raise OSError("no room")

    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(engine, "_machine_code", broken)
    monkeypatch.setattr("fly_host.native.library._loaded", {})
    x, y = numbers()
    for count in range(5):
        made.scale(x, y)
        np.testing.assert_array_equal(y, 4 * x)
        assert len(slow) == count + 1
    told = capfd.readouterr().err
    assert told.count("fly: warning: the host side of scale runs as Python, which is slower: ") == 1
    assert "no room" in told


@pytest.mark.parametrize("host", ["jit", "py", "interp"])
def test_readers_by_name(made, slow, host, tmp_path):
    from fly import CompileOptions, jit

    dump = tmp_path / "dump"
    scale = jit(options=CompileOptions(host=host, dump=dump))(made.scale.function)
    x, y = numbers()
    for _ in range(4):
        y[:] = 0
        scale(x, y)
        np.testing.assert_array_equal(y, 4 * x)
    assert (scale._native is not None) == (host == "jit")
    assert dump.exists() == (host == "jit")


def test_what_a_call_reads_first_is_in_a_slot(made):
    """Not in the dictionary of attributes, where finding it takes a tenth of a call."""
    x, y = numbers()
    for _ in range(3):
        made.scale(x, y)
    assert made.scale._native is not None
    assert "_native" not in vars(made.scale)


@pytest.mark.parametrize("wrong", [{"host": "gpu"}, {"num_threads": 0}, {"opt_level": 9}])
def test_wrong_compile_options(wrong):
    from fly import CompileOptions

    with pytest.raises(FlyError):
        CompileOptions(**wrong)


def test_prepared_calls(made):
    x, y = numbers()
    handle = made.scale.prepare(x, y, 1.0)
    for factor in (1, 2, 3):
        x *= factor
        assert handle() is None
        np.testing.assert_array_equal(y, 4 * x + 1)
    with pytest.raises(InputError, match="extent n is"):
        made.scale.prepare(x, y[:5])


# -- by itself: what of a function's dependencies native code can look at


def new_calls(found: DependencyHash, variables: tuple[str, ...] = ()) -> NativeCalls:
    return NativeCalls(found, None, variables)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (DependencyHash("d", mutables=(({}, "x"),)), "mutable values"),
        (DependencyHash("d", caches=(len,)), "mutable values"),
        (DependencyHash("d", registrations=1), "an abstract class"),
        (
            DependencyHash("d", names=((types.MappingProxyType({"x": 1}), "x", 1),)),
            "a namespace that is no plain dictionary",
        ),
        (
            DependencyHash("d", names=tuple(({"x": 1}, "x", 1) for _ in range(2000))),
            "too many names",
        ),
    ],
)
def test_what_native_code_can_not_look_at(found, reason):
    with pytest.raises(Unavailable, match=rf"^the function reaches {reason}$"):
        new_calls(found)._state()


def test_what_native_code_looks_at(monkeypatch):
    def function(a: int, *, c=3):
        return a

    function.tag = "t"  # type: ignore[attr-defined]
    monkeypatch.setenv("FLY_ONE", "1")
    monkeypatch.delenv("FLY_TWO", raising=False)
    space, cell = {"x": 1}, types.CellType(5)
    parts = ()
    found = DependencyHash(
        "d", names=((space, "x", 1),), cells=((cell, 5),), functions=((function, parts),)
    )
    state = new_calls(found, ("FLY_ONE", "FLY_TWO"))._state()
    assert (list(state.cells), list(state.functions)) == ([(cell, 5)], [function])
    assert state.missing is MISSING
    environment = os.environ._data  # type: ignore[attr-defined]
    assert list(state.names) == [
        (space, "x", 1),
        (environment, b"FLY_ONE", b"1"),
        (environment, b"FLY_TWO", MISSING),
        (function.__kwdefaults__, "c", 3),
        (function.__annotations__, "a", int),
        (function.__dict__, "tag", "t"),
    ]
    assert state.names[0][0] is space
    assert state.names[1][0] is environment


class Clock:
    """A dispatcher that writes down until when calls are its own."""

    def __init__(self):
        self.given = []

    def until(self, nanoseconds: int) -> None:
        self.given.append(nanoseconds)


def test_time_is_renewed_and_ended():
    calls = new_calls(DependencyHash("d"))
    calls.renew(1.0)
    calls.stop()
    calls.dispatcher = clock = Clock()  # type: ignore[assignment]
    before = time.monotonic_ns()
    calls.renew(2.5)
    after = time.monotonic_ns()
    calls.stop()
    renewed, ended = clock.given
    assert before + 2_500_000_000 <= renewed <= after + 2_500_000_000
    assert ended == 0


def test_closed_devices_end_what_launchers_hold():
    calls = new_calls(DependencyHash("d"))
    calls.dispatcher = clock = Clock()  # type: ignore[assignment]
    calls._tried.add("a kind")
    native_calls._forget()
    assert (clock.given, calls.dispatcher, calls._tried) == ([0], None, set())


def test_what_can_not_be_compiled_is_told_once(capfd, monkeypatch):
    monkeypatch.setattr(native_calls, "_told", set())
    compiled = types.SimpleNamespace(program_name="scale")
    for why in ("no room", "no room", "no linker"):
        native_calls._tell_once(compiled, why)  # type: ignore[arg-type]
    told = "fly: warning: the host side of scale runs as Python, which is slower: "
    assert capfd.readouterr() == ("", f"{told}no room\n{told}no linker\n")


def test_more_kinds_of_calls_than_there_is_room_for(made, slow, monkeypatch):
    monkeypatch.setattr(dispatcher, "MOST_LAUNCHERS", 8)
    x, y = numbers(64)
    for k in range(10):
        for _ in range(3):
            made.add(x, k, y)
            np.testing.assert_array_equal(y, x + np.float32(k))
    count = len(slow)
    for k in range(10):
        made.add(x, k, y)
        np.testing.assert_array_equal(y, x + np.float32(k))
    assert slow[count:] == ["add", "add"]
    assert (
        made.add._calls.native.reasons
        == ["the function is called with too many kinds of arguments"] * 2
    )


def test_a_call_is_prepared_without_native_code(made, monkeypatch):
    def unavailable(*_):
        raise Unavailable("not here")

    monkeypatch.setattr("fly.call.compiled.Compiled.native", unavailable)
    x, y = numbers()
    handle = made.scale.prepare(x, y, 1.0)
    for factor in (1, 2):
        x *= factor
        assert handle() is None
        np.testing.assert_array_equal(y, 4 * x + 1)


def test_native_code_of_another_state_is_not_kept(made, slow):
    x, y = warm(made)
    assert made.scale._native is not None
    made.FACTOR = 3
    made.scale(x, y)  # compiled again, so that there is no native code yet
    assert made.scale._native is None


def test_a_python_that_keeps_attributes_of_classes_elsewhere(monkeypatch):
    class Some:
        value = 1

    assert _namespace(Some)["value"] == 1
    for found in ({}, [1]):
        monkeypatch.setattr(
            "fly.call.dispatch.native_calls.gc.get_referents", lambda _, found=found: [found]
        )
        with pytest.raises(Unavailable, match="elsewhere"):
            _namespace(Some)
