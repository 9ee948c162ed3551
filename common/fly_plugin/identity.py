"""What a stage's result depends on because of plugins: the part of its fingerprint.

A plugin is in the fingerprint of the stages that it has something in: its id, its version, its
options, and a digest of all files of its packages. A change of a plugin so reruns these stages.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec

from fly_common.errors import MissingError

from fly_plugin import VERIFY, active, contents
from fly_plugin.activation import Active
from fly_plugin.slots import LLC, OPT, TRACE, find


def of_stage(stage: str) -> str:
    """Identifies what the active plugins do in a stage: "" if none does anything there."""
    parts = [_of(one, stage) for one in active() if touches(one, stage)]
    if stage in (TRACE, OPT):  # these stamp what they make
        parts += [one.stamp for one in active()]
    if parts and os.environ.get(VERIFY):
        parts.append("verified")
    return "\n".join(parts)


def touches(one: Active, stage: str) -> bool:
    """Whether a plugin has something in a stage."""
    plugin = one.plugin
    if any(slot.stage == stage for slot in map(find, plugin.slots) if slot):
        return True
    if stage == TRACE:
        return bool(plugin.dialects or plugin.namespaces or plugin.atoms)
    if stage == OPT:
        own = plugin.dialects or plugin.atoms or plugin.passes
        return bool(own or plugin.backends or plugin.targets)
    return bool(plugin.backends or (stage == LLC and plugin.filters))


def _of(one: Active, stage: str) -> str:
    plugin = one.plugin
    words = [one.stamp, str(plugin), repr(one.options), digest(*plugin.packages)]
    for name in plugin.slots:
        slot = find(name)
        if slot is not None and slot.stage == stage:
            seat = contents.seat_of(one, name)
            words.append(f"{name} {contents.content_identity(seat) if seat else ''}")
    return " ".join(words)


@functools.cache
def digest(*packages: str) -> str:
    """Returns a digest of the files of top-level packages and modules. It is computed once in a
    process: the running code is that which was imported."""
    from fly_store import file_digests

    total = sha256()
    for package in packages:
        for name, path in _files(package):
            total.update(f"{name} {file_digests.digest_of(path)}\n".encode())
    return total.hexdigest()


def _files(package: str) -> Iterator[tuple[str, str]]:
    """The files of a package or module, sorted, except compiled ones."""
    module = sys.modules.get(package)
    spec = getattr(module, "__spec__", None) or find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        path = (spec and spec.origin) or getattr(module, "__file__", None)
        if path is None or not os.path.isfile(path):
            raise MissingError(f"the Python module {package} has no source file")
        yield package, path
        return
    for root in folders:
        for folder, inner, names in os.walk(root):
            inner[:] = sorted(name for name in inner if name != "__pycache__")
            for name in sorted(names):
                path = os.path.join(folder, name)
                yield f"{package}{path[len(root) :]}", path
