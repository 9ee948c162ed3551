"""MLIR's bindings: without NumPy the same builders; dialects' classes for who had them before."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
if sys.argv[1] == "numpy":
    import numpy
from fly_dialect.bindings import ir
assert ("numpy" in sys.modules) == (sys.argv[1] == "numpy")
with ir.Context() as context:
    for name in ("F64ElementsAttr", "I32ElementsAttr", "I64ElementsAttr", "IndexElementsAttr"):
        print(ir.AttrBuilder.get(name)([[1, 2], [3, 4]], context))
    print(ir.AttrBuilder.contains("StrAttr"))
import numpy
print(numpy.arange(3).sum())
"""


CLASSES = """
import sys
if sys.argv[1] == "before":
    import torch_mlir.ir
from fly_dialect.bindings import ir
if sys.argv[1] == "by name":
    import torch_mlir.dialects.func
with ir.Context():
    module = ir.Module.parse("func.func @f() { return }")
    print(type(module.body.operations[0]).__name__)
"""


def run(mode: str, program: str = PROGRAM) -> str:
    command = [sys.executable, "-c", program, mode]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_numpy_nothing_is_missing():
    lines = run("without")
    assert lines == run("numpy")
    assert lines.splitlines() == [
        "dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf64>",
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>",
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>",
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xindex>",
        "True",
        "3",
    ]


def test_classes_of_operations_are_for_an_application_that_had_the_bindings_before():
    assert run("after", CLASSES) == "OpView\n"
    assert run("before", CLASSES) == run("by name", CLASSES) == "FuncOp\n"
