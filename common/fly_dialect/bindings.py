"""MLIR's Python bindings, from whichever package provides them. Only this module imports either.

`mlir` (the bindings' own package) is preferred; `torch_mlir` (on PyPI) contains all of upstream
MLIR under another name. PyPI's `mlir-python-bindings` 0.0.1 is an empty placeholder.

Importing this costs 0.1 s: import it inside the function that needs it.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fly_common.errors import MissingError


def _package() -> str:
    for name in ("mlir", "torch_mlir"):
        try:
            _import_ir(f"{name}.ir")
        except ImportError:
            continue
        return name
    raise MissingError(
        "MLIR's Python bindings were not found", hint="pip install torch-mlir==20261001"
    )


def _import_ir(name: str) -> None:
    """Imports the bindings' module `ir` without NumPy, which would double the import time.

    The module works without NumPy, except for four attribute builders, which `_register_elements`
    adds. NumPy is only hidden from this one module, so that other threads are not affected.
    """
    if name in sys.modules or "numpy" in sys.modules:
        importlib.import_module(name)
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import_without_numpy}
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    vars(sys.modules[name.rpartition(".")[0]])["ir"] = module
    _register_elements(module)


def _import_without_numpy(name: str, *rest: Any) -> ModuleType:
    if name == "numpy":
        raise ImportError("NumPy is imported when an attribute of elements is built")
    return builtins.__import__(name, *rest)


def _register_elements(ir: ModuleType) -> None:
    """Registers `DenseElementsAttr`'s builders from sequences, which `ir` lacks without NumPy."""
    rows = {
        "F64ElementsAttr": ("float64", lambda context: ir.F64Type.get(context=context)),
        "I32ElementsAttr": ("int32", lambda c: ir.IntegerType.get_signless(32, context=c)),
        "I64ElementsAttr": ("int64", lambda c: ir.IntegerType.get_signless(64, context=c)),
        "IndexElementsAttr": ("int64", lambda context: ir.IndexType.get(context=context)),
    }
    for name, (dtype, type_of) in rows.items():

        def build(x: Any, context: Any, dtype: Any = dtype, type_of: Any = type_of) -> Any:
            import numpy

            data = numpy.array(x, dtype=dtype)
            return ir.DenseElementsAttr.get(data, type=type_of(context), context=context)

        ir.register_attribute_builder(name)(build)


def _leave_dialects_alone() -> None:
    """Stops the bindings from importing a dialect's module, with a class for each operation, when
    one of its ops is first seen: ops, values and attributes are generic objects here. Code that
    needs these classes imports the module. If an application imported the bindings before, they
    keep doing so, because it may rely on it."""
    importlib.import_module(f"{PACKAGE}._mlir_libs._mlir").globals.dialect_search_modules = []


_OTHERS = {name for name in ("mlir.ir", "torch_mlir.ir") if name in sys.modules}
PACKAGE = _package()
if f"{PACKAGE}.ir" not in _OTHERS:
    _leave_dialects_alone()

if TYPE_CHECKING:
    # As typings/torch_mlir/ir.pyi has it, whichever package is there.
    from torch_mlir import ir
else:
    ir = importlib.import_module(f"{PACKAGE}.ir")
passmanager: ModuleType = importlib.import_module(f"{PACKAGE}.passmanager")


def dialect(name: str) -> ModuleType:
    """The module of an upstream dialect (`arith`, `gpu`, `llvm`, …), or `ext`, `rewrite`."""
    return importlib.import_module(f"{PACKAGE}.dialects.{name}")


def module(name: str) -> ModuleType:
    """Any other module of the bindings, such as `rewrite`."""
    return importlib.import_module(f"{PACKAGE}.{name}")
