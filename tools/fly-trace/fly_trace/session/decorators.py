"""The objects created by @fly.kernel and @fly.jit. Tracing is only imported when it starts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, ClassVar, NoReturn, overload

from fly_common.errors import InputError
from fly_common.record import field, record

from fly_trace.core import locations, tracing


def _function(function: Any, decorator: str) -> FunctionType:
    if not isinstance(function, FunctionType):
        raise InputError(
            f"{decorator} decorates a function, not a {type(function).__name__}",
            place=locations.place(locations.here(3)),
        )
    return function


@record(frozen=False, eq=False)
class KernelFunction:
    """A function that runs on the GPU. A call in the host function returns a KernelCall.

    `block` is the block size that every launch must have, if the decorator sets it.
    """

    is_decorated: ClassVar[bool] = True
    settable: ClassVar[frozenset[str]] = frozenset()  # attributes that a host function may assign
    rules: ClassVar[Any] = None  # of numbers: a `core.rules.Rules`; None for the language's own
    function: FunctionType
    name: str
    block: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        functools.update_wrapper(self, self.function)  # type: ignore[arg-type]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        builder = tracing.active()
        if builder is None or not builder.host:
            where = "in a kernel" if builder else "from Python"
            tracing.refuse(
                f"{self.name} is a kernel, and can't be called {where}",
                "call it in the host function, a function with @fly.jit:"
                f" {self.name}(…).launch(grid=…, block=…)",
            )
        assert builder.call_kernel is not None
        return builder.call_kernel(self, arguments, named)


@record(frozen=False, eq=False)
class HostFunction:
    """A function that launches kernels: an entry of a file. `fly.jit` creates a subclass that also
    runs it, with its own `options`. `constants` are values of compile-time constants where a
    signature gives none."""

    is_decorated: ClassVar[bool] = True
    rules: ClassVar[Any] = None
    constants: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    function: FunctionType
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        functools.update_wrapper(self, self.function)  # type: ignore[arg-type]

    @property
    def as_helper(self) -> Any:
        """The function to run for a call while tracing."""
        return self.function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs the function. While tracing, a host function is an ordinary helper."""
        if tracing.active() is None:
            self.run(arguments, named)
        from fly_trace.control.calls.call import call

        return call(self.function, *arguments, **named)

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> NoReturn:
        raise InputError(
            f"{self.name} is a host function: compile it with fly-trace, or use fly.jit to run it"
        )


@overload
def kernel(function: Callable[..., Any], /) -> KernelFunction: ...
@overload
def kernel(
    *, name: str | None = None, known_block_size: Any = None
) -> Callable[[Callable[..., Any]], KernelFunction]: ...


def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    known_block_size: Any = None,
) -> Any:
    """Makes a function a kernel. `name` is its symbol in the code object. `known_block_size` is the
    block size that every launch must have."""

    def make(plain: Any) -> KernelFunction:
        plain = _function(plain, "@fly.kernel")
        block = None
        if known_block_size is not None:
            sizes = (
                known_block_size
                if isinstance(known_block_size, (tuple, list))
                else [known_block_size]
            )
            padded = (*sizes, 1, 1)[:3]
            block = (int(padded[0]), int(padded[1]), int(padded[2]))
        return KernelFunction(plain, name or plain.__name__, block)

    return make if function is None else make(function)
