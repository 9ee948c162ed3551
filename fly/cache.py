"""The user's content store, for those who want to look at it or empty it.

python -c "import fly; print(fly.cache.size())"
"""

from __future__ import annotations

from fly_store.store import default_store


def folder() -> str | None:
    """Where results are kept; None under `FLY_CACHE=off`, and where others could write there."""
    return default_store().folder


def size() -> int:
    """Bytes on disk."""
    return default_store().size()


def clear() -> None:
    """Deletes every result. Safe while other processes compile."""
    default_store().clear()


def prune(limit: int) -> int:
    """Deletes what was not used for longest until at most `limit` bytes are left; returns the bytes
    freed. The store does this by itself, with `FLY_CACHE_LIMIT` (4G), about once an hour."""
    return default_store().prune(limit)


def damaged() -> list[str]:
    """The keys whose result is missing or damaged. They count as misses; nothing need be done."""
    return [key for key, data in default_store().entries() if data is None]
