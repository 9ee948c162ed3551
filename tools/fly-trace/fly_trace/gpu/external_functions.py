"""Functions of LLVM bitcode that kernels call: `fx.ffi.function`.

A function is declared in the module of the kernels, with the number of its file. The files'
contents are an attribute of the trace, so that no later stage depends on them; fly-opt-py links
what is called.
"""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError, MissingError
from fly_common.record import field, record

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.pointers import converted
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector
from fly_trace.values.vector.vectors import VectorType
from fly_trace.values.vector_shapes import vector_ir

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = ["Function", "function"]

_WHAT = "fx.ffi.function"
FILES = "fly.bitcode"  # of the module: a list of {file, text} or {file, base64}
FILE = "fly.bitcode_file"  # of a declaration: the number of its file
_SIGNATURES = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # of bitcode, without and with a wrapper
Type = DType | VectorType


@record
class Function:
    """A function of LLVM bitcode, which kernels call like one of Python. file: the path as it was
    given; data: what the file contained then, bitcode or text."""

    name: str
    arguments: tuple[Type, ...]
    result: Type | None
    file: str
    data: bytes = field(repr=False)

    def __call__(self, *values: Any) -> Any:
        builder = tracing.kernel(f"the external function {self.name}")
        if len(values) != len(self.arguments):
            tracing.refuse(
                f"{self.name} takes {len(self.arguments)} arguments, not {len(values)}",
            )
        given = [
            _operand(builder, value, kind, f"argument {place} of {self.name}")
            for place, (value, kind) in enumerate(zip(values, self.arguments, strict=True), 1)
        ]
        _declare(builder, self)
        attributes = {
            "callee": builder.attribute(f'@"{self.name}"'),
            "operandSegmentSizes": builder.attribute(f"array<i32: {len(given)}, 0>"),
            "op_bundle_sizes": builder.attribute("array<i32>"),
        }
        types = [] if self.result is None else [builder.type(_ir(self.result))]
        made = builder.op("llvm.call", types, given, attributes)
        if self.result is None:
            return None
        if isinstance(self.result, VectorType):
            return Vector(made.results[0], (self.result.lanes,), self.result.dtype)
        return Scalar(self.result, made.results[0])


def function(
    name: str,
    *,
    arguments: Any = (),
    result: Any = None,
    bitcode: str | os.PathLike[str],
) -> Function:
    """Declares a function of LLVM bitcode, to be called in kernels.

    name: its symbol. arguments, result: the types of its numbers and vectors, such as fx.Float32
    and fx.Float32x4; an address is passed as fx.Int64. bitcode: the path of a file of bitcode (.bc)
    or of LLVM IR (.ll) for the target, which is read now. What is called, and what that needs, is
    linked before LLVM's opt, which may inline it. MissingError if the file can't be read,
    InputError if it is neither, or if a type can't be passed; when a kernel is compiled, if the
    file has no such function, or one of another type or for another target.
    """
    if not isinstance(name, str) or not name or '"' in name:
        raise InputError(f"{_WHAT} takes the symbol of a function first, not {describe(name)}")
    listed = arguments if isinstance(arguments, (list, tuple)) else (arguments,)
    kinds = [_checked(kind, f"an argument of {name}") for kind in listed]
    returned = None if result is None else _checked(result, f"the result of {name}")
    path = os.fspath(bitcode)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise MissingError(
            f"{path}: {error.strerror}: the bitcode of {name} can't be read"
        ) from None
    if not data.startswith(_SIGNATURES):
        try:
            data.decode()
        except UnicodeDecodeError:
            raise InputError(
                f"{path} is neither LLVM bitcode nor the text of LLVM IR",
                hint="clang -c -emit-llvm makes bitcode, llvm-link joins several files",
            ) from None
    return Function(name, tuple(kinds), returned, path, data)


def _checked(kind: Any, what: str) -> Type:
    dtype = kind.dtype if isinstance(kind, VectorType) else kind
    if not isinstance(dtype, DType):
        raise InputError(
            f"{what} is a type, such as fx.Float32 or fx.Int32x4, not {describe(kind)}"
        )
    if dtype.is_narrow or (dtype.is_bool and kind is not dtype):
        raise InputError(
            f"{what} can't be {dtype.name}: LLVM has no such type",
            hint="pass its bits, as an integer",
        )
    return kind


def _operand(builder: Builder, value: Any, kind: Type, what: str) -> ir.Value:
    if isinstance(kind, VectorType):
        if not isinstance(value, Vector) or value.numel != kind.lanes:
            tracing.refuse(f"{what} is a vector of {kind.lanes}, not {describe(value)}")
        return converted(value, kind.dtype, what).value
    if isinstance(value, Vector):
        tracing.refuse(f"{what} is {kind.name}, not {describe(value)}")
    return builder.ssa(converted(value, kind, what))


def _ir(kind: Type) -> str:
    return vector_ir(kind.dtype, kind.lanes) if isinstance(kind, VectorType) else kind.ir


def _declare(builder: Builder, function: Function) -> None:
    """Declares the function in the module of the kernels, once."""
    from fly_dialect.bindings import ir

    operation = builder.block.owner.operation
    while operation.name != "gpu.module":
        assert operation.parent is not None, "a kernel is in a gpu.module"
        operation = operation.parent
    assert operation.parent is not None
    files = _file_number(builder, operation.parent, function)
    result = "void" if function.result is None else _ir(function.result)
    types = f"!llvm.func<{result} ({', '.join(map(_ir, function.arguments))})>"
    block = operation.regions[0].blocks[0]
    for child in block:
        symbol = child.operation.attributes["sym_name"].value
        if symbol != function.name:
            continue
        attributes = child.operation.attributes
        if FILE not in attributes:
            tracing.refuse(f"{function.name} is the name of a kernel, and of an external function")
        if (attributes[FILE].value, str(attributes["function_type"])) != (files, types):
            tracing.refuse(
                f"{function.name} is declared twice, with different types or files",
                "rename one of them in its bitcode",
            )
        return
    ir.Operation.create(
        "llvm.func",
        attributes={
            "sym_name": builder.string(function.name),
            "sym_visibility": builder.string("private"),
            "function_type": ir.TypeAttr.get(builder.type(types)),
            "linkage": builder.attribute("#llvm.linkage<external>"),
            FILE: builder.integer(files, "i64"),
        },
        regions=1,
        loc=builder.locations.here(),
        ip=ir.InsertionPoint.at_block_begin(block),
    )


def _file_number(builder: Builder, module: ir.Operation, function: Function) -> int:
    """The place of the function's file in the module's list, which gets it if it is new."""
    from fly_dialect.bindings import ir

    if function.data.startswith(_SIGNATURES):
        form, text = "base64", base64.b64encode(function.data).decode()
    else:
        form, text = "text", function.data.decode()
    entry = ir.DictAttr.get(
        {"file": builder.string(function.file), form: builder.string(text)}, builder.context
    )
    found = list(module.attributes[FILES]) if FILES in module.attributes else []
    if entry not in found:
        found.append(entry)
        module.attributes[FILES] = builder.array(found)
    return found.index(entry)
