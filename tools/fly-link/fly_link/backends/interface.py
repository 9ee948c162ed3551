"""`Linker`: the interface of fly-link to a backend. A backend's record refers to its linker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fly_common.artifact import Artifact
    from fly_common.diagnostics import Warn

    from fly_link.options import Options


class Linker(Protocol):
    """Makes an image of what fly-llc made."""

    @property
    def reads(self) -> tuple[Artifact, ...]:
        """The kinds of input. fly-link selects the linker by its first input, unless a backend is
        named."""
        ...

    def link(
        self,
        objects: Sequence[bytes],
        names: Sequence[str],
        options: Options,
        warn: Warn | None,
    ) -> bytes:
        """Returns the image of `objects`, which have these names in messages. `warn` is called with
        each warning. Raises InputError for inputs that can't be linked, UsageError
        for options that do not apply, MissingError for a program that is not found."""
        ...

    def fingerprint(self, options: Options) -> str:
        """Identifies everything that the result depends on besides the inputs."""
        ...

    def ahead(self) -> tuple[str, Sequence[str]] | None:
        """Returns the path and arguments of the program that `link` will run on one object from
        standard input, so that it can be started before the object exists; else None."""
        ...
