"""Calls by native code: they take over from the second call of a kind on, and give way at once when
anything changes that the code depends on."""

import gc
import os
import sys
import threading
import time
import types

import numpy as np
import pytest
from fly_common.errors import Fault, FlyError, InputError
from fly_host.native.unavailable import Unavailable

from fly.call.dispatch import dispatcher, native_calls
from fly.call.dispatch.native_calls import _namespace
from fly.dependencies.hashing import DependencyHash

from .native_programs import new_calls, numbers, warm


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
