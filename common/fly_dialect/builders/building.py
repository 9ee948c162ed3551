"""Builds one op of the table, and infers its result types from its operands' types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from fly_dialect.bindings import ir
from fly_dialect.dialect import check_operand_count, check_types, plain, spec_of, type_of
from fly_dialect.op_table import op as row
from fly_dialect.types import Spec

Value: TypeAlias = ir.Value
# What an op is built with; None stands for the context manager's.
Loc: TypeAlias = ir.Location | None
Ip: TypeAlias = ir.InsertionPoint | None


def build(
    name: str,
    operands: Sequence[Value],
    results: list[Spec] | None = None,
    attributes: Mapping[str, ir.Attribute] | None = None,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> Any:
    """Builds `fly.name`. `results` is needed where the op's result type can't be inferred. One
    result is given as a value, several as a list, none as None: Any, as the table says which."""
    return results_of(build_op(name, operands, results, attributes, loc=loc, ip=ip))


def results_of(op: ir.Operation) -> Any:
    """One result as a value, several as a list, none as None."""
    results = op.results
    if len(results) == 1:
        return results[0]
    return list(results) or None


def build_op(
    name: str,
    operands: Sequence[Value],
    results: list[Spec] | None = None,
    attributes: Mapping[str, ir.Attribute] | None = None,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> ir.Operation:
    """`build`, but returns the `ir.Operation`."""
    info = row(name)
    specs = [spec_of(operand.type) for operand in operands]
    data = {key: plain(value) for key, value in attributes.items()} if attributes else {}
    try:
        if results is None:
            check_operand_count(info, len(specs))
            results = info.infer(specs, data) if info.infer else []
            if info.check is not None:
                info.check(specs, results, data)
        else:
            check_types(info, specs, results, data)
    except ValueError as error:
        raise ValueError(f"{info.full_name}: {error}") from None
    return create(name, operands, [type_of(result) for result in results], attributes, loc, ip)


class Inferred:
    """Caches inferred result types by op name and operand types. It is for ops without attributes
    whose result types can be inferred. An instance must not outlive its module, because types
    belong to a context."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[ir.Type, ...]], list[ir.Type]] = {}

    def build(self, name: str, operands: Sequence[Value], loc: Loc, ip: Ip) -> ir.Operation:
        """`build_op`, without repeating the inference for types seen before."""
        key = name, tuple([operand.type for operand in operands])
        results = self._known.get(key)
        if results is None:
            op = build_op(name, operands, loc=loc, ip=ip)
            self._known[key] = [result.type for result in op.results]
            return op
        return create(name, operands, results, None, loc, ip)


def create(
    name: str,
    operands: Sequence[Value],
    results: list[ir.Type],
    attributes: Mapping[str, ir.Attribute] | None,
    loc: Loc,
    ip: Ip,
) -> ir.Operation:
    """Creates the op `name` of the table with already inferred result types (`ir.Type`)."""
    return ir.Operation.create(
        row(name).full_name,
        results=results,
        operands=operands,
        attributes=attributes,
        loc=loc,
        ip=ip,
    )
