"""Interprets a traced kernel for one work item: an oracle for the tests, written from MLIR's op
semantics (arith, math, scf) and sharing nothing with the tracer. Integers are Python ints in two's
complement of their width, floats NumPy's."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from fly_dialect import text
from fly_dialect.bindings import ir

FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def width(type_: Any) -> int:
    name = str(type_)
    return 64 if name == "index" else int(name[1:])


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER = {
    "arith.addi": lambda a, b, w: a + b,
    "arith.subi": lambda a, b, w: a - b,
    "arith.muli": lambda a, b, w: a * b,
    "arith.andi": lambda a, b, w: a & b,
    "arith.ori": lambda a, b, w: a | b,
    "arith.xori": lambda a, b, w: a ^ b,
    "arith.divsi": lambda a, b, w: truncated(a, b),
    "arith.remsi": lambda a, b, w: a - b * truncated(a, b),
    "arith.divui": lambda a, b, w: unsigned(a, w) // unsigned(b, w),
    "arith.remui": lambda a, b, w: unsigned(a, w) % unsigned(b, w),
    "arith.maxui": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    "arith.minui": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    "arith.maxsi": lambda a, b, w: max(a, b),
    "arith.minsi": lambda a, b, w: min(a, b),
}
FLOAT = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.remf": np.fmod,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "math.copysign": np.copysign,
    "math.floor": np.floor,
    "math.absf": np.abs,
    "arith.negf": np.negative,
}
SIGNED_TESTS = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
}
FLOAT_TESTS = {
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
    13: lambda a, b: a != b,
}


class Machine:
    """`memory` maps a memref argument's number to an array; loads and stores index it."""

    def __init__(self, memory: dict[int, np.ndarray]):
        self.memory = memory
        self.values: dict[Any, Any] = {}

    def block(self, block: Any, arguments: list[Any]) -> tuple[str, list[Any]]:
        """Runs a block; returns its terminator's name and operands."""
        for argument, value in zip(block.arguments, arguments, strict=True):
            self.values[argument] = value
        for op in block:
            op = op.operation
            operands = [self.values[operand] for operand in op.operands]
            if op.name in ("scf.yield", "scf.condition", "gpu.return"):
                return op.name, operands
            results = self.op(op, operands)
            for result, value in zip(op.results, results, strict=True):
                self.values[result] = value
        raise AssertionError("a block without terminator")

    def op(self, op: Any, given: list[Any]) -> list[Any]:
        name = op.name
        kind = op.results[0].type if len(op.results) else None
        if name in INTEGER:
            bits = width(kind)
            return [signed(INTEGER[name](*given, bits), bits)]
        if name in FLOAT:
            return [FLOAT[name](*given)]
        if name == "arith.constant":
            value = op.attributes["value"]
            if isinstance(value, ir.FloatAttr):
                return [FLOATS[str(kind)](value.value)]
            return [signed(int(value.value), width(kind))]
        if name == "ub.poison":
            return [None]  # any use of it fails
        if name in ("arith.shli", "arith.shrsi", "arith.shrui"):
            bits = width(kind)
            assert 0 <= given[1] < bits, "a shift by the width or more is poison"
            if name == "arith.shli":
                return [signed(given[0] << given[1], bits)]
            value = given[0] if name == "arith.shrsi" else unsigned(given[0], bits)
            return [signed(value >> given[1], bits)]
        if name == "arith.cmpi":
            predicate = op.attributes["predicate"].value
            a, b = given
            if predicate >= 6:
                bits = width(op.operands[0].type)
                a, b, predicate = unsigned(a, bits), unsigned(b, bits), predicate - 4
            return [int(SIGNED_TESTS[predicate](a, b))]
        if name == "arith.cmpf":
            return [int(FLOAT_TESTS[op.attributes["predicate"].value](*given))]
        if name == "arith.select":
            return [given[1] if given[0] & 1 else given[2]]
        if name in ("arith.extsi", "arith.trunci", "arith.index_cast"):
            return [signed(given[0], width(kind))]
        if name == "arith.extui":
            return [unsigned(given[0], width(op.operands[0].type))]
        if name == "arith.sitofp":
            return [FLOATS[str(kind)](given[0])]
        if name == "arith.uitofp":
            return [FLOATS[str(kind)](unsigned(given[0], width(op.operands[0].type)))]
        if name in ("arith.fptosi", "arith.fptoui"):
            return [signed(math.trunc(float(given[0])), width(kind))]
        if name in ("arith.extf", "arith.truncf"):
            return [FLOATS[str(kind)](given[0])]
        if name == "scf.if":
            region = op.regions[0 if given[0] & 1 else 1]
            return self.block(region.blocks[0], [])[1] if len(region.blocks) else []
        if name == "scf.for":
            return self.for_loop(op, given)
        if name == "scf.while":
            state = given
            while True:
                _, (go, *forwarded) = self.block(op.regions[0].blocks[0], state)
                if not go & 1:
                    return forwarded
                _, state = self.block(op.regions[1].blocks[0], forwarded)
        if name == "fly.make_int_tuple":
            return [self.coordinate(op, given)]
        if name == "fly.memref.load":
            return [self.memory_value(op, self.memory[given[0]][given[1]])]
        if name == "fly.memref.store":
            self.memory[given[1]][given[2]] = given[0]
            return []
        raise AssertionError(f"the interpreter lacks {name}")

    def for_loop(self, op: Any, given: list[Any]) -> list[Any]:
        counter, stop, step, *state = given
        bits = width(op.operands[0].type)
        if "unsignedCmp" in op.attributes:
            counter, stop = unsigned(counter, bits), unsigned(stop, bits)
        while counter < stop:
            _, state = self.block(op.regions[0].blocks[0], [signed(counter, bits), *state])
            counter += step
            limit = 1 << bits if "unsignedCmp" in op.attributes else 1 << (bits - 1)
            assert counter < limit, "the counter overflows"
        return state

    def coordinate(self, op: Any, given: list[Any]) -> tuple[int, ...]:
        written = str(op.results[0].type).partition("<")[2].strip("<>()")
        dynamic = iter(given)
        return tuple(
            next(dynamic) if item.startswith("?") else int(item) for item in written.split(",")
        )

    def memory_value(self, op: Any, value: Any) -> Any:
        kind = str(op.results[0].type)
        return FLOATS[kind](value) if kind in FLOATS else signed(int(value), width(kind))


@functools.lru_cache(maxsize=4)
def kernel_of(module: str) -> Any:
    """Returns the body of the module's first kernel; the module is kept alive with it."""
    parsed = text.read(module, ir.Context())
    kernels = parsed.body.operations[0].regions[0].blocks[0]
    return kernels.operations[0].operation.regions[0].blocks[0], parsed


def run(module: str, arguments: list[Any]) -> None:
    """Runs the module's first kernel for work item 0; arrays among the arguments are its memory."""
    body, _ = kernel_of(module)
    with np.errstate(all="ignore"):
        memory = {i: item for i, item in enumerate(arguments) if isinstance(item, np.ndarray)}
        Machine(memory).block(body, [i if i in memory else x for i, x in enumerate(arguments)])
