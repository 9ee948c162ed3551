"""Integer constants that MLIR's attributes can't hold."""

import pytest
from fly_dialect import dialect as fly
from fly_dialect.bindings import ir
from fly_opt.ir.builder import Builder


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 10**100])
def test_constants_beyond_64_bits_are_refused(value: int):
    with fly.new_context() as context, ir.Location.unknown(context):
        module = ir.Module.create()
        builder = Builder()
        builder.loc, builder.ip = ir.Location.unknown(), ir.InsertionPoint(module.body)
        with pytest.raises(ValueError, match="does not fit in 64 bits"):
            builder.constant(value, 64)
