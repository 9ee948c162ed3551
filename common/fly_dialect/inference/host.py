"""Which types the ops of host functions take. As `fly_dialect.inference.rules`.

    %T = fly.empty(%n) {dtype = "f32", shape = [unit, 4], allocation = "", view = "logical"}
    %C = fly.call(%A, %B, %m) {function = "torch.matmul", arguments = [unit, unit], keywords = {},
                               results = [{dtype = "f32", shape = [unit, 4]}]}
    fly.check(%condition, %n) {message = ["n is ", unit]}

In a list, `unit` stands for the next operand.
"""

from __future__ import annotations

from typing import Any

from fly_dialect.inference.rules import Attributes, wrong
from fly_dialect.types import MemRefSpec, Spec

_INTEGERS = ("i1", "i8", "i16", "i32", "i64", "index")
VIEWS = ("logical", "allocation")


def check_empty(operands: list[Spec], results: list[Spec], attributes: Attributes) -> None:
    _integers(operands)
    _tensors(results)
    for name in ("dtype", "allocation", "view"):
        if not isinstance(attributes.get(name), str):
            raise ValueError(f"needs {name}, a string")
    if attributes["view"] not in VIEWS:
        raise ValueError(f"view is one of {', '.join(VIEWS)}")
    if not isinstance(attributes.get("shape"), list):
        raise ValueError("needs shape, a list")


def check_call(_: list[Spec], results: list[Spec], attributes: Attributes) -> None:
    _tensors(results)
    for name, kind in (("function", str), ("arguments", list), ("keywords", dict)):
        if not isinstance(attributes.get(name), kind):
            raise ValueError(f"needs {name}, a {kind.__name__}")
    described = attributes.get("results", [])
    if not isinstance(described, list) or len(described) != len(results):
        raise ValueError(f"needs results, a list of {len(results)}")


def check_check(operands: list[Spec], _: list[Spec], attributes: Attributes) -> None:
    if not operands:
        raise ValueError("needs a condition")
    _integers(operands)
    if not isinstance(attributes.get("message"), list):
        raise ValueError("needs message, a list")


def _integers(operands: list[Spec]) -> None:
    for index, spec in enumerate(operands):
        if spec not in _INTEGERS:
            raise wrong(index, "an integer", spec)


def _tensors(results: list[Any]) -> None:
    for index, spec in enumerate(results):
        if not isinstance(spec, MemRefSpec) or spec.space != "global":
            raise ValueError(f"result #{index} must be a memref in global memory, but is {spec}")
