"""Library functions that programs may call: what is known of them, and what shape rules say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fly_common.errors import MissingError
from fly_common.quoting import shortened
from fly_common.record import record

Extent: TypeAlias = Any  # an int, or what the tracer computes with


@record
class Like:
    """What a rule sees of a tensor, and says of one that is made. Without `strides`, in elements,
    it is C-contiguous."""

    dtype: str
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)


@record
class Made:
    """What a function makes, and which extents must be equal: (a, b, what they are)."""

    results: tuple[Like, ...] = ()
    equal: tuple[tuple[Extent, Extent, str], ...] = ()


Rule: TypeAlias = "Callable[..., Like | Made]"


@record
class Registered:
    """A function that programs may call. Without `function`, it is what `name` imports.
    `takes_out`: it writes to a tensor that is given as `out=`; for another its result is copied."""

    name: str
    shape: Rule
    function: Callable[..., Any] | None = None
    takes_out: bool = True

    @property
    def package(self) -> str:
        """The package that the name begins with. Its own names are its attributes."""
        return self.name.partition(".")[0]

    def resolve(self) -> Callable[..., Any]:
        """The function. MissingError where its module can't be imported."""
        if self.function is not None:
            return self.function
        import importlib

        package, *inner = self.name.split(".")
        try:
            found: Any = importlib.import_module(package)
            for part in inner:
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise MissingError(
                f"the program calls {self.name}, which is not there: {shortened(error)}",
                hint=f"install {self.package}",
            ) from None
        return found
