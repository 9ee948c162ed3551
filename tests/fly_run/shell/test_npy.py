"""Reading .npy files that are what they say, and files that are not."""

import io
import os
import threading

import numpy as np
import pytest
from fly_common.errors import FlyError, InputError, UsageError
from fly_run.shell import npy


@pytest.fixture
def load(tmp_path):
    def loaded(content: bytes) -> np.ndarray:
        (tmp_path / "x.npy").write_bytes(content)
        return npy.load(str(tmp_path / "x.npy"))

    return loaded


def saved(array: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.zeros((0, 5), np.int8),
        np.array(7, np.uint16),
        np.array([True, False]),
        np.arange(3, dtype=">i4"),
        np.zeros(4, "V2"),
    ],
)
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_what_numpy_writes_is_read(load, array, version):
    found = load(saved(array, version=version))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable
    assert found.flags.aligned


def test_what_is_written_numpy_reads():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert (np.load(io.BytesIO(npy.dump(array))) == array).all()


def test_a_large_file_is_mapped_and_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "MAPPED", 1000)
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((40, 50), np.float32))
    found = npy.load(str(path))
    found[:] = 1
    assert type(found) is np.ndarray
    assert np.load(path).max() == 0


def test_a_pipe_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(saved(np.arange(5)),))
    writer.start()
    assert npy.load(str(path)).tolist() == [0, 1, 2, 3, 4]
    writer.join()


HEADER = saved(np.arange(100, dtype=np.int32))


def header(shape: str, dtype: str = "<i4") -> bytes:
    """A file with this shape in its header."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "is not a .npy file"),
        (HEADER[:5], "is not a .npy file"),
        (HEADER[:7], "the .npy header is damaged: "),
        (HEADER[:60], "the .npy header is damaged: "),
        (HEADER[:-1], "is truncated: shape (100,) of int32 takes 400 bytes, but the file has 399"),
        (HEADER.replace(b"(100,)", b"(1e9,)"), "the .npy header is damaged: "),
        (HEADER.replace(b"(100,)", b"(-10,)"), "the .npy header is damaged: shape (-10,)"),
        (HEADER.replace(b"<i4", b"<q9"), "the .npy header is damaged: "),
        (HEADER.replace(b"'descr'", b"'mystr'"), "the .npy header is damaged: "),
        (HEADER.replace(b"}", b" "), "the .npy header is damaged: "),
        (HEADER.replace(b"(100,)", b"(True,)"), "the .npy header is damaged: shape (True,)"),
        (header(f"({'1,' * 65})"), "the .npy header is damaged: shape (1, 1, "),
        (header("(0, 9223372036854775807)"), "the .npy header is damaged: shape (0, 9223372036"),
        (header("(1,)", "(2,)<f4"), "contains ('<f4', (2,)), not numbers"),
        (header(f"({'9' * 4000},)"), "the .npy header is damaged: shape (9999"),
        (HEADER[:6] + b"\x03" + HEADER[7:], ".npy version 3.0 can't be read"),
        (HEADER[:6] + b"\x63" + HEADER[7:], ".npy version 99.0 can't be read"),
        (saved(np.array([{}, 1]), allow_pickle=True), "contains Python objects, not numbers"),
        (saved(np.zeros(3, [("a", "f4")])), "contains [('a', '<f4')], not numbers"),
        (saved(np.array(["ab"])), "contains <U2, not numbers"),
        (saved(np.zeros(3, "M8[s]")), "contains datetime64[s], not numbers"),
    ],
)
def test_what_is_no_array_is_one_line(load, content, message):
    with pytest.raises(InputError) as caught:
        load(content)
    assert caught.value.message.split(": ", 1)[1].startswith(message)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


def test_an_archive_is_named(load):
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    with pytest.raises(InputError) as caught:
        load(file.getvalue())
    assert "npz archive" in caught.value.hint


def test_a_header_can_not_ask_for_more_than_there_is(load):
    huge = HEADER.replace(b"(100,), }" + b" " * 12, b"(99999999999999999,), }")
    assert huge != HEADER
    with pytest.raises(InputError, match="is truncated"):
        load(huge.ljust(len(HEADER), b" "))


def test_every_truncation_is_an_input_error(load):
    for length in range(len(HEADER)):
        with pytest.raises(InputError):
            load(HEADER[:length])


def test_what_can_not_be_opened(tmp_path):
    for path, what in ((tmp_path / "none.npy", "no such file"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError, match=what):
            npy.load(str(path))
    assert issubclass(UsageError, FlyError)
