"""What @fly.jit does differently in LLVM: by the decorator, by variables, and in the store."""

from __future__ import annotations

import os

import numpy as np
import pytest
from fly_common.command_line.options import KEYWORDS
from fly_common.errors import InputError, UsageError

import fly
from fly.chains import tuning
from fly.chains.tuning import Tuning

from .scaling import made, scale

X = np.arange(1000, dtype=np.float32)


def assembly(**options) -> str:
    return made(**options).ir("asm")


def result(function) -> np.ndarray:
    x = X.copy()
    function(x)
    return x


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


@pytest.mark.parametrize("name", list(KEYWORDS))
def test_the_environment_says_it_where_the_decorator_does_not(name, monkeypatch):
    samples = {
        "asserts": ("0", False, True),
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
    variable = KEYWORDS[name].variable
    monkeypatch.setenv(variable, text)
    assert getattr(tuning.read({}), name) == value
    assert getattr(tuning.read({}), name) == value
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
        ({"opt_level": True}, "opt_level=True: must be 0, 1, 2, 3 or None"),
        ({"opt_options": 5}, "opt_options=5: must be a list of words"),
        ({"opt_options": b"-x"}, "opt_options=b'-x': must be a list of words"),
        ({"insert": "pre-ra=cat"}, "insert='pre-ra=cat': must be a list of words"),
        ({"llc_options": ["foo"]}, "llc_options: 'foo' is not an option"),
        ({"insert": ["pre-ra=cat"], "chain": fly.chain()}, "chain= and insert contradict"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(UsageError, match=message):
        fly.jit(**options)


def test_plugins_need_opt(monkeypatch):
    with pytest.raises(UsageError, match="opt_level=None omits opt"):
        made(opt_level=None, opt_plugins=["x.so"])
    with pytest.raises(UsageError, match="opt_level=None omits opt"):
        made(opt_level=None, opt_options=["-time-passes"])
    monkeypatch.setenv("FLY_OPT_LEVEL", "7")
    with pytest.raises(UsageError, match="FLY_OPT_LEVEL=7: must be"):
        made()


def test_an_option_that_there_is_not():
    with pytest.raises(UsageError, match="has no option 'opt_levle'") as refused:
        fly.jit(opt_levle=2)
    assert "opt_level, opt_pipeline" in (refused.value.hint or "")
