"""The builders of ops that compute."""

import pytest
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_dialect.builders import layout_ops, ops
from fly_dialect.inference.computation import COMPUTATIONS
from fly_dialect.layouts.scanner import parse_any_layout, parse_int_tuple, parse_tile
from fly_dialect.types import IntTupleSpec, TileSpec, layout_spec


@pytest.fixture
def module():
    context = dialect.load(ir.Context())
    with context, ir.Location.unknown():
        made = ir.Module.create()
        with ir.InsertionPoint(made.body):
            yield made


def layout(source):
    return ops.static(layout_spec(parse_any_layout(source)))


def tuple_(source):
    return ops.static(IntTupleSpec(parse_int_tuple(source)))


def test_every_op_that_computes_has_a_builder():
    for name in COMPUTATIONS:
        module = ops if hasattr(ops, name) else layout_ops
        assert callable(getattr(module, name))


def test_builders_infer_types_and_take_attributes_by_name(module):
    block = layout("(2,3):(1,2)")
    results = [
        layout_ops.coalesce(block, None),
        layout_ops.coalesce(block, tuple_("(1,1)")),
        layout_ops.zipped_divide(layout("(8,6):(6,1)"), ops.static(TileSpec(parse_tile("[4|3]")))),
        layout_ops.append(tuple_("(2,3)"), tuple_("1"), n=4),
        layout_ops.take(block, begin=1, end=2),
        layout_ops.select(block, indices=[1, 0]),
        layout_ops.recast_layout(block, new_type_bits=8, old_type_bits=16),
        layout_ops.make_fragment_like(block, dtype="f16"),
        layout_ops.elem_less(tuple_("1"), tuple_("2")),
    ]
    assert [str(dialect.spec_of(result.type)) for result in results] == [
        "!fly.layout<6:1>",
        "!fly.layout<(2,3):(1,2)>",
        "!fly.layout<((4,3),(2,2)):((6,1),(24,3))>",
        "!fly.int_tuple<(2,3,1,1)>",
        "!fly.layout<3:2>",
        "!fly.layout<(3,2):(2,1)>",
        "!fly.layout<(4,3):(1,4)>",
        "!fly.memref<f16, register, (2,3):(1,2)>",
        "i1",
    ]
    dialect.verify(module)
    printed = text.write(module, locations=False)
    assert "fly.append<4> (" in printed
    assert "fly.make_fragment_like(%" in printed
    assert ", f16) :" in printed
    again = text.read(printed, module.context)
    assert text.write(again, locations=False) == printed


def test_a_wrong_operand_is_named(module):
    with pytest.raises(ValueError, match=r"fly\.complement: operand #0 must be a layout or comp"):
        layout_ops.complement(tuple_("4"))
    with pytest.raises(ValueError, match=r"fly\.take: needs the attribute end"):
        layout_ops.take(tuple_("(4,8)"), begin=0)
