"""The content store: what is put is found, damage is a miss, and nothing breaks it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import platformdirs
import pytest
from fly_common.errors import UsageError
from fly_store import store as store_module
from fly_store.store import Store, default_store, key_of

from .stores import DATA, crash, python


def objects(store: Store) -> list[Path]:
    return [path for path in Path(store.folder or "", "objects").rglob("*") if path.is_file()]


def test_what_is_put_is_found(store: Store):
    key = key_of("opt", b"in")
    assert store.get(key) is None
    assert store.put(key, DATA, label="opt", suffix=".ll")
    assert store.get(key) == DATA


def test_the_object_is_the_artifact_itself_named_by_its_digest(store: Store):
    store.put(key_of("opt", b"in"), DATA, suffix=".ll")
    (path,) = objects(store)
    assert path.read_bytes() == DATA
    assert path.name == sha256(DATA).hexdigest() + ".ll"


def test_a_key_depends_on_where_fingerprint_ends_and_input_begins():
    keys = {key_of("ab", b"c"), key_of("a", b"bc"), key_of("", b"abc"), key_of("ab", b"c ")}
    assert len(keys) == 4
    assert key_of("ab", b"c") == sha256(b"2\nabc").hexdigest()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data + b"\n",
        lambda data: data[:5] + b"X" + data[6:],
        lambda data: bytes(len(data)),
    ],
    ids=["cut", "empty", "longer", "changed", "zeros"],
)
def test_a_damaged_object_is_a_miss_and_is_made_again(store: Store, damage):
    key = key_of("opt", b"in")
    store.put(key, DATA)
    (path,) = objects(store)
    path.write_bytes(damage(DATA))
    assert store.get(key) is None
    assert store.obtain(key, lambda: DATA) == DATA
    assert store.get(key) == DATA


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "fly-store 2\n",
        "fly-store 2\nkey {key}\n",
        "fly-store 99\nkey {key}\nobject 00\n",
        "\0",
        "\xff",
    ],
)
def test_a_damaged_key_is_a_miss(store: Store, text: str):
    key = key_of("opt", b"in")
    store.put(key, DATA)
    (path,) = (path for path in Path(store.folder or "", "keys").rglob("*") if path.is_file())
    path.write_text(text.format(key=key), encoding="latin1")
    assert store.get(key) is None


def test_an_exchanged_key_is_a_miss(store: Store):
    """Two whole entries, one in the other's place: each names the key that it is of."""
    one, other = key_of("opt", b"one"), key_of("opt", b"other")
    store.put(one, DATA)
    store.put(other, DATA + DATA)
    first, second = (Path(store._path("keys", key)) for key in (one, other))
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])
    assert store.get(one) is None
    assert store.get(other) is None
    assert store.obtain(one, lambda: DATA) == DATA == store.get(one)


def test_what_others_can_write_is_a_miss(store: Store):
    """A key's file or an object that others may have written stands for nothing."""
    key = key_of("opt", b"in")
    for kind in ("keys", "objects"):
        store.put(key, DATA)
        (path,) = (path for path in Path(store.folder or "", kind).rglob("*") if path.is_file())
        for mode in (0o620, 0o602):
            path.chmod(mode)
            assert store.get(key) is None
        assert store.obtain(key, lambda: DATA) == DATA == store.get(key)


def test_entries_are_the_users_alone_whatever_the_umask(tmp_path: Path):
    previous = os.umask(0)
    try:
        store = Store(tmp_path / "a" / "store")
        store.put(key_of("opt", b"in"), DATA)
        store.obtain(key_of("opt", b"other"), lambda: DATA)
    finally:
        os.umask(previous)
    assert store.get(key_of("opt", b"in")) == DATA
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


def test_a_key_cannot_lead_out_of_the_store(store: Store, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    key = key_of("opt", b"in")
    store.put(key, DATA)
    (path,) = (path for path in Path(store.folder or "", "keys").rglob("*") if path.is_file())
    path.write_text(f"fly-store 2\nkey {key}\nobject xx/../../../{secret.name}\n")
    assert store.get(key) is None


def test_any_file_may_be_deleted(store: Store):
    key = key_of("opt", b"in")
    store.put(key, DATA)
    objects(store)[0].unlink()
    assert store.get(key) is None
    assert store.obtain(key, lambda: DATA) == DATA == store.get(key)


def test_obtain_makes_once(store: Store):
    made = []
    for _ in range(3):
        store.obtain(key_of("opt", b"in"), lambda: made.append(1) or DATA)
    assert made == [1]


def test_what_is_not_valid_afterwards_is_not_kept(store: Store):
    key = key_of("opt", b"in")
    assert store.obtain(key, lambda: DATA, valid=lambda: False) == DATA
    assert store.get(key) is None


def test_a_failed_maker_leaves_nothing_and_blocks_nobody(store: Store):
    key = key_of("opt", b"in")

    def fail() -> bytes:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.obtain(key, fail)
    begin = time.monotonic()
    assert store.obtain(key, lambda: DATA) == DATA
    assert time.monotonic() - begin < 5


# A store that writes its files where they belong, piece by piece.
CARELESS = """
from fly_store import store
def write(self, path, data):
    store._unlink(path)
    with open(store._open_in_folder(path, 65), "wb") as file:
        for byte in range(0, len(data), 100):
            file.write(data[byte : byte + 100])
            file.flush()
store.Store._write = write
"""


def test_a_store_that_is_not_whole_is_told():
    done = crash(CARELESS, 10)
    assert done.returncode == 1, done.stdout
    assert "does not hold what its name says" in done.stdout
    assert " things are wrong\n" in done.stdout


def test_pruning_keeps_what_was_used_last(store: Store):
    keys = [key_of("stage", str(index).encode()) for index in range(10)]
    for index, key in enumerate(keys):
        store.put(key, bytes([index]) * 100_000)
    folder = Path(store.folder or "")
    past = time.time() - 10 * store_module.HOUSEKEEPING
    for path in [*objects(store), *(path for path in (folder / "keys").rglob("*"))]:
        os.utime(path, (past, past))
    assert store.get(keys[3]) is not None  # used now
    freed = store.prune(500_000)
    assert freed > 500_000
    assert store.size() <= 500_000
    assert store.get(keys[3]) == bytes([3]) * 100_000
    assert sum(store.get(key) is not None for key in keys) < 5


def test_the_limit_is_kept_without_being_asked(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(store_module, "HOUSEKEEPING", -1.0)  # at each entry
    store = Store(tmp_path / "store", limit=300_000)
    for index in range(10):
        store.put(key_of("stage", str(index).encode()), bytes([index]) * 100_000)
        assert store.size() <= 300_000


def test_clear(store: Store):
    store.put(key_of("a", b""), DATA)
    store.clear()
    assert store.get(key_of("a", b"")) is None
    assert not objects(store)
    assert store.put(key_of("a", b""), DATA)


OBTAIN = """
import sys
from fly_store.store import default_store, key_of
for name in ("a", "a", "b"):
    print(default_store().obtain(key_of("opt", name.encode()), lambda: b"made " + name.encode(),
                                 label="opt").decode())
"""


def obtain(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        python(OBTAIN),
        env={**os.environ, "FLY_CACHE_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
    )


UNWRITABLE = """\
fly: warning: the store {folder}/store can't be written: {reason}; results are not cached
  free some space there, or set FLY_CACHE_DIR to another directory, or FLY_CACHE=off
"""


def test_an_unwritable_store_is_said_once_and_stops_nothing(tmp_path: Path):
    (tmp_path / "store").write_text("a file where the folder should be")
    done = obtain(tmp_path)
    assert (done.returncode, done.stdout) == (0, "made a\nmade a\nmade b\n")
    assert done.stderr == UNWRITABLE.format(folder=tmp_path, reason="Not a directory")


@pytest.mark.parametrize("where", ["/proc/nowhere", "/dev/null"])
def test_a_store_where_nothing_can_be_made(where: str):
    done = obtain(Path(where))
    assert (done.returncode, done.stdout) == (0, "made a\nmade a\nmade b\n")
    assert done.stderr.startswith(f"fly: warning: the store {where}/store can't be written: ")
    assert done.stderr.count("warning") == 1


def test_a_full_disk_stops_nothing_and_leaves_nothing_half(tmp_path: Path):
    # A limit on the size of files stands in for a full disk: write() fails in the middle too.
    code = OBTAIN.replace('b"made "', 'b"x" * 200_000 + b"made "').replace(
        ".decode())", "[200_000:].decode())"
    )

    def few_bytes() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        python(code),
        env={**os.environ, "FLY_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        preexec_fn=few_bytes,
    )
    assert (done.returncode, done.stdout) == (0, "made a\nmade a\nmade b\n")
    assert done.stderr == UNWRITABLE.format(folder=tmp_path, reason="File too large")
    left = [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert left == ["lock"]


def test_a_cache_folder_that_others_can_write_is_not_used(tmp_path: Path):
    """An entry that lies there is not believed, nothing is kept, and one line says why."""
    obtain(tmp_path, FLY_CACHE_DIR=str(tmp_path / "open"))
    before = sorted((tmp_path / "open").rglob("*"))
    (key,) = (path for path in before if path.name == key_of("opt", b"a"))
    planted = b"made by somebody else"
    digest = sha256(planted).hexdigest()
    (tmp_path / "open" / "store" / "objects" / digest).write_bytes(planted)
    key.write_text(f"fly-store 2\nkey {key_of('opt', b'a')}\nobject {digest}\n")
    assert "made by somebody else" in obtain(tmp_path / "open").stdout  # while it is private
    (tmp_path / "open").chmod(0o777)
    before = sorted((tmp_path / "open").rglob("*"))
    done = obtain(tmp_path / "open")
    assert (done.returncode, done.stdout) == (0, "made a\nmade a\nmade b\n")
    assert done.stderr == (
        f"fly: warning: the cache directory {tmp_path}/open is not private: {tmp_path}/open can be"
        " written by everyone; no results are kept\n"
        f"  chmod -R go-w {tmp_path}/open, or set FLY_CACHE_DIR to a directory of your own\n"
    )
    assert sorted((tmp_path / "open").rglob("*")) == before


def test_cache_off_neither_reads_nor_writes(tmp_path: Path):
    assert obtain(tmp_path, FLY_CACHE="off").stdout == "made a\nmade a\nmade b\n"
    assert not (tmp_path / "store").exists()


def test_explain_says_what_was_found(tmp_path: Path):
    lines = obtain(tmp_path, FLY_CACHE="explain").stderr.splitlines()
    a, b = key_of("opt", b"a")[:16], key_of("opt", b"b")[:16]
    assert lines == [
        f"fly: cache: opt: miss {a}",
        f"fly: cache: opt: hit {a}",
        f"fly: cache: opt: miss {b}",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("FLY_CACHE", "maybe", "FLY_CACHE=maybe: must be on, off or explain"),
        (
            "FLY_CACHE_LIMIT",
            "lots",
            "FLY_CACHE_LIMIT=lots: is not a size\n  write it as 500M or 4G",
        ),
        ("FLY_CACHE_LIMIT", "inf", "FLY_CACHE_LIMIT=inf: is not a size\n  write it as 500M or 4G"),
        ("FLY_CACHE_LIMIT", "5X", "FLY_CACHE_LIMIT=5X: is not a size\n  write it as 500M or 4G"),
    ],
)
def test_a_wrong_setting_is_refused(monkeypatch, variable: str, value: str, message: str):
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError) as raised:
        default_store()
    assert str(raised.value) == message


@pytest.mark.parametrize("base", [None, "", "elsewhere"])
def test_the_usual_folder_is_the_platforms(monkeypatch, tmp_path: Path, base: str | None):
    monkeypatch.delenv("FLY_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if base is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", base and str(tmp_path / base))
    expected = platformdirs.user_cache_path("fly", appauthor=False)
    assert default_store().folder == str(expected / "store")


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("2k", 2048), ("1.5M", 3 << 19), ("4GB", 4 << 30), (" 2T ", 2 << 40)],
)
def test_sizes(monkeypatch, text: str, size: int):
    monkeypatch.setenv("FLY_CACHE_LIMIT", text)
    assert default_store().limit == size


@pytest.mark.parametrize(
    "text",
    [
        "label opt\nfingerprint 'a'\n",
        "label opt\ninput 00\nfingerprint 7\n",
        "label opt\ninput 00\nfingerprint [}\n",
        f"label opt\ninput 00\nfingerprint {'(' * 100_000}\n",
        f"label opt\ninput 00\nfingerprint {'-' * 100_000}1\n",
        f"label opt\ninput 00\nfingerprint {'9' * 5000}\n",
        "label opt\ninput 00\nfingerprint 'a\0'\n",
        "\xff\xfe",
    ],
)
def test_a_damaged_key_explains_nothing(store: Store, text: str):
    """`FLY_CACHE=explain` reads the keys of others' results."""
    from fly_store import explanation

    store.put(key_of("a", b"in"), DATA, label="opt", origin=("a", b"in"))
    (path,) = (path for path in Path(store.folder or "", "keys").rglob("*") if path.is_file())
    path.write_bytes(text.encode("latin1"))
    said = explanation.of(store, "opt", ("b", b"in"))
    assert said == "it never ran, or its result was deleted"
