"""What `@fly.jit` asks, makes and keeps: with chains and traces that the tests make up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fly_common.command_line.options import KEYWORDS
from fly_common.errors import UsageError
from fly_common.programs import toolchain
from fly_store.store import default_store
from fly_trace.session.decorators import HostFunction

import fly
import fly.expr as fx
from fly.call import known_calls
from fly.call.function import JitFunction
from fly.call.known_calls import KnownCalls, environment_now
from fly.chains.chain import Chain, Prefetch
from fly.chains.stage import Stage
from fly.dependencies.hashing import DependencyHash

A = np.zeros(4, np.float32)
RATE = 2


def traceable(A, k: fx.Constexpr = 1):
    return RATE


def untraceable(A, k: fx.Constexpr = 1):
    return open


def upper(data: bytes) -> bytes:
    return data.upper()


CHAIN = Chain("gfx942", (Stage("upper", upper, "1", ".hsaco"),))


@pytest.fixture
def traced(monkeypatch) -> list[str]:
    """Every trace that was made, by its target; it names what is given."""
    made: list[str] = []

    def trace(self: JitFunction, given: Any, target: str) -> bytes:
        made.append(target)
        return f"module {sorted(given)}".encode()

    monkeypatch.setattr(JitFunction, "_trace", trace)
    return made


@pytest.fixture
def launched(monkeypatch) -> list[Any]:
    """What was launched, in place of launching it."""
    made: list[Any] = []

    def run_viewed(self: Any, given: Any, values: Any, device: Any, *_: Any) -> Any:
        made.append((self, values, device))
        return SimpleNamespace(results=None)

    monkeypatch.setattr("fly.call.compiled.Compiled.run_viewed", run_viewed)
    monkeypatch.setattr("fly.call.known_calls.KnownCalls.speed_up", lambda *_: None)
    return made


def made_of(plain: Any, **options: Any) -> JitFunction:
    return fly.jit(**{"chain": CHAIN, **options})(plain)


# -- what is asked between two calls


class Asked(SimpleNamespace):
    """A chain that counts who asks for its identity."""

    def __init__(self, settled: bool) -> None:
        super().__init__(settled=settled, now=("one",), count=0)

    def identity(self) -> tuple[str, ...]:
        self.count += 1
        return self.now


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(known_calls, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def calls_of(chain: Any, identity: tuple[str, ...] | None = ("one",)) -> KnownCalls:
    dependencies = DependencyHash("digest")
    reader: Any = None
    return KnownCalls(dependencies, environment_now(), chain, reader, 1000.0, identity)


def test_a_settled_chain_is_asked_once_a_second(clock):
    chain = Asked(settled=True)
    calls = calls_of(chain)
    for now, count in ((1000.5, 0), (1000.9, 0), (1001.0, 1), (1001.5, 1), (1002.0, 2)):
        clock.now = now
        assert calls.hold() is True
        assert chain.count == count


def test_another_chain_is_asked_each_time(clock):
    chain = Asked(settled=False)
    calls = calls_of(chain)
    for count in (1, 2, 3):
        assert calls.hold() is True
        assert chain.count == count
    chain.now = ("other",)
    assert calls.hold() is False


def test_nothing_is_asked_of_a_chain_that_made_nothing_yet(clock):
    chain = Asked(settled=False)
    assert calls_of(chain, identity=None).hold() is True
    assert chain.count == 0


def test_what_is_held_is_let_go_with_its_dependencies_and_its_environment(clock, monkeypatch):
    calls = calls_of(Asked(settled=True))
    calls.dependencies = DependencyHash(None)
    assert calls.hold() is False
    calls.dependencies = DependencyHash("digest")
    assert calls.hold() is True
    monkeypatch.setenv("FLY_OPT_LEVEL", "1")
    assert calls.hold() is False


VARIABLES = ["FLY_TARGET", *(row.variable for row in KEYWORDS.values()), *toolchain.VARIABLES]


@pytest.mark.parametrize("name", VARIABLES)
def test_the_environment_is_compared(name: str, clock, monkeypatch):
    calls = calls_of(Asked(settled=True))
    assert calls.hold() is True
    monkeypatch.setenv(name, "another")
    assert calls.hold() is False


def test_so_many_are_kept_for_a_call_and_the_oldest_goes(clock):
    calls = calls_of(Asked(settled=True), identity=None)
    compiled: Any = object()
    for number in range(256):
        calls.keep((number,), compiled, ("one",))
    assert list(calls.made) == [(number,) for number in range(256)]
    calls.keep((256,), compiled, ("one",))
    assert list(calls.made) == [(number,) for number in range(1, 257)]


def test_what_another_chain_made_is_not_kept(clock):
    calls = calls_of(Asked(settled=True), identity=None)
    compiled: Any = object()
    clock.now = 2000.0
    calls.keep((1,), compiled, ("one",))
    assert (calls.identity, calls.looked) == (("one",), 2000.0)
    calls.keep((2,), compiled, ("other",))
    assert list(calls.made) == [(1,)]


# -- what a call makes and keeps


def test_a_call_compiles_once_for_each_key(traced, launched):
    f = made_of(traceable)
    for array in (A, A + 1, A.astype("f8"), A):
        f(array)
    assert traced == ["gfx942", "gfx942"]
    assert [values["A"].dtype for _, values, _ in launched] == ["f4", "f4", "f8", "f4"]
    first, again, other, last = (compiled for compiled, _, _ in launched)
    assert first is again is last is not other


def test_calls_are_read_at_their_signature_once(traced, launched):
    f = made_of(traceable)
    f(A)
    calls = f._calls
    f(A, k=2)
    assert f._calls is calls
    assert calls is not None
    assert len(calls.made) == 2


def test_what_can_not_be_followed_is_traced_at_each_call(traced, launched):
    f = made_of(untraceable)
    for _ in range(3):
        f(A)
    assert traced == ["gfx942"] * 3
    assert f._calls is None
    first, again, last = (compiled for compiled, _, _ in launched)
    assert first is again is last, "the same module makes the same code"


def test_a_constant_that_has_no_digest_is_traced_at_each_call(traced, launched):
    f = made_of(traceable)
    for _ in range(3):
        f(A, k=open)
    assert traced == ["gfx942"] * 3
    calls = f._calls
    assert calls is not None
    assert not calls.made, "its key is no key"


def test_a_call_that_the_key_does_not_cover_is_kept_under_none(traced, launched):
    f = made_of(traceable)
    for _ in range(2):
        f(A, k=[1, 2])
    assert f._calls is not None
    assert not f._calls.made
    assert traced == ["gfx942"], "by its types it is found all the same"


def test_what_changes_while_it_is_compiled_is_not_kept(traced, launched, monkeypatch):
    f = made_of(traceable)
    trace = JitFunction._trace

    def changing(self: JitFunction, given: Any, target: str) -> bytes:
        monkeypatch.setitem(globals(), "RATE", RATE + 1)
        return trace(self, given, target)

    monkeypatch.setattr(JitFunction, "_trace", changing)
    f(A)
    assert [data for _, data in default_store().entries()] == [b"MODULE ['A']"]
    monkeypatch.setattr(JitFunction, "_trace", trace)
    f(A)
    assert len(traced) == 2


def test_a_change_before_the_trace_makes_other_dependencies(traced, launched, monkeypatch):
    """The code then is of the function as it is, and not what the call began with."""
    f = made_of(traceable)
    compile_ = JitFunction._compiled

    def changing(self: JitFunction, given: Any, chosen: Chain) -> Any:
        monkeypatch.setitem(globals(), "RATE", RATE + 1)
        return compile_(self, given, chosen)

    monkeypatch.setattr(JitFunction, "_compiled", changing)
    f(A)
    assert f._calls is not None
    assert not f._calls.made


def test_so_many_are_kept_of_a_function_and_the_oldest_goes(traced):
    f = made_of(traceable)
    kept: Any = object()
    f._kept.update(dict.fromkeys(range(255), kept))
    f.compile(A)
    assert len(f._kept) == 256
    assert 0 in f._kept
    f.compile(A.astype("f8"))
    assert len(f._kept) == 256
    assert 0 not in f._kept
    assert 1 in f._kept


def test_a_trace_is_kept_in_the_store_by_its_name(traced, monkeypatch, capsys):
    monkeypatch.setenv("FLY_CACHE", "explain")
    made_of(traceable).compile(A)
    made_of(traceable).compile(A)
    assert traced == ["gfx942"]
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[2:4] for line in lines] == [
        ["trace:", "miss"],
        ["upper:", "miss"],
        ["trace:", "hit"],
        ["upper:", "hit"],
    ]
    names = [path.rpartition("/")[2] for path in default_store().files("objects")]
    assert sorted(name.partition(".")[2] for name in names) == ["hsaco", "mlir"]


def test_programs_are_started_before_the_trace_and_only_for_one(traced, monkeypatch):
    started = []
    monkeypatch.setattr(Prefetch, "start", lambda self, first=0: started.append(len(traced)))
    made_of(traceable).compile(A)
    assert started[0] == 0
    started.clear()
    made_of(traceable).compile(A)
    assert not started


def test_one_trace_is_for_all_targets(traced):
    for target in ("gfx942", "gfx950", "gfx942"):
        made_of(traceable, chain=Chain(target, CHAIN.stages)).compile(A)
    assert traced == ["gfx942"]


def test_a_trace_that_names_its_target_is_for_that_one(monkeypatch):
    traced = []

    def trace(self: JitFunction, given: Any, target: str) -> bytes:
        traced.append(target)
        return f'module attributes {{a = 1, fly.target = "{target}"}}'.encode()

    monkeypatch.setattr(JitFunction, "_trace", trace)
    for target in ("gfx942", "gfx950", "gfx942", "gfx950"):
        compiled = made_of(traceable, chain=Chain(target, CHAIN.stages)).compile(A)
        assert f'"{target}"' in str(compiled.ir("mlir"))
    assert traced == ["gfx942", "gfx950"]


# -- `compile`


def given_to(f: JitFunction, monkeypatch, *arguments: Any, **named: Any) -> dict[str, str]:
    found: list[Any] = []

    def compiled(self: JitFunction, given: Any, chosen: Chain) -> Any:
        found.append(given)
        return None, ()

    with monkeypatch.context() as patch:
        patch.setattr(JitFunction, "_compiled", compiled)
        f.compile(*arguments, **named)
    return {name: str(kind) for name, kind in found[0].items()}


def test_types_come_from_arguments_or_from_a_signature(monkeypatch):
    f = made_of(lambda A, B: None)
    assert given_to(f, monkeypatch, A, 3) == {"A": "f32[?]", "B": "i32"}
    assert given_to(f, monkeypatch, B=3, A=A) == {"A": "f32[?]", "B": "i32"}
    assert given_to(f, monkeypatch, A, B=3) == {"A": "f32[?]", "B": "i32"}
    assert given_to(f, monkeypatch) == {}
    assert given_to(f, monkeypatch, signature="A: f32[?], B: i64") == {"A": "f32[?]", "B": "i64"}
    for arguments, named in (((A,), {}), ((), {"A": A}), ((A,), {"B": 3})):
        with pytest.raises(UsageError, match="takes arguments or a signature, not both"):
            f.compile(*arguments, signature="A: f32[?], B: i64", **named)


def test_the_target_is_the_calls_the_decorators_the_environments(monkeypatch):
    plain, own = fly.jit(traceable), fly.jit(target="gfx1100")(traceable)
    assert [f._chain(None).target for f in (plain, own)] == ["gfx942", "gfx1100"]
    assert [f._chain("gfx90a").target for f in (plain, own)] == ["gfx90a", "gfx90a"]
    monkeypatch.setenv("FLY_TARGET", "gfx1201")
    assert [f._chain(None).target for f in (plain, own)] == ["gfx1201", "gfx1100"]


def test_a_chain_of_ones_own_is_for_its_target():
    f = made_of(traceable)
    assert f._chain(None) is f._chain("gfx942") is CHAIN
    with pytest.raises(UsageError) as refused:
        f._chain("gfx950")
    assert refused.value.message == (
        "traceable has its own chain, for gfx942, and can't be compiled for gfx950"
    )
    assert refused.value.hint == "give it chain=fly.chain(target='gfx950')"


def test_what_it_decorates_is_a_host_function():
    assert isinstance(made_of(traceable), HostFunction)
    with pytest.raises(UsageError, match=r"@fly\.jit decorates a function, not a int"):
        made_of(3)
