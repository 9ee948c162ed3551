"""What the table of slots promises is so, for every example on both backends."""

from __future__ import annotations

import sys

import pytest
from fly_common.errors import InputError
from fly_opt.pipeline.options import Options
from fly_opt.pipeline.stage import compile
from fly_plugin import activated, slots
from fly_plugin.activation import Request, activate
from fly_plugin.manifest import Plugin
from fly_trace.session.load import find_entry, load_file
from plugins import EXAMPLES

sys.path.insert(0, str(EXAMPLES.parent / "tests" / "examples"))
from example_cases import WIDELY

IN_OPT = [slot for slot in slots.SLOTS if slot.is_mlir and slot.stage == slots.OPT]
# A plugin whose pipeline at each slot checks what holds there.
CHECKS = "\n".join(
    f"{slot.name.replace('.', '_').replace('-', '_')} = 'fly-verify-slot{{slot={slot.name}}}'"
    for slot in IN_OPT
)


@pytest.fixture
def everywhere(here):
    here.install("checks", "", f=CHECKS)
    names = {slot.name: slot.name.replace(".", "_").replace("-", "_") for slot in IN_OPT}
    plugin = Plugin(
        id="checks", slots={slot: f"pkg_checks.f:{name}" for slot, name in names.items()}
    )
    with activated(activate([Request(plugin, "test")])):
        yield


TARGETS = [
    (case, target)
    for case in WIDELY
    for target in (case.targets[0], *(("sm_90a",) if not case.traits else ()))
]


@pytest.mark.parametrize(
    ("case", "target"), TARGETS, ids=[f"{case.name}-{target}" for case, target in TARGETS]
)
def test_examples(everywhere, case, target):
    path = str(EXAMPLES / case.file)
    with activated(()):
        function = find_entry(load_file(path), path, case.entry)
        module = function.compile(target=target).ir("mlir").encode()
        plain = compile(module, Options(target=target))
    assert compile(module, Options(target=target)) == plain


def test_each_check_can_fail(everywhere):
    """What was traced is not lowered; and no trace has tensors of MLIR's."""
    path = str(EXAMPLES / "vector_add.py")
    with activated(()):
        traced = find_entry(load_file(path), path, None).compile().ir("mlir").encode()
    empty = b"%t = tensor.empty() : tensor<4xf32>\n gpu.return"
    strange = traced.replace(b"gpu.return", empty)
    for slot in IN_OPT:
        options = Options(passes=f"fly-verify-slot{{slot={slot.name}}}")
        with pytest.raises(InputError, match=f"is not allowed at the slot {slot.name}"):
            compile(strange if slot.allows == slots.TRACED else traced, options)


def test_slots_are_in_the_order_of_the_chain():
    names = [slot.name for slot in slots.every()]
    assert len(names) == len(set(names))
    stages = [slot.stage for slot in slots.every()]
    order = (slots.TRACE, slots.OPT, slots.LLC, slots.LINK)
    assert stages == sorted(stages, key=order.index)
    for name in names:
        found = slots.find(name)
        assert found is not None
        assert found.name == name


def test_every_backend_has_every_slot():
    from fly_opt.lowering import interface
    from fly_target import registry

    for target in ("gfx942", "sm_90a"):
        row = registry.find(target)
        fragments = interface.of_target(row).pipelines[row.backend](row, False)
        there = [one.removeprefix("slot:") for one in fragments if one.startswith("slot:")]
        assert there == [slot.name for slot in IN_OPT]
