"""A dialect from outside: its text, its types, its rules, and its values in the language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_plugin import activated
from fly_plugin.activation import Request, activate
from fly_trace.session.load import load_file

MODULE = """\
func.func @f(%a: f32, %b: f32, %c: i1) -> f32 {
  %0 = pairs.make(%a, %b) : (f32, f32) -> !pairs.pair<f32>
  %1 = scf.if %c -> (!pairs.pair<f32>) {
    %3 = pairs.swap(%0) : (!pairs.pair<f32>) -> !pairs.pair<f32>
    scf.yield %3 : !pairs.pair<f32>
  } else {
    scf.yield %0 : !pairs.pair<f32>
  }
  %2 = pairs.take(%1) {at = 1 : i32} : (!pairs.pair<f32>) -> f32
  return %2 : f32
}
"""


@pytest.fixture
def pairs():
    import plugin_pairs

    with activated(activate([Request(plugin_pairs.PLUGIN, "test")])):
        yield


@pytest.fixture
def kernels(hello):
    return load_file(str(Path(__file__).with_name("pair_kernels.py")))


def read(module: str) -> ir.Module:
    context = dialect.new_context()
    with context, ir.Location.unknown():
        made = text.read(module, context, "m.mlir")
        dialect.verify(made, module, "m.mlir")
        return made


def test_text_is_read_and_printed(pairs):
    spaced = MODULE.replace("pair<f32>", "pair< f32 >")
    printed = text.write(read(spaced), locations=False)
    assert "= pairs.make(%arg0, %arg1) : (f32, f32) -> !pairs.pair<f32>" in printed
    assert text.write(read(printed), locations=False) == printed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(%a, %b) : (f32, f32)", "(%a, %c) : (f32, i1)", "takes two of one type, not f32 and i1"),
        ("pairs.swap(%0)", "pairs.swp(%0)", "unknown op; did you mean pairs.swap?"),
        ("{at = 1 : i32}", "{at = 2 : i32}", "takes at = 0 or 1"),
        ("pair<f32>", "pair<i8>", "a pair of i8 is none of floats"),
        ("!pairs.pair<f32>", "!pairs.pare<f32>", "the dialect pairs has no type pare"),
    ],
)
def test_what_is_wrong_is_refused_at_its_line(pairs, old, new, said):
    with pytest.raises(InputError) as caught:
        read(MODULE.replace(old, new))
    assert said in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.file == "m.mlir"
    assert caught.value.place.line is not None


def test_without_the_plugin_there_is_no_such_dialect():
    with pytest.raises(InputError):
        read(MODULE)
    generic = 'func.func @f(%a: f32) { %0 = "pairs.twice"(%a) : (f32) -> f32 return }'
    with pytest.raises(InputError, match="no dialect defines this op"):
        read(generic)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90a"])
def test_values_in_branches_loops_and_helpers(kernels, target):
    a = np.arange(200, dtype=np.float32)
    b = np.zeros_like(a)
    compiled = kernels.pairs.compile(a, b, target=target)
    assert b"pairs." in compiled.ir("mlir").encode()
    compiled(a, b)
    first = np.where(np.arange(200) % 3 == 0, a + 100, a)
    second = np.where(np.arange(200) % 3 == 0, a + 200, a * 2)
    odd = np.arange(200) % 4 % 2 == 1
    np.testing.assert_array_equal(b, np.where(odd, second - first, first - second))


def test_vectors_in_layouts(kernels):
    a = np.arange(256, dtype=np.float32)
    b = np.zeros_like(a)
    kernels.tiles(a, b)
    np.testing.assert_array_equal(b, 2 * a)
    assert "hello.scale(" in (found := kernels.tiles.compile(a, b).ir("mlir"))
    assert "(vector<4xf32>) -> vector<4xf32>" in found


def test_wrong_operands_are_refused_at_the_users_line(kernels):
    with pytest.raises(InputError) as caught:
        kernels.wrong(np.zeros(4, np.float32))
    error = caught.value
    assert error.message == "pairs.make: takes two of one type, not f32 and i32"
    assert error.place is not None
    assert error.place.file.endswith("pair_kernels.py")
    assert (error.place.text or "").strip().startswith("B[0] = fx.pairs.make(B[0], n)")


def test_the_language_has_a_namespace_only_with_its_plugin(pairs):
    import fly.expr as fx

    assert fx.pairs.make
    with activated(()), pytest.raises(AttributeError, match="fx has no 'pairs'"):
        fx.pairs  # noqa: B018
