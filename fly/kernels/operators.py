"""Functions of arrays that are operators of torch, too.

A kernel of this package is called by a function of arrays. For NumPy arrays, and all others that
`@fly.jit` takes, the function runs. For torch tensors the operator `torch.ops.fly.NAME` is called
instead, whose implementation is the same function: torch then knows its gradient, and
`torch.compile` the shapes of its results. Nothing here imports torch; operators are made when torch
is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

NAMESPACE = "fly"


class Operator:
    """A function of arrays, decorated by `operator`."""

    def __init__(self, function: Callable[..., Any], schema: str, fake: Callable[..., Any]):
        self.function, self.schema, self.fake = function, schema, fake
        self.name = function.__name__
        self._gradient: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._made: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if _is_tensor(arguments[0] if arguments else next(iter(named.values()), None)):
            return self.torch(*arguments, **named)
        return self.function(*arguments, **named)

    def gradient(self, save: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates the backward function: it gets what `save` put into the context, and the
        gradients of the results, and returns those of the arguments, as in
        `torch.library.register_autograd`."""

        def decorate(backward: Callable[..., Any]) -> Callable[..., Any]:
            self._gradient = backward, save
            return backward

        return decorate

    @property
    def torch(self) -> Any:
        """The operator of torch: what `torch.library.custom_op` returns."""
        if self._made is None:
            self._made = self._operator()
        return self._made

    def _operator(self) -> Any:
        from torch.library import custom_op

        made = custom_op(
            f"{NAMESPACE}::{self.name}", self.function, mutates_args=(), schema=self.schema
        )
        made.register_fake(self.fake)
        if self._gradient is not None:
            backward, save = self._gradient
            made.register_autograd(backward, setup_context=save)
        return made


def operator(schema: str, *, fake: Callable[..., Any]) -> Callable[[Callable[..., Any]], Operator]:
    """Decorates a function of arrays. `schema` is torch's, as in "(Tensor x) -> Tensor"; the first
    argument is an array. `fake` takes tensors without elements and returns such ones."""

    def decorate(function: Callable[..., Any]) -> Operator:
        return Operator(function, schema, fake)

    return decorate


def like(x: Any, *_: Any) -> Any:
    """The fake of operators that return a contiguous tensor of the first argument's type and
    shape."""
    return x.new_empty(x.shape)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
