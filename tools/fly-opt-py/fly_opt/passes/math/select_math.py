"""fly-select-math: selects how each math function and float conversion is computed.

A math op takes one of four routes to machine code. LLVM's intrinsics, if code generation expands
them accurately (exp, log, sqrt of f32; rounding of every type). Formulas of our own for the other
functions of f32 (`f32`, `f64`). A wider type: f16 and bf16 are computed in f32. The target's device
library for transcendental functions of f64: this pass leaves those unchanged, and a later pass of
the backend calls the library.

LLVM has no floats narrower than 16 bits: conversions of them become the target's instructions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record

from fly_opt.ir.intrinsics import call
from fly_opt.lowering import interface
from fly_opt.passes.base import Pass
from fly_opt.passes.target.set_target import target_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# math → LLVM's intrinsic, for the types that code generation expands accurately.
EVERY = ("f16", "f32", "f64")
INTRINSICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "math.absf": ("llvm.fabs", ("bf16", *EVERY)),
    "math.copysign": ("llvm.copysign", ("bf16", *EVERY)),
    "math.ceil": ("llvm.ceil", EVERY),
    "math.floor": ("llvm.floor", EVERY),
    "math.trunc": ("llvm.trunc", EVERY),
    "math.round": ("llvm.round", EVERY),
    "math.roundeven": ("llvm.roundeven", EVERY),
    "math.fma": ("llvm.fma", EVERY),
    "math.sqrt": ("llvm.sqrt", EVERY),
    "math.exp": ("llvm.exp", ("f32",)),
    "math.exp2": ("llvm.exp2", ("f32",)),
    "math.log": ("llvm.log", ("f32",)),
    "math.log2": ("llvm.log2", ("f32",)),
    "math.log10": ("llvm.log10", ("f32",)),
}
# Computed in f32 unless they are an intrinsic of their own type.
NARROW = ("f16", "bf16")
CONVERSIONS = ("arith.extf", "arith.truncf")
# Ops of the math dialect that are not functions of floats.
NOT_FLOAT = ("math.absi", "math.ctlz", "math.cttz", "math.ctpop")
# The masks of llvm.is.fpclass (LLVM's language reference: bits 0–1 NaN, 2 and 9 infinities, 3 and 8
# normals, 4 to 7 subnormals and zeros).
CLASSES = {
    "math.isnan": 0b00_0000_0011,
    "math.isinf": 0b10_0000_0100,
    "math.isfinite": 0b01_1111_1000,
    "math.isnormal": 0b01_0000_1000,
}


@record
class SelectMath(Pass):
    """Lowers each math operation to LLVM's intrinsics or f32, or leaves it to the device library.

    Conversions of floats of 8 bits or fewer become the target's instructions.
    """

    name: ClassVar[str] = "fly-select-math"

    def run(self, op: ir.Operation) -> bool:
        from fly_dialect.bindings import ir
        from fly_dialect.dialect import load_upstream

        found: list[ir.Operation] = []
        conversions: list[ir.Operation] = []

        def collect(child: ir.Operation) -> ir.WalkResult:
            name = child.name
            if name in NOT_FLOAT:
                if lowerings[0].function(child.operation) is not None:
                    found.append(child.operation)
            elif name.startswith("math.") or name == "arith.remf":
                found.append(child.operation)
            elif name in CONVERSIONS:
                conversions.append(child.operation)
            return ir.WalkResult.ADVANCE

        lowerings = interface.candidates(target_of(op))
        op.walk(collect)
        load_upstream(op.context, interface.upstream_of(lowerings))
        chosen = interface.active.set(lowerings[0])
        try:
            for child in found:
                _select(child)
        finally:
            interface.active.reset(chosen)
        if conversions:
            _convert(op, conversions)
        return bool(found or conversions)


def _convert(module: ir.Operation, conversions: list[ir.Operation]) -> None:
    """Lowers the conversions from and to types that LLVM does not have."""
    target = target_of(module)
    for op in conversions:
        any(lowering.convert_float(op, target) for lowering in interface.candidates(target))


def _select(op: ir.Operation) -> None:
    """Replaces one operation, or leaves it if the device library has it."""
    from fly_dialect.bindings import ir

    with ir.InsertionPoint(op), op.location:
        made = _replacement(op)
    if made is not None:
        op.results[0].replace_all_uses_with(made)
        op.erase()


def _replacement(op: ir.Operation) -> ir.Value | None:
    from fly_dialect.bindings import ir

    if op.name in CLASSES:
        return _classified(op)
    if op.name == "math.ipowi":
        from fly_opt.passes.math import integers

        return _by_elements(integers.power, op.results[0].type, list(op.operands))
    kind = op.results[0].type
    element = str(kind.element_type if isinstance(kind, ir.VectorType) else kind)
    operands = list(op.operands)
    fast = _fast(op)
    if (own := interface.current().function(op)) is not None:
        return _by_elements(own, kind, operands)
    if op.name in INTRINSICS and element in INTRINSICS[op.name][1]:
        return _intrinsic(INTRINSICS[op.name][0], kind, operands, fast)
    if op.name == "math.rsqrt" and element in EVERY:
        # 1 / sqrt(x): v_rsq_f32 alone has an error of one ulp.
        root = _intrinsic("llvm.sqrt", kind, operands, fast)
        return _create("arith.divf", kind, [_one(kind), root], op)
    if element == "f32" and (formula := _formula(op.name)):
        return _by_elements(formula, kind, operands)
    if element not in NARROW:
        return None
    wide = ir.F32Type.get()
    if isinstance(kind, ir.VectorType):
        wide = ir.VectorType.get(kind.shape, wide)
    extended = [
        _create("arith.extf", wide, [operand]) if operand.type == kind else operand
        for operand in operands
    ]
    computed = _create(op.name, wide, extended, op)
    made = _create("arith.truncf", kind, [computed])
    owner = computed.owner
    assert not isinstance(owner, ir.Block), "an op has just made it"
    _select(owner.operation)
    return made


def _formula(name: str) -> Callable[..., ir.Value] | None:
    """Returns the formula of a function of f32, as a function of SSA values."""
    from fly_opt.passes.math import f32, f64
    from fly_opt.passes.math.number import Number

    function = f32.FUNCTIONS.get(name) or f64.FUNCTIONS.get(name)
    if function is None:
        return None
    return lambda *operands: function(*map(Number, operands)).value


def _by_elements(
    function: Callable[..., ir.Value], kind: ir.Type, operands: list[ir.Value]
) -> ir.Value:
    """Applies `function` to scalars; to vectors element by element."""
    from fly_dialect.bindings import ir

    if not isinstance(kind, ir.VectorType):
        return function(*operands)
    made = []
    for index in itertools.product(*map(range, kind.shape)):
        at = {"static_position": ir.DenseI64ArrayAttr.get(index)}
        elements = [
            ir.Operation.create(
                "vector.extract", [ir.VectorType(operand.type).element_type], [operand], at
            ).results[0]
            for operand in operands
        ]
        made.append(function(*elements))
    return _create("vector.from_elements", kind, made)


def _classified(op: ir.Operation) -> ir.Value:
    """Tests whether floats are of a class. A bf16 is tested as f32, which has the same classes."""
    from fly_dialect.bindings import ir

    (operand,) = op.operands
    kind, result = operand.type, op.results[0].type
    if str(kind).endswith(("bf16", "bf16>")):
        wide = ir.F32Type.get()
        kind = ir.VectorType.get(kind.shape, wide) if isinstance(kind, ir.VectorType) else wide
        operand = _create("arith.extf", kind, [operand])
    i32 = ir.IntegerType.get_signless(32)
    mask = ir.IntegerAttr.get(i32, CLASSES[op.name])
    mask = ir.Operation.create("llvm.mlir.constant", [i32], attributes={"value": mask}).results[0]
    return call(f"llvm.is.fpclass.{_mangled(kind)}", result, [operand, mask])


def _fast(op: ir.Operation) -> ir.Attribute | None:
    """Returns an op's fast-math flags for the LLVM dialect; None if it has none."""
    from fly_dialect.bindings import ir

    if "fastmath" not in op.attributes:
        return None
    return ir.Attribute.parse(str(op.attributes["fastmath"]).replace("arith", "llvm", 1))


def _intrinsic(
    name: str, kind: ir.Type, operands: list[ir.Value], fast: ir.Attribute | None
) -> ir.Value:
    return call(f"{name}.{_mangled(kind)}", kind, operands, fast)


def _mangled(kind: ir.Type) -> str:
    """Returns a type's suffix in the names of LLVM's intrinsics: f32, v4f16."""
    from fly_dialect.bindings import ir

    if isinstance(kind, ir.VectorType):
        return f"v{kind.shape[0]}{kind.element_type}"
    return str(kind)


def _create(
    name: str, kind: ir.Type, operands: list[ir.Value], like: ir.Operation | None = None
) -> ir.Value:
    """Creates an op with the fast-math flags of `like`."""
    from fly_dialect.bindings import ir

    attributes = {}
    if like is not None and "fastmath" in like.attributes:
        attributes["fastmath"] = like.attributes["fastmath"]
    return ir.Operation.create(name, [kind], operands, attributes).results[0]


def _one(kind: ir.Type) -> ir.Value:
    from fly_dialect.bindings import ir

    if isinstance(kind, ir.VectorType):
        value = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 1.0))
    else:
        value = ir.FloatAttr.get(kind, 1.0)
    return ir.Operation.create("arith.constant", [kind], attributes={"value": value}).results[0]
