"""`--like NAME=FILE.npy`: the type comes from the header, and a damaged header is an error."""

import numpy as np
import pytest
from fly_common.errors import UsageError
from fly_trace.signatures.npy_headers import of_npy


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


@pytest.mark.parametrize("static", [False, True])
def test_the_type_is_that_of_the_array(tmp_path, static):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float16))
    expected = "f16[2,3]" if static else "f16[?,?]"
    assert str(of_npy(str(tmp_path / "x.npy"), static)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ...}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2**70,)}",
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**30},)}}",
        "{'descr': {}, 'fortran_order': False, 'shape': ()}",
        "[" * 30_000,
        "-" * 60_000 + "1",
    ],
)
@pytest.mark.parametrize("static", [False, True])
def test_a_damaged_header_is_refused(tmp_path, static, text):
    path = tmp_path / "x.npy"
    path.write_bytes(header(text))
    with pytest.raises(UsageError, match=r"its \.npy header is damaged"):
        of_npy(str(path), static)
