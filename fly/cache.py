"""Inspects and empties the user's content store.

python -c "import fly; print(fly.cache.size())"
"""

from __future__ import annotations

from fly_store.store import default_store


def folder() -> str | None:
    """Returns the store's folder; None with `FLY_CACHE=off` or if others could write there."""
    return default_store().folder


def size() -> int:
    """Returns the size of the store on disk, in bytes."""
    return default_store().size()


def clear() -> None:
    """Deletes every result. Safe while other processes compile."""
    default_store().clear()


def prune(limit: int) -> int:
    """Deletes the least recently used results until at most `limit` bytes are left. Returns the
    number of bytes freed. The store prunes itself about once an hour, to `FLY_CACHE_LIMIT` (4G)."""
    return default_store().prune(limit)


def damaged() -> list[str]:
    """Returns the keys whose result is missing or damaged. They count as misses."""
    return [key for key, data in default_store().entries() if data is None]
