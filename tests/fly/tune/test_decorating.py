"""What the decorator refuses, in the words that the user sees."""

from __future__ import annotations

import pytest
from fly_common.errors import FlyError, UsageError

import fly
import fly.expr as fx

from . import planted
from .planted import blocks, scale, sums


def refused(*arguments, function=scale, **named) -> str:
    with pytest.raises(UsageError) as caught:
        fly.autotune(*arguments, **named)(function)
    return str(caught.value)


def test_a_name_that_the_function_does_not_have():
    assert refused([fly.Config(BLOK=64)]) == (
        "Config(BLOK=64): scale has no parameter 'BLOK', and @fly.jit no such option\n"
        "  constants of scale: BLOCK; options: asserts, opt_level, opt_pipeline, opt_plugins,"
        " opt_options, llc_options, insert, replace, disable_passes"
    )


def test_an_argument_that_is_no_constant():
    assert refused([fly.Config(X=64)]) == (
        "Config(X=64): X is an argument of scale, not a compile-time constant\n"
        "  annotate it: X: fx.Constexpr"
    )


def test_options_are_checked_now():
    assert refused([fly.Config(opt_level=7)]) == "opt_level=7: must be 0, 1, 2, 3 or None"
    assert refused([fly.Config(insert="x")]) == "insert='x': must be a list of words"
    own = fly.jit(chain=fly.chain(target="gfx942"))(scale.function)
    assert refused([fly.Config(opt_level=1)], function=own) == (
        "scale has its own chain, so opt_level can't be set\n"
        "  set these options in the chain's stages: fly.chain(opt=…, llc=…)"
    )


@pytest.mark.parametrize("configs", [[], "BLOCK", None, 7])
def test_configs_are_a_list(configs):
    assert refused(configs).startswith(f"configs={configs!r}: must be a list of configurations\n")


def test_a_dictionary_is_no_config():
    assert refused([{"BLOCK": 64}]) == (
        "{'BLOCK': 64} is no configuration of scale\n"
        "  configurations are made by fly.Config(NAME=value, …)"
    )


def test_two_that_are_the_same():
    assert refused(blocks(64, 64)) == "Config(BLOCK=64) is given twice in the configs of scale"


def test_a_config_that_leaves_something_open():
    assert refused([fly.Config(ACROSS=True), fly.Config(opt_level=1)], function=sums) == (
        "Config(opt_level=1) has no value for ACROSS, which other configs of sums set\n"
        "  add one, or give ACROSS a default value in the function"
    )
    assert refused([fly.Config(ACROSS=True)], default=fly.Config(), function=sums) == (
        "default=Config() has no value for ACROSS"
    )
    assert fly.autotune([fly.Config(BLOCK=128), fly.Config(opt_level=1)])(scale).configs


def test_a_value_that_no_other_process_would_recognise():
    assert refused([fly.Config(BLOCK=object())]).startswith("BLOCK='<object object at 0x")


def test_what_is_decorated():
    assert refused(blocks(64), function=scale.function) == (
        "@fly.autotune decorates a @fly.jit function, not a function\n"
        "  write @fly.autotune(…) above @fly.jit"
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            ["m"],
            "key='m' of scale: there is no 'm'\n  names: X, n; functions: abs, bool, int, len,",
        ),
        (["n +"], "key='n +' of scale: is not an expression\n"),
        ([7], "key=7 of scale: is not an expression\n"),
        (["BLOCK"], "key='BLOCK' of scale: there is no 'BLOCK'\n"),
        ("n", "key='n': must be a list of texts\n  as in key=[\"n\"]"),
    ],
)
def test_keys(key, message):
    assert refused(blocks(64), key).startswith(message)


def test_without_parentheses():
    with pytest.raises(
        UsageError, match=r"^configs=JitFunction\(.*must be a list of configurations"
    ):
        fly.autotune(scale)


def test_reset_and_prune():
    assert refused(blocks(64), reset=["Y"]) == (
        "reset=['Y']: scale has no tensor 'Y'\n  its tensors are X"
    )
    assert refused(blocks(64), reset=["BLOCK"]).startswith("reset=['BLOCK']: scale has no tensor")
    assert refused(blocks(64), prune=3) == "prune=3: must be a function (configs, arguments)"
    assert refused(blocks(64), file=3) == "file=3: must be a path"


def test_configs_are_values():
    config = fly.Config(BLOCK=64, opt_level=2)
    assert config == fly.Config(opt_level=2, BLOCK=64)
    assert hash(config) == hash(fly.Config(opt_level=2, BLOCK=64))
    assert config != fly.Config(BLOCK=64)
    assert fly.Config(BLOCK=1) != fly.Config(BLOCK=True)
    assert repr(config) == "Config(BLOCK=64, opt_level=2)"
    with pytest.raises(AttributeError, match="can't be changed"):
        config.values = {}


def test_constants_of_any_kind_are_written_down():
    config = fly.Config(D=fx.Float16, F=planted.blocks, S=(1, "a", None), N=float("nan"))
    assert config.as_json == {
        "D": "f16",
        "F": f"{planted.blocks.__module__}.blocks",
        "S": [1, "a", None],
        "N": "nan",
    }


@pytest.mark.parametrize("value", [lambda: 1, object()])
def test_constants_without_a_name(value):
    assert "has no text that another process would recognise" in refused([fly.Config(BLOCK=value)])


def test_it_is_still_the_function():
    tuned = fly.autotune(blocks(64, 128))(scale)
    assert (tuned.__name__, tuned.__doc__, tuned.name) == ("scale", scale.__doc__, "scale")
    assert tuned.jit is scale
    assert list(tuned.parameters) == ["X"]


def test_calls_that_do_not_fit():
    import numpy as np

    x = np.zeros(64, np.float32)
    tuned = fly.autotune(blocks(64, 128), key=["n"])(scale)
    for call, message in [
        (lambda: tuned(x, BLOCK=3), "BLOCK is set by the configurations of scale\n  to set it"),
        (lambda: tuned(x, 64), "scale takes 1 arguments, got 2"),
        (lambda: tuned(), "scale needs X\n  its parameters are X"),
        (lambda: tuned(7), "argument X of scale must be an array, not int"),
        (lambda: tuned(x, Z=1), "scale has no parameter 'Z'"),
        (lambda: tuned(x.astype("f8")), "X must be f32, but the array is f64\n"),
    ]:
        for _ in range(2):
            with pytest.raises(FlyError) as caught:
                call()
            assert str(caught.value).startswith(message)
