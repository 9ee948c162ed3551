"""torch's CPU tensors as arguments: the same memory, in place; what can't be passed."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from fly_common.errors import MissingError, UsageError
from fly_run.launch.arrays.protocol import NUMPY

from fly.call.arrays.array_kinds import TORCH, arrays_for
from fly.call.arrays.views import is_array, view

TYPES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
}
SOURCE = """
    import fly
    import fly.expr as fx

    @fly.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor, rows: fx.Int64, columns: fx.Int64):
        row = fx.block_idx.x
        for j in range(fx.Int64(fx.thread_idx.x), columns, 64):
            Y[row, j] = X[row, j] + X[row, j]

    @fly.jit
    def double(X: fx.Tensor, Y: fx.Tensor):
        kernel(X, Y, X.shape[0], X.shape[1]).launch(grid=X.shape[0], block=64)
"""


@pytest.fixture
def double(tmp_path: Path, handlers: Path):
    path = tmp_path / "kernels.py"
    path.write_text(textwrap.dedent(SOURCE))
    spec = importlib.util.spec_from_file_location("kernels", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    return module.double


@pytest.mark.parametrize(("dtype", "name"), TYPES.items(), ids=TYPES.values())
def test_element_types(dtype: torch.dtype, name: str):
    tensor = torch.zeros(3, 4).to(dtype)
    assert is_array(tensor)
    seen = view(tensor, "A")
    assert seen.dtype == name
    assert seen.data.shape == (3, 4)
    seen.data[1, 2] = 1
    assert tensor[1, 2].float() != 0


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32]
)
def test_kernels_write_into_the_tensor(double, dtype: torch.dtype):
    x = torch.arange(70).reshape(7, 10).to(dtype)
    y = torch.zeros_like(x)
    double(x, y)
    assert torch.equal(y, x + x)


def test_strided_tensors(double):
    x = torch.arange(60.0).reshape(6, 10)
    y = torch.zeros(5, 6)
    double(x[:, ::2].t(), y)
    assert torch.equal(y, 2 * x[:, ::2].t())


def test_a_numpy_array_and_a_tensor(double):
    x = torch.ones(2, 3)
    y = torch.zeros(2, 3)
    double(x.numpy(), y)
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.zeros(2, dtype=torch.complex64), "elements of type torch.complex64 are not"),
        (lambda: torch.zeros(2, device="meta"), "argument A is on meta"),
        (lambda: torch.zeros(2).to_sparse(), "a sparse, conjugated or negated tensor"),
        (lambda: torch.zeros(2, dtype=torch.uint4), "torch.uint4 are not"),
        (
            lambda: torch.ones(2, dtype=torch.complex64).conj(),
            "a sparse, conjugated or negated tensor",
        ),
        (
            lambda: torch.ones(2, dtype=torch.complex64).conj().imag,
            "a sparse, conjugated or negated tensor",
        ),
    ],
    ids=["complex", "device", "sparse", "uint4", "conjugated", "negated"],
)
def test_what_cannot_be_passed(make, message: str):
    with pytest.raises(UsageError) as raised:
        view(make(), "A")
    assert message in raised.value.message


def test_what_numpy_lacks_travels_as_its_bits():
    values = torch.tensor([[1.0, -2.0, 0.0]] * 2)
    wide = view(values.to(torch.bfloat16).T, "A")
    assert (wide.data.dtype, wide.data.tolist()) == (
        "uint16",
        [[0x3F80] * 2, [0xC000] * 2, [0] * 2],
    )
    assert wide.data.strides == (2, 6)
    narrow = view(values.to(torch.float8_e4m3fn), "A")
    assert (narrow.data.dtype, narrow.data.tolist()) == ("uint8", [[0x38, 0xC0, 0]] * 2)


def test_a_tensor_that_requires_its_gradient_is_seen_without():
    tensor = torch.zeros(3, requires_grad=True)
    view(tensor, "A").data[0] = 1
    assert tensor.detach().tolist() == [1, 0, 0]


def test_what_vmap_passes_has_no_memory():
    def call(tensor):
        with pytest.raises(UsageError, match="can't be seen as an array on the CPU"):
            view(tensor, "A")
        return tensor

    torch.vmap(call)(torch.ones(2, 4))


def test_arrays_are_of_the_kind_that_is_given():
    assert arrays_for([1, torch.zeros(1)]) is TORCH
    assert arrays_for([np.zeros(1), 2]) is NUMPY
    assert arrays_for([]) is NUMPY


def test_arrays_that_a_program_makes_for_torch():
    made, memory = TORCH.empty("bf16", (2, 3), (4, 1), 8)
    assert (made.dtype, tuple(made.shape), made.stride()) == (torch.bfloat16, (2, 3), (4, 1))
    assert (memory.nbytes, memory.ctypes.data) == (16, made.data_ptr())
    whole = torch.arange(20.0)[2:]
    part = TORCH.strided(whole, (2, 2), (6, 2), 3)
    assert part.tolist() == [[5.0, 7.0], [11.0, 13.0]]
    assert TORCH.memory(part).tolist() == part.tolist()
    with pytest.raises(MissingError, match=r"^torch has no memory: [^\n]+$"):
        TORCH.empty("f32", (1 << 60,), (1,), 1 << 60)
