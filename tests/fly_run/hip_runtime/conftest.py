"""A HIP state for each test, and a kernel."""

from __future__ import annotations

import pytest
from hip_support import Hip


@pytest.fixture
def hip() -> Hip:
    return Hip()


@pytest.fixture
def add(assemble) -> bytes:
    """add(A, B, C, n): C[i] = A[i] + B[i] for n floats, 64 in a block."""
    return assemble("add")
