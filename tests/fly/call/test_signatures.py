"""What arrays and the words of a stage say, at the edges: in the module, and in what is refused."""

import numpy as np
import pytest
from fly_common.errors import UsageError

import fly
import fly.expr as fx

as_strided = np.lib.stride_tricks.as_strided
F4 = np.zeros(64, np.float32)


@fly.kernel
def nothing_kernel(X: fx.Tensor):
    pass


@fly.jit
def nothing(X: fx.Tensor):
    nothing_kernel(X).launch(grid=1, block=1)


@pytest.mark.parametrize(
    ("array", "layout"),
    [
        # Of one column nobody knows how far the next would be.
        (F4.reshape(32, 2)[:, :1], "(?,?):(?,?)"),
        # Of several strides of one element the last is known.
        (as_strided(F4, (3, 3, 3), (4, 4, 4)), "(?,?,?):(?,?,1)"),
        (as_strided(F4, (3, 3), (4, 4)), "(?,?):(?,1)"),
        (F4.reshape(8, 8).T, "(?,?):(1,?)"),
        (F4.reshape(8, 8)[:, ::2], "(?,?):(?,?)"),
    ],
)
def test_one_stride_of_one_is_known(array, layout):
    module = str(nothing.compile(array).ir("mlir"))
    assert f"{layout}>" in module.replace("{i64}", "").replace(" ", "")


def test_a_stage_is_named_by_its_program_or_by_its_maker():
    assert fly.Stage.command(["/usr/bin/tr", "a", "b"], suffix=".txt").name == "tr"
    assert fly.Stage.command(["tr", "a", "b"], suffix=".txt", name="exchange").name == "exchange"


@pytest.mark.parametrize("words", [[], ["cat", 3], [None]])
def test_the_words_of_a_stage_are_text(words):
    with pytest.raises(UsageError, match="a list of at least one word"):
        fly.Stage.command(words, suffix=".txt")


def test_a_command_that_wants_a_file_reads_it():
    """`{input}` alone, `{output}` alone, and both."""
    reads = fly.Stage.command(["cat", "{input}"], suffix=".txt")
    writes = fly.Stage.command(["tee", "{output}"], suffix=".txt")
    both = fly.Stage.command(["cp", "{input}", "{output}"], suffix=".txt")
    for stage in (reads, writes, both):
        assert fly.run(fly.Chain("gfx942", (stage,)), b"text") == b"text"


@pytest.mark.parametrize("text", ["none", "NONE"])
def test_no_optimisation_by_the_environment(text, monkeypatch):
    monkeypatch.setenv("FLY_OPT_LEVEL", text)
    bare = nothing.compile(F4)
    monkeypatch.setenv("FLY_OPT_LEVEL", "3")
    with pytest.raises(UsageError, match=r"the chain does not produce 'opt\.ll'"):
        bare.ir("opt.ll")


def test_what_a_compiled_function_can_show():
    made = nothing.compile(F4)
    with pytest.raises(UsageError) as caught:
        made.ir("wasm")
    assert caught.value.hint == "it produces mlir, ll, opt.ll, o, hsaco, asm"
