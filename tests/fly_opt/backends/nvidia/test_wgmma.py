"""Matrix descriptors of views in shared memory: PTX ISA, "Matrix Descriptor Format"."""

from __future__ import annotations

import pytest
from fly_dialect.types import MemRefSpec
from fly_opt.backends.nvidia.atoms.wgmma import place_of


def place(text: str, rows: int, k: int) -> tuple[bool, int, int, int]:
    found = place_of(MemRefSpec.parse(text), rows, k)
    return found.along_k, found.leading, found.stride, found.row


@pytest.mark.parametrize(
    ("layout", "rows", "k", "expected"),
    [
        # Along K: rows of 128, 64 and 32 bytes; 8 of them are a group.
        ("bf16, shared, (64,16):(64,1), S<3,4,3>", 64, 16, (True, 16, 1024, 128)),
        ("bf16, shared, (64,16):(32,1), S<2,4,3>", 64, 16, (True, 16, 512, 64)),
        ("f32, shared, (256,8):(32,1), S<3,4,3>", 256, 8, (True, 16, 1024, 128)),
        ("i8, shared, (8,32):(32,1), S<1,4,3>", 8, 32, (True, 16, 0, 32)),
        # Without a swizzle groups of 8 rows of 16 bytes lie one behind the other.
        ("f16, shared, ((8,8),(8,2)):((8,128),(1,64))", 64, 16, (True, 128, 256, 0)),
        # Across K: columns of 64 elements, then groups of 8 values of K.
        ("f16, shared, ((64,4),16):((1,4096),64), S<3,4,3>", 256, 16, (False, 8192, 1024, 128)),
        ("f16, shared, (64,16):(1,64), S<3,4,3>", 64, 16, (False, 16, 1024, 128)),
    ],
)
def test_fields(layout: str, rows: int, k: int, expected: tuple[bool, int, int, int]) -> None:
    assert place(layout, rows, k) == expected


def test_bits() -> None:
    found = place_of(MemRefSpec.parse("f16, shared, ((64,4),16):((1,4096),64), S<3,4,3>"), 256, 16)
    assert found.bits == 8192 >> 4 << 16 | 1024 >> 4 << 32 | 1 << 62


@pytest.mark.parametrize(
    "layout",
    [
        "bf16, shared, (64,16):(16,1), S<3,4,3>",  # rows are not 128 bytes apart
        "bf16, shared, (64,16):(1,64)",  # across K without a swizzle
        "f32, shared, (64,8):(1,64), S<3,4,3>",  # across K with 32 bits
        "bf16, shared, (64,16):(64,1), S<3,3,3>",  # no swizzle of the hardware
    ],
)
def test_layouts_that_no_descriptor_has(layout: str) -> None:
    spec = MemRefSpec.parse(layout)
    with pytest.raises(ValueError, match=r"wgmma can't read a tile|no swizzle of the hardware"):
        place_of(spec, 64, 8 if spec.element == "f32" else 16)
