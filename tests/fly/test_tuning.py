"""What @fly.jit does differently in LLVM: by the decorator, by variables, and in the store."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError

import fly
import fly.expr as fx
from fly import tuning
from fly.tuning import UNSAID, Tuning

X = np.arange(1000, dtype=np.float32)


@fly.kernel
def scale_kernel(X: fx.Tensor, n: fx.Int64):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        X[i] = X[i] * 2.0


def scale(X: fx.Tensor[fx.Float32, 1000]):
    n = X.shape[0]
    scale_kernel(X, n).launch(grid=fx.ceildiv(n, 256), block=256)


def made(**options):
    return fly.jit(**options)(scale).compile()


def assembly(**options) -> str:
    return made(**options).ir("asm")


def result(function) -> np.ndarray:
    x = X.copy()
    function(x)
    return x


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


SED = (
    "import sys; text = sys.stdin.read();"
    " sys.stdout.write(text.replace('S_ENDPGM', 'S_NOP {}\\n    S_ENDPGM'))"
)


@pytest.mark.usefixtures("shared_handlers")
def test_an_insertion_by_the_decorator():
    function = fly.jit(insert=["pre-emit=nop-sled --count 3 --cycles 5"])(scale)
    np.testing.assert_array_equal(result(function), 2 * X)
    assert function.compile().ir("asm").count("s_nop 4") == 3
    assert "s_nop 4" not in assembly()


def test_everything_reaches_llvm():
    plain = made().ir("opt.ll")
    assert made(opt_pipeline="default<O3>").ir("opt.ll") == plain
    assert made(opt_pipeline="instcombine").ir("opt.ll") != plain
    assert made(opt_level=0).ir("opt.ll") != plain
    assert made(opt_options=["-disable-loop-unrolling"]).ir("opt.ll") == plain
    strong = assembly(llc_options=["-amdgpu-waitcnt-forcezero=1"])
    assert strong.count("s_waitcnt") > 2 * assembly().count("s_waitcnt")
    assert assembly(disable_passes=["post-RA-hazard-rec"]) is not None
    with pytest.raises(InputError, match=r"unknown pass name 'no-such-pass'"):
        made(opt_pipeline="no-such-pass")
    with pytest.raises(UsageError, match="no machine pass gready"):
        made(insert=["before:gready=cat"])


@pytest.mark.parametrize("name", list(tuning.VARIABLES))
def test_the_environment_says_it_where_the_decorator_does_not(name, monkeypatch):
    samples = {
        "opt_level": ("1", 1, 2),
        "opt_pipeline": ("instcombine,dce", "instcombine,dce", "dce"),
        "opt_plugins": (f"/a.so{os.pathsep}/b.so", ("/a.so", "/b.so"), ("/c.so",)),
        "opt_options": ("-a -b='c d'", ("-a", "-b=c d"), ("-e",)),
        "llc_options": ("-a -b='c d'", ("-a", "-b=c d"), ("-e",)),
        "insert": ("pre-ra=x y; post-ra=z", ("pre-ra=x y", "post-ra=z"), ("pre-ra=w",)),
        "replace": ("greedy=x\npostmisched=y", ("greedy=x", "postmisched=y"), ("greedy=w",)),
        "disable_passes": ("greedy; postmisched", ("greedy", "postmisched"), ("machine-cse",)),
    }
    text, value, other = samples[name]
    variable = tuning.VARIABLES[name][0]
    monkeypatch.setenv(variable, text)
    assert getattr(tuning.read({}), name) == value
    assert getattr(tuning.read({name: UNSAID}), name) == value
    assert getattr(tuning.read({name: other}), name) == other
    monkeypatch.setenv(variable, "")
    assert tuning.read({}) == Tuning()


@pytest.mark.usefixtures("shared_handlers")
def test_the_environment_is_asked_at_each_call(monkeypatch):
    function = fly.jit(scale)
    before = function.compile().hsaco
    monkeypatch.setenv("FLY_LLC_INSERT", "pre-emit=nop-sled")
    np.testing.assert_array_equal(result(function), 2 * X)
    assert function.compile().hsaco != before
    monkeypatch.delenv("FLY_LLC_INSERT")
    assert function.compile().hsaco == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opt_level": 7}, "opt_level=7: must be 0, 1, 2, 3 or None"),
        ({"insert": "pre-ra=cat"}, "insert='pre-ra=cat': must be a list of words"),
        ({"llc_options": ["foo"]}, "llc_options: 'foo' is no option"),
        ({"insert": ["pre-ra=cat"], "chain": fly.chain()}, "chain= and insert contradict"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(UsageError, match=message):
        fly.jit(**options)


def test_plugins_need_opt(monkeypatch):
    with pytest.raises(UsageError, match="opt_level=None leaves opt out"):
        made(opt_level=None, opt_plugins=["x.so"])
    monkeypatch.setenv("FLY_OPT_LEVEL", "7")
    with pytest.raises(UsageError, match="FLY_OPT_LEVEL=7: must be"):
        made()


def ran(capfd) -> list[str]:
    """The stages that had to run, by FLY_CACHE=explain, and why."""
    lines = capfd.readouterr().err.splitlines()
    return [line.partition("cache: ")[2] for line in lines if ": miss " in line]


def stages(lines: list[str]) -> list[str]:
    return [line.partition(":")[0] for line in lines if not line.startswith("digest")]


def test_exactly_what_has_to_run_runs(tmp_path, monkeypatch, capfd):
    """Editing a filter by one byte reruns code generation and what is behind it, nothing else;
    touching it reruns nothing."""
    monkeypatch.setenv("FLY_CACHE", "explain")
    filter = script(tmp_path / "filter.py", SED.format(1))
    insert = [f"pre-emit={filter}"]
    made(insert=insert)
    assert stages(ran(capfd)) == ["trace", "opt-py", "opt", "llc", "link"]
    made(insert=insert)
    assert ran(capfd) == []
    later = time.time() + 100
    os.utime(filter, (later, later))
    made(insert=insert)
    assert stages(ran(capfd)) == []
    script(filter, SED.format(2))
    made(insert=insert)
    again = ran(capfd)
    assert stages(again) == ["llc", "link"]
    assert "changed: " in again[0]
    assert "its input is new" in again[1]
    # A filter that changes, and makes the same: the stages behind it are found.
    script(filter, "# another\n" + SED.format(2))
    made(insert=insert)
    assert stages(ran(capfd)) == ["llc"]
    made(opt_level=1, insert=insert)
    assert stages(ran(capfd))[0] == "opt"


def test_the_order_of_what_is_given_matters_and_of_variables_does_not(monkeypatch):
    first, second = ["pre-emit=nop-sled --count 1", "pre-emit=nop-sled --cycles 2"], None
    second = first[::-1]
    assert made(insert=first).hsaco != made(insert=second).hsaco
    digests = set()
    for names in (("FLY_LLC_INSERT", "FLY_OPT_LEVEL"), ("FLY_OPT_LEVEL", "FLY_LLC_INSERT")):
        with pytest.MonkeyPatch.context() as patch:
            for name in names:
                patch.setenv(name, "pre-emit=nop-sled" if name == "FLY_LLC_INSERT" else "2")
            digests.add(tuple(fly.jit(scale)._chain(None).identity()))
    assert len(digests) == 1


def test_a_bad_filter_leaves_nothing_in_the_store(tmp_path, capfd, monkeypatch):
    filter = script(tmp_path / "bad.py", "import sys; sys.exit('no')")
    for _ in range(2):
        with pytest.raises(InputError, match=r"the filter .*bad\.py .*failed \(exit status 1\)"):
            made(insert=[f"pre-emit={filter}"])
    monkeypatch.setenv("FLY_CACHE", "explain")
    script(filter, "import sys; sys.stdout.write(sys.stdin.read())")
    made(insert=[f"pre-emit={filter}"])
    assert stages(ran(capfd)) == ["llc", "link"]
