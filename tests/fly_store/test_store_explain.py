"""`FLY_CACHE=explain`: a line for each look at the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from fly_store.store import Store, key_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", explain=True)


def obtain(store: Store, fingerprint: str, data: bytes) -> str:
    key = key_of(fingerprint, data)
    store.obtain(key, lambda: b"made", label="opt", origin=(fingerprint, data))
    return key


def path_of(store: Store, kind: str) -> Path:
    (path,) = (path for path in Path(store.folder or "", kind).rglob("*") if path.is_file())
    return path


def test_a_miss_is_explained_by_what_was_kept_before(store: Store, capsys):
    first = obtain(store, "opt 1", b"in")
    again = obtain(store, "opt 1", b"in")
    other = obtain(store, "opt 2", b"in")
    new = obtain(store, "opt 1", b"new")
    assert capsys.readouterr().err.splitlines() == [
        f"fly: cache: opt: miss {first[:16]}: it never ran, or its result was deleted",
        f"fly: cache: opt: hit {again[:16]}",
        f"fly: cache: opt: miss {other[:16]}: changed: 1 → 2",
        f"fly: cache: opt: miss {new[:16]}: its input is new",
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("keys", b"no key"), ("keys", b"\xff"), ("objects", b"changed")],
)
def test_damage_is_said_and_explains_itself(store: Store, capsys, kind: str, text: bytes):
    key = obtain(store, "opt 1", b"in")
    path_of(store, kind).write_bytes(text)
    capsys.readouterr()
    obtain(store, "opt 1", b"in")
    assert capsys.readouterr().err == f"fly: cache: opt: damaged {key[:16]}\n"


def test_a_key_that_ends_early_is_damaged(store: Store, capsys):
    key = obtain(store, "opt 1", b"in")
    path_of(store, "keys").write_text(f"fly-store 2\nkey {key}\n")
    capsys.readouterr()
    obtain(store, "opt 1", b"in")
    assert capsys.readouterr().err == f"fly: cache: opt: damaged {key[:16]}\n"


def test_a_store_that_is_off_says_so(capsys):
    key = obtain(Store(None, explain=True), "opt 1", b"in")
    assert capsys.readouterr().err == f"fly: cache: opt: off {key[:16]}\n"


def test_entries_are_the_keys_with_what_they_stand_for(store: Store):
    assert not list(store.entries())
    one, other = obtain(store, "opt 1", b"in"), obtain(store, "opt 2", b"in")
    assert dict(store.entries()) == {one: b"made", other: b"made"}
    path_of(store, "objects").unlink()
    assert dict(store.entries()) == {one: None, other: None}
