"""`flydsl.compiler.ast_rewriter`: functions are rewritten when they are called, so that there is
nothing to do for those that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fly.flydsl.numbers.raw import lift


class ASTRewriter:
    """`ASTRewriter.transform(function)` is the function."""

    @staticmethod
    def transform(function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class ReplaceIfWithDispatch:
    """The call that FlyDSL makes of an `if`."""

    @staticmethod
    def scf_if_dispatch(
        cond: Any,
        then_fn: Callable[..., Any],
        else_fn: Callable[..., Any] | None = None,
        *,
        result_names: Sequence[str] = (),
        result_values: Sequence[Any] = (),
        state_names: Sequence[str] = (),
        state_values: Sequence[Any] = (),
        auto_else: bool = False,
    ) -> Any:
        """Runs one of two functions, by a condition that may be dynamic. With names, each function
        takes the values and returns new ones, and the call returns those of the side that ran."""
        from fly_trace.control.branches import branch, condition, dynamic, truth
        from fly_trace.control.calls.call import call

        names = tuple(result_names or state_names)
        values = list(result_values or state_values)

        def run(function: Callable[..., Any] | None) -> Any:
            if function is None:
                return _packed(values)
            return _packed(_values(call(function, *values), names, values))

        def packed(found: list[Any]) -> Any:
            return found[0] if len(names) == 1 else tuple(found) if names else None

        def _packed(found: Any) -> list[Any]:
            return list(found)

        test = condition(cond)
        if not dynamic(test):
            return packed(run(then_fn if truth(test) else else_fn))
        found = branch(
            test,
            lambda: run(then_fn),
            lambda: run(else_fn),
            lambda a, b, merging: [
                merging.merge(name, x, y) for name, x, y in zip(names, a, b, strict=True)
            ],
        )
        return packed(found)

    @staticmethod
    def scf_ifexp_dispatch(
        cond: Any, then_fn: Callable[[], Any], else_fn: Callable[[], Any], **_: Any
    ) -> Any:
        """One of two values, by a condition that may be dynamic: `a if cond else b`."""
        return ReplaceIfWithDispatch.scf_if_dispatch(
            lift(cond),
            lambda _: (then_fn(),),
            lambda _: (else_fn(),),
            result_names=("the value",),
            result_values=(None,),
        )


def _values(result: Any, names: Sequence[str], before: list[Any]) -> list[Any]:
    """The values that a branch returns: nothing keeps all, a dictionary those that it lacks."""
    if result is None or not names:
        return before
    if isinstance(result, dict):
        return [result.get(name, value) for name, value in zip(names, before, strict=True)]
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(found) != len(names):
        raise TypeError(f"a branch returns {len(found)} values, but there are {len(names)} names")
    return found
