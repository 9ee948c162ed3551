"""Parses any type of the dialect."""

from __future__ import annotations

import re
from functools import lru_cache

from fly_dialect.extension import extension_of
from fly_dialect.types import OtherSpec, Spec, read_body, reader, split_type


@lru_cache(maxsize=8192)
def parse_type(source: str) -> Spec:
    """Parses `!fly.…<…>` or `!fly_rocdl.…<…>`, or raises ValueError. Returns other text as is."""
    parts = split_type(source)
    if parts is None:
        return source
    dialect, name, body = parts
    if read := reader(dialect, name):
        return read_body(read, body)
    extension = None if dialect == "fly" else extension_of(source.strip())
    if extension is not None and (read_own := extension.types.get(name)) is not None:
        return read_own(body.strip())
    # Atoms have their own registry, which few programs need.
    from fly_dialect.atoms import specs

    if read_atom := specs.reader(f"{dialect}.{name}"):
        return read_body(read_atom, body)
    return OtherSpec(name, re.sub(r"\s+", " ", body.strip()))
