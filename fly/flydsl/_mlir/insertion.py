"""`ir.InsertionPoint`: where builders build, in a traced function too.

    made = scf.IfOp(condition.ir_value(), [T.f32], has_else=True)
    with ir.InsertionPoint(made.then_block):
        scf.YieldOp([(x * 2.0).ir_value()])

The language's functions and MLIR's builders then build in that block, whatever function is traced.
"""

from __future__ import annotations

from typing import Any

from fly_dialect import bindings
from fly_trace.core import tracing

from fly.flydsl.numbers.raw import lower

_ir: Any = bindings.ir


class _Kind(type):
    @property
    def current(cls) -> Any:
        """The place where the next operation is built. ValueError if there is none."""
        builder = tracing.traced()
        return InsertionPoint.of(_ir.InsertionPoint.current if builder is None else builder.ip)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _ir.InsertionPoint) or type.__instancecheck__(cls, value)


class InsertionPoint(metaclass=_Kind):
    """The end of a block, or before an operation."""

    def __init__(self, place: Any):
        self._point: Any = _ir.InsertionPoint(_raw(place))
        self._before: list[tuple[Any, Any]] = []

    @classmethod
    def of(cls, point: Any) -> InsertionPoint:
        made = cls.__new__(cls)
        made._point, made._before = point, []
        return made

    @classmethod
    def at_block_begin(cls, block: Any) -> InsertionPoint:
        return cls.of(_ir.InsertionPoint.at_block_begin(_raw(block)))

    @classmethod
    def at_block_terminator(cls, block: Any) -> InsertionPoint:
        return cls.of(_ir.InsertionPoint.at_block_terminator(_raw(block)))

    @classmethod
    def after(cls, op: Any) -> InsertionPoint:
        return cls.of(_ir.InsertionPoint.after(_raw(op)))

    def __enter__(self) -> InsertionPoint:
        builder = tracing.traced()
        self._before.append((builder, None if builder is None else builder.ip))
        if builder is not None:
            builder.ip = self._point
        self._point.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        builder, before = self._before.pop()
        if builder is not None:
            builder.ip = before
        return self._point.__exit__(*error)

    def insert(self, op: Any) -> None:
        self._point.insert(_raw(op))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._point, name)


def _raw(place: Any) -> Any:
    """A block or an operation of the bindings."""
    return place if isinstance(place, _ir.Block) else lower(place)
