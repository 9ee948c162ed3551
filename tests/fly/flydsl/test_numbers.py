"""FlyDSL's numbers and vectors outside of kernels, and in functions that are traced only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fly_common.errors import InputError

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl._mlir import ir
from fly.flydsl._mlir.dialects import arith, func
from fly.flydsl.compiler.ast_rewriter import ReplaceIfWithDispatch
from fly.flydsl.expr.meta import tracing_context, tracing_option


@pytest.fixture(autouse=True)
def traced_only(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    monkeypatch.setenv("COMPILE_ONLY", "1")


def traced(body: Any, *arguments: Any) -> str:
    function = flyc.jit(body)
    function(*arguments)
    return function._last_compiled[1].source_ir


def test_a_number_is_of_its_type():
    assert type(fx.Int32(5)) is fx.Int32
    assert type(fx.Int32(5) + fx.Float32(1)) is fx.Float32
    assert fx.Int32(5).value == 5
    assert fx.Int32(5).is_static() is True
    assert (fx.Uint32(0xFFFFFFFF) + 2).number == 1
    assert isinstance(fx.Float32(1), fx.Numeric)
    assert issubclass(fx.Int32, fx.Numeric)
    assert fx.Numeric.from_python_value(1 << 40).dtype is fx.Int64
    assert fx.as_numeric(fx.Int32(1)).dtype is fx.Int32


def test_a_host_function_that_is_traced_only():
    seen = []

    def body(n: fx.Int32, wide: fx.Int128):
        seen.append(type(n + wide))
        with pytest.raises(TypeError, match="takes an integer"):
            ~fx.Vector.filled(4, 1.0, fx.Float32)
        try:
            bool(n)
        except RuntimeError:
            seen.append("caught")
        assert not n.is_static()
        fx.math.exp(fx.Float32(n))

    text = traced(body, 3, 4)
    assert seen == [fx.Int128, "caught"]
    assert "func.func @body(%arg0: i32" in text
    assert "math.exp" in text


def test_errors_are_those_of_python_too():
    def body(n: fx.Int32):
        int(n)

    with pytest.raises(InputError, match="a dynamic i32 is not a Python int") as caught:
        traced(body, 1)
    assert isinstance(caught.value, (TypeError, ValueError, RuntimeError))


def test_an_exception_of_the_program_comes_through():
    def body(n: fx.Int32):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="KeyError: 'mine'") as caught:
        traced(body, 1)
    assert isinstance(caught.value, InputError)
    assert caught.value.place is not None


def test_conversions():
    def body(x: fx.Float32):
        assert x.to(fx.Float32, rounding_mode=fx.RoundingMode.upward) is x
        assert x.to(ir.Value) is x
        for wrong, said in (
            (lambda: x.to(fx.Int32, rounding_mode="upward"), "float-to-float"),
            (lambda: fx.Float32(1.5).to(fx.Float16, rounding_mode="upward"), "run-time value"),
            (lambda: x.to("f16"), "takes an element type"),
        ):
            with pytest.raises(TypeError, match=said):
                wrong()

    traced(body, 1.0)


def test_vectors_of_a_fixed_length():
    assert issubclass(fx.Float32x4, fx.Vector)

    def body():
        v = fx.Float32x4.filled(4, 1.0)
        assert isinstance(v, fx.Float32x4)
        assert not isinstance(v, fx.Float32x2)
        assert isinstance(fx.Int32x4([1, 2, 3, 4]), fx.Int32x4)
        assert fx.Float32x4(v.ir_value(), dtype=fx.Float32).shape == (4,)
        with pytest.raises(ValueError, match="has 2 elements, not 4"):
            fx.Float32x2(v)
        with pytest.raises(ValueError, match="elements of Float32, not Float16"):
            fx.Float32x4(v, dtype=fx.Float16)
        with pytest.raises(IndexError):
            v[4]
        assert isinstance(hash(v), int)
        assert "Float32" in str(v)
        (v < 2.0).select(v, fx.Float32(0))
        fx.Vector.filled(4, 1, fx.Int32).select(v, v)

    assert "arith.cmpi" in traced(body)


def test_the_greatest_and_the_least_of_constants():
    assert np.isnan(float(fx.max(1.0, float("nan"))))
    assert np.isnan(float(fx.min(float("nan"), 1)))
    assert str(float(fx.max(-0.0, 0.0))) == "0.0"
    assert str(float(fx.min(0.0, -0.0))) == "-0.0"
    with pytest.raises(OverflowError):
        fx.ceildiv(fx.Int32(-(2**31)), fx.Int32(-1))
    with pytest.raises(ZeroDivisionError):
        fx.ceildiv(1, 0)
    for wrong, said in ((1.0, "requires integer"), (True, "Boolean"), (fx.Index(1), "Index")):
        with pytest.raises(TypeError, match=said):
            fx.ceildiv(wrong, wrong)


def test_functions_at_an_insertion_point_of_the_programs_own():
    """As FlyDSL's unit tests build, without a traced function."""

    def some(x: Any, flag: Any) -> None:
        with fx.fastmath("contract"):
            y = fx.Float32(x) * 2.0
        z = ReplaceIfWithDispatch.scf_ifexp_dispatch(flag, lambda: y, lambda: -y)
        assert type(z) is fx.Float32
        assert not isinstance(fx.math.sin(x), fx.Float32)  # MLIR's in, MLIR's out

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            kinds = [ir.F32Type.get(), ir.IntegerType.get_signless(1)]
            for name in ("first", "second"):
                made = func.FuncOp(name, ir.FunctionType.get(kinds, []))
                with ir.InsertionPoint(made.add_entry_block()):
                    some(*made.entry_block.arguments)
                    func.ReturnOp([])
        assert module.operation.verify()
        text = str(module)
    assert text.count("arith.mulf") == 2 == text.count("fastmath<contract>")
    assert text.count("scf.if") == 2 == text.count("math.sin")


def test_options_of_blocks():
    with tracing_context(fastmath="fast", unroll=4):
        with tracing_context(unroll=None):
            assert tracing_option("unroll", 1) == 1
            assert tracing_option("fastmath") == "fast"
        assert tracing_option("unroll") == 4
    assert tracing_option("unroll") is None


def test_a_number_type_keeps_a_vector_of_its_elements():
    def body(n: fx.Int32):
        vector = fx.Vector.filled(4, 1.5, fx.Float32)
        scaled = fx.Float32(vector) * 2.0
        assert (scaled.dtype, scaled.numel) == (fx.Float32, 4)
        assert fx.Float16(vector).dtype is fx.Float16
        with pytest.raises(TypeError, match=r"convert the elements: x\.to\(fx\.Int32\)"):
            fx.Int32(vector)

    text = traced(body, 3)
    assert "arith.mulf" in text
    assert "arith.truncf" in text


def test_a_type_of_mlir_that_an_earlier_trace_made():
    kept: list[Any] = []

    def body(n: fx.Int32):
        if not kept:
            kept.append(ir.Type.parse("i64"))
        arith.extsi(kept[0], n)

    first, second = (traced(body, 3) for _ in range(2))
    assert len(kept) == 1
    assert first == second
    assert "arith.extsi" in first
