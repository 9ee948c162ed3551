"""Instructions from a plugin: in kernels, in text between processes, and their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_dialect.atoms import MmaAtomSpec
from fly_dialect.type_text import parse_type
from fly_plugin import activated, activation
from fly_plugin.manifest import Plugin, check
from fly_trace.session.load import load_file
from plugin_atoms import PLUGIN

KERNELS = Path(__file__).with_name("atom_kernels.py")
TESTS = KERNELS.parents[1]


def active(*plugins: Plugin):
    return activated(activation.activate([activation.Request(one, "test") for one in plugins]))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90a"])
def test_a_copy_and_a_product_of_a_plugin(target):
    function = load_file(str(KERNELS)).products
    values = np.linspace(-8, 8, 64, dtype=np.float32)
    a, b = (~values.view(np.int32)).view(np.float32), values[::-1].copy()
    c = np.zeros(64, np.float32)
    made = function.compile(a, b, c, target=target)
    assert "!fly.mma_atom<!twice.fma<f32>>" in made.ir("mlir")
    made.run({"A": a, "B": b, "C": c})
    np.testing.assert_array_equal(c, 2 * values * b + 1)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_tiled_copies_and_products_of_a_plugins_atoms(target):
    function = load_file(str(KERNELS)).tiles
    random = np.random.default_rng(5)
    values, b = random.integers(-4, 5, (2, 8, 4)).astype(np.float32)
    a = (~values.view(np.int32)).view(np.float32)
    c = np.zeros((8, 8), np.float32)
    function.compile(a, b, c, target=target).run({"A": a, "B": b, "C": c})
    np.testing.assert_array_equal(c, 2 * values @ b.T)


def test_a_pipe_of_processes(site):
    """The types are text between the processes; the emitters are imported by fly-opt-py only."""
    words = ("--plugin=plugin_atoms:PLUGIN",)
    env = {"PYTHONPATH": str(TESTS)}
    module = site.ok("fly-trace", *words, f"{KERNELS}:products", **env)
    ll = site.ok("fly-opt-py", *words, "--target", "gfx942", input=module, **env)
    assert b"fmul float" in ll
    assert b"xor i32" in ll
    _, said, _ = site.error("fly-opt-py", "--target", "gfx942", input=module, **env)
    assert said == "<stdin>: the module was made with the plugin twice@1, which is not active"
    # Printed again without the plugin, it is not understood.
    _, said, _ = site.error("fly-opt-py", "--fly-canonicalize", input=module, **env)
    assert "twice" in said


def test_a_wrong_form_is_refused_at_its_line():
    function = load_file(str(KERNELS)).wrong
    with pytest.raises(InputError, match=r"there is no twice\.fma of f16") as error:
        function.compile(np.zeros(64, np.float32))
    assert error.value.place is not None
    assert error.value.place.text.strip() == "fx.make_mma_atom(fx.twice.Fma(fx.Float16))"


def test_types_are_known_while_the_plugin_is_active():
    with active(PLUGIN):
        spec = parse_type("!fly.mma_atom<!twice.fma<f64>>")
        assert isinstance(spec, MmaAtomSpec)
        assert str(spec) == "!fly.mma_atom<!twice.fma<f64>>"
        with pytest.raises(ValueError, match=r"there is no twice\.fma of i8"):
            parse_type("!fly.mma_atom<!twice.fma<i8>>")
    with pytest.raises(ValueError, match=r"needs a matrix instruction, but !twice\.fma<i32>"):
        parse_type("!fly.mma_atom<!twice.fma<i32>>")


def test_a_reference_to_something_else():
    table = {"odd.fma": "plugin_atoms.instructions:Fma"}
    plugin = Plugin(id="odd", atoms=table, emitters=dict.fromkeys(table, "plugin_atoms.emission"))
    with active(plugin), pytest.raises(MissingError, match=r"instruction with NAME odd\.fma"):
        parse_type("!fly.mma_atom<!odd.fma<f32>>")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"atoms": {"fly.mma": "m:X"}}, "can't define the atom 'fly.mma': the dialect exists"),
        ({"atoms": {"arith.x": "m:X"}}, "can't define the atom 'arith.x': the dialect exists"),
        ({"atoms": {"mma": "m:X"}}, "can't define the atom 'mma': a name is dialect.instruction"),
        ({"atoms": {"a.mma": "m:X"}}, "its atom a.mma has no emitter"),
        ({"emitters": {"a.mma": "m"}}, "its emitter 'a.mma' is of no atom that it defines"),
        (
            {"atoms": {"a.mma": "m:X"}, "emitters": {"a.mma": "m:x"}},
            "its emitter a.mma refers to 'm:x', not to a module",
        ),
    ],
)
def test_records_that_are_not_well_formed(fields, said):
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        check(Plugin(id="a", **fields))
