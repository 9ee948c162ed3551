"""fly-select-math: which mathematical function is computed how.

Three ways lead from math to AMD's machine code. LLVM's intrinsics where its AMDGPU code generation
expands them accurately (AMDGPULegalizerInfo and SIISelLowering: exp, log, sqrt of f32; rounding of
every type). ROCm's device library where it does not (sin, tanh, pow, transcendental f64):
convert-math-to-rocdl calls it for what this pass leaves alone. And a wider type: no library or
instruction knows bf16, and f16 in f32 is more accurate than the library's f16 at the same price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fly_opt.passes.base import Pass
from fly_opt.passes.intrinsics import call

# math → LLVM's intrinsic, for the types in which code generation expands it accurately.
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
# Computed in f32 where they aren't an intrinsic of their own type.
NARROW = ("f16", "bf16")
# In the math dialect, and not a function of floats.
NOT_FLOAT = ("math.absi", "math.ctlz", "math.cttz", "math.ctpop", "math.ipowi", "math.fpowi")


@dataclass(frozen=True)
class SelectMath(Pass):
    """Sends each math operation to LLVM's intrinsics, to f32, or on to the device library."""

    name: ClassVar[str] = "fly-select-math"

    def run(self, op: Any) -> None:
        from fly_dialect.bindings import ir

        found: list[Any] = []

        def collect(child: Any) -> Any:
            name = child.name
            if (name.startswith("math.") and name not in NOT_FLOAT) or name == "arith.remf":
                found.append(child.operation)
            return ir.WalkResult.ADVANCE

        op.walk(collect)
        for child in found:
            _select(child)


def _select(op: Any) -> None:
    """Replaces one operation, or leaves it where the device library has it as it is."""
    from fly_dialect.bindings import ir

    with ir.InsertionPoint(op), op.location:
        made = _replacement(op)
    if made is not None:
        op.results[0].replace_all_uses_with(made)
        op.erase()


def _replacement(op: Any) -> Any:
    from fly_dialect.bindings import ir

    kind = op.results[0].type
    element = str(kind.element_type if isinstance(kind, ir.VectorType) else kind)
    operands = list(op.operands)
    fast = _fast(op)
    if op.name in INTRINSICS and element in INTRINSICS[op.name][1]:
        return _intrinsic(INTRINSICS[op.name][0], kind, operands, fast)
    if op.name == "math.rsqrt" and element in EVERY:
        # One over the root: v_rsq_f32 alone is off by one in the last place.
        root = _intrinsic("llvm.sqrt", kind, operands, fast)
        return _create("arith.divf", kind, [_one(kind), root], op)
    if element not in NARROW:
        return None
    wide = ir.F32Type.get()
    if isinstance(kind, ir.VectorType):
        wide = ir.VectorType.get(kind.shape, wide)
    extended = [_create("arith.extf", wide, [operand]) for operand in operands]
    computed = _create(op.name, wide, extended, op)
    made = _create("arith.truncf", kind, [computed])
    _select(computed.owner)
    return made


def _fast(op: Any) -> Any:
    """An operation's fast-math flags for the LLVM dialect; None where it has none."""
    from fly_dialect.bindings import ir

    if "fastmath" not in op.attributes:
        return None
    return ir.Attribute.parse(str(op.attributes["fastmath"]).replace("arith", "llvm", 1))


def _intrinsic(name: str, kind: Any, operands: list[Any], fast: Any) -> Any:
    return call(f"{name}.{_mangled(kind)}", kind, operands, fast)


def _mangled(kind: Any) -> str:
    """A type as the names of LLVM's intrinsics spell it: f32, v4f16."""
    from fly_dialect.bindings import ir

    if isinstance(kind, ir.VectorType):
        return f"v{kind.shape[0]}{kind.element_type}"
    return str(kind)


def _create(name: str, kind: Any, operands: list[Any], like: Any = None) -> Any:
    """An operation, with the fast-math flags of `like`."""
    from fly_dialect.bindings import ir

    attributes = {}
    if like is not None and "fastmath" in like.attributes:
        attributes["fastmath"] = like.attributes["fastmath"]
    return ir.Operation.create(name, [kind], operands, attributes).results[0]


def _one(kind: Any) -> Any:
    from fly_dialect.bindings import ir

    if isinstance(kind, ir.VectorType):
        value = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 1.0))
    else:
        value = ir.FloatAttr.get(kind, 1.0)
    return ir.Operation.create("arith.constant", [kind], attributes={"value": value}).results[0]
