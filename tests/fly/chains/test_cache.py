"""fly.cache: what users see of the content store."""

from __future__ import annotations

from fly_store.store import default_store, key_of

from fly import cache


def test_entries_are_counted_pruned_and_cleared(private_cache):
    assert cache.folder() == str(private_cache / "store")
    assert cache.size() == 0
    keys = [key_of("stage", bytes([number])) for number in range(3)]
    for number, key in enumerate(keys):
        default_store().put(key, bytes([number]) * 5000)
    assert cache.size() >= 15000
    assert cache.prune(10**9) == 0
    assert cache.damaged() == []
    entries = [path for path in (private_cache / "store" / "objects").rglob("*") if path.is_file()]
    assert len(entries) == len(keys)
    damaged = next(path for path in entries if b"\1\1\1" in path.read_bytes())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert cache.damaged() == [keys[1]]
    cache.clear()
    assert default_store().get(keys[0]) is None
    assert (cache.size(), cache.damaged()) == (0, [])
