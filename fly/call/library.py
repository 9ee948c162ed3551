"""`fly.register_call`: library functions that host functions may call by `fx.call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_host import library
from fly_host.library import Like, Made

Rule = Callable[..., Like | Made]


def register_call(
    name: str, *, shape: Rule, function: Callable[..., Any] | None = None, takes_out: bool = True
) -> None:
    """Makes a Python function callable from host functions: `fx.call(function, …)`.

    `name` is what programs call it by; without `function`, it is the path that is imported, as
    "torch.matmul" is. `shape(*arguments, **keywords)` gets a `Like` for each tensor (`dtype`,
    `shape`, `strides`; extents may be symbolic) and gives a `Like`, or a `Made` of several; it
    raises ValueError for arguments that do not fit. `takes_out`: the function takes `out=`.

    A compiled program has the name alone. Where it is run without this registration, nothing is
    imported for it: the call is refused.
    """
    library.register(name, shape=shape, function=function, takes_out=takes_out)
