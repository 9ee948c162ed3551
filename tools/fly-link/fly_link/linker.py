"""The stage: `link` makes an image from objects or assembly, with the linker of their backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_common.errors import UsageError
from fly_plugin import active

from fly_link.options import Options

if TYPE_CHECKING:
    from fly_common.diagnostics import Warn

    from fly_link.backends.interface import Linker

DEFAULTS = Options()
STAMPS = b".fly.plugins"  # the section with the plugins that the link of an object needs


def link(
    objects: Sequence[bytes],
    names: Sequence[str] | None = None,
    *,
    options: Options = DEFAULTS,
    backend: str | None = None,
    warn: Warn | None = None,
) -> bytes:
    """Links `objects` into an image. `names` are their names in messages. `backend` names the
    backend whose linker does it; by default it is the one that reads the first object. `warn` is
    called with each warning.

    Raises InputError if an input is not an object, if two do not match (target, symbol defined
    twice, two host programs), if a symbol is undefined, or if the host program is damaged or does
    not match the code. Raises MissingError if a program is not found.
    """
    from fly_common.programs import process

    names = names or _numbered(len(objects))
    with process.limited(options.timeout):
        if any(STAMPS in one for one in objects):
            from fly_link import plugin_stamps

            plugin_stamps.check(objects, names)
        if active():
            made = _with_plugins(objects, names, options, backend, warn)
        else:
            made = linker_for(objects[0], backend).link(objects, names, options, warn)
    if warn and options.emit == "image":
        from fly_image import spills

        for one in spills.warnings(made):
            warn(one)
    return made


def _with_plugins(
    objects: Sequence[bytes],
    names: Sequence[str],
    options: Options,
    backend: str | None,
    warn: Warn | None,
) -> bytes:
    """Links with the slots of the active plugins before and after."""
    from fly_plugin import contents

    objects = [contents.apply("link.begin", one) for one in objects]
    made = linker_for(objects[0], backend).link(objects, names, options, warn)
    return contents.apply("link.end", made) if options.emit == "image" else made


def linker_for(data: bytes, backend: str | None = None) -> Linker:
    """Returns the linker of a backend, or the one that reads `data`; for data that none reads the
    default backend's, which refuses it."""
    from fly_backend import registry
    from fly_common import artifact

    if backend is not None:
        return of_backend(backend)
    kind = artifact.identify(data)
    linkers = [of_backend(one.name) for one in registry.loaded() if one.linker]
    return next((linker for linker in linkers if kind in linker.reads), linkers[0])


def of_backend(name: str) -> Linker:
    """Returns the linker of the backend `name`. Raises UsageError if it has none."""
    from fly_backend import registry
    from fly_common.resolve import resolve

    backend = registry.find(name)
    if not backend.linker:
        raise UsageError(f"the backend {backend.name} has no linker")
    return resolve(backend.linker)


def fingerprint(options: Options = DEFAULTS, backend: str | None = None) -> str:
    """Identifies everything that this stage's result depends on besides its input. `backend` is
    the default backend if it is None."""
    from fly_backend import registry

    return of_backend(backend or registry.default().name).fingerprint(options)


def _numbered(count: int) -> list[str]:
    return ["<stdin>"] if count == 1 else [f"object {n + 1}" for n in range(count)]
