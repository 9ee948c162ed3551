"""Matrix products: shapes, types, memory orders, epilogues, split sums, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError
from fly_target.registry import find

from fly.kernels import conv2d, matmul, matmul_preshuffled, preshuffle
from fly.kernels.gemm import matrix_product, plans
from fly_kernels.judging import gradients, judge, tensor

SHAPES = [
    # a, b, type, whether a and b are transposed in memory
    ((64, 64), (64, 64), torch.float16, False, False),
    ((70, 50), (50, 62), torch.float16, True, True),
    ((33, 129), (129, 35), torch.bfloat16, False, False),  # elements are loaded one by one
    ((1, 100), (100, 130), torch.bfloat16, False, True),
    ((130, 17), (17, 1), torch.float32, True, False),
    ((2, 3, 20, 24), (3, 24, 40), torch.float16, False, True),
    ((4, 1, 9, 8), (2, 8, 12), torch.float32, False, False),
    ((2, 5, 30), (30, 16), torch.float64, False, True),
    ((130, 9), (9, 70), torch.float64, True, False),  # several blocks of a thread, along K
    ((40,), (2, 40, 9), torch.float16, False, False),
    ((3, 40), (40,), torch.float32, False, False),
    ((0, 16), (16, 8), torch.float16, False, False),
    ((5, 0), (0, 7), torch.float16, False, False),
    ((0, 4, 8), (0, 8, 8), torch.float32, False, False),
]


def operands(a, b, dtype, *transposed, scale=1.0):
    made = []
    for seed, (shape, turned) in enumerate(zip((a, b), transposed, strict=True)):
        if turned:
            made.append(tensor(seed, (*shape[:-2], shape[-1], shape[-2]), dtype, scale).mT)
        else:
            made.append(tensor(seed, shape, dtype, scale))
    return made


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_product(target, case):
    a, b = operands(*case)
    judge(matmul(a, b), torch.matmul, a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_strict(strict, target, dtype, turned):
    a, b = operands((9, 40), (40, 12), dtype, turned, not turned)
    bias = tensor(5, (12,), dtype)
    judge(matmul(a, b, bias, split_k=1), lambda a, b, bias: a @ b + bias, a, b, bias)


def test_split_strict(strict, target):
    a, b = operands((8, 70), (70, 8), torch.float16, False, True)
    judge(matmul(a, b, split_k=2), torch.matmul, a, b)


def test_eight_bits(target):
    a, b = [torch.randint(-128, 128, shape).to(torch.int8) for shape in ((40, 70), (70, 36))]
    exact = a.long() @ b.long()
    made = matmul(a, b)
    assert made.dtype == torch.int32
    assert torch.equal(made.long(), exact)
    assert torch.equal(matmul(a.mT.contiguous().mT, b, out_dtype=torch.float64).long(), exact)
    scaled = matmul(a, b, activation="relu", alpha=0.125, out_dtype=torch.float32)
    assert torch.equal(scaled.double(), exact.double().relu() / 8)


def test_eight_bit_floats(target):
    known = {
        "fnuz": ("float8_e4m3fnuz", "float8_e5m2fnuz"),
        "ocp": ("float8_e4m3fn", "float8_e5m2"),
    }
    formats = known.get(find(target).float8, ())
    for name in formats:
        a, b = operands((33, 70), (70, 40), torch.float32, False, True, scale=1.0)
        a, b = [x.to(getattr(torch, name)) for x in (a, b)]
        made = matmul(a, b)
        assert made.dtype == torch.float32
        judge(made, torch.matmul, a.float(), b.float())
        half = matmul(a, b, out_dtype=torch.float16)
        judge(half, torch.matmul, a.float().half(), b.float().half())
    if not formats:
        x = torch.zeros(8, 8).to(torch.float8_e5m2)
        with pytest.raises(UsageError, match=f"^{target} can't multiply f8E5M2\\n"):
            matmul(x, x)


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "silu"])
@pytest.mark.parametrize("split_k", [1, 3])
def test_epilogue(target, activation, split_k):
    a, b = operands((20, 150), (150, 42), torch.bfloat16, False, True)
    bias, c = tensor(7, (42,), torch.float32), tensor(8, (20, 1), torch.bfloat16)
    function = getattr(torch.nn.functional, activation) if activation else (lambda x: x)

    def reference(a, b, bias, c):
        wide = torch.promote_types(a.dtype, torch.float32)
        return function(0.25 * (a.to(wide) @ b.to(wide)) - 2 * c + bias)

    options = {"alpha": 0.25, "beta": -2.0, "out_dtype": torch.float32}
    made = matmul(a, b, bias, c, activation=activation, split_k=split_k, **options)
    judge(made, reference, a, b, bias, c)


def test_split_sums_are_the_same_in_each_run(target):
    a, b = operands((40, 2000), (2000, 24), torch.float16, False, False)
    first = matmul(a, b)  # the grid is small, so sums are split
    assert torch.equal(first, matmul(a, b))
    judge(first, torch.matmul, a, b)
    for parts in (1, 7, 1000):
        judge(matmul(a, b, split_k=parts), torch.matmul, a, b)


def test_views(target):
    x = tensor(1, (40, 200), torch.float16)
    for a in (x[:, 3:53], x[::2, :50], x[:, :100:2], x[1:2, :50], x[:, 7:8].expand(40, 50)):
        b = tensor(2, (40, 50), torch.float16).t()
        judge(matmul(a, b), torch.matmul, a, b)


def test_numpy(target):
    random = np.random.default_rng(3)
    a, b = [random.standard_normal(shape).astype(np.float32) for shape in ((3, 5, 20), (20, 7))]
    made = matmul(a, b, np.ones(7, np.float32), out_dtype=np.float64)
    assert type(made) is np.ndarray
    assert made.dtype == np.float64
    np.testing.assert_allclose(made, a.astype(np.float64) @ b + 1, atol=1e-5)
    flipped = matmul(a[:, ::-1], b[:, ::-1])
    np.testing.assert_allclose(flipped, (a.astype(np.float64) @ b)[:, ::-1, ::-1], atol=1e-5)


@pytest.mark.parametrize(
    "shapes", [((20, 24), (24, 18)), ((2, 9, 8), (8, 5)), ((8,), (3, 8, 4)), ((9,), (9,))]
)
def test_gradient(target, shapes):
    a, b = operands(*shapes, torch.float16, False, False)
    judge(gradients(matmul, a, b), lambda a, b: gradients(torch.matmul, a, b), a, b)


@pytest.mark.heavy
def test_torch_checks_the_operator(target):
    a, b = operands((3, 4), (2, 4, 5), torch.float64, False, False)
    bias, c = tensor(3, (5,), torch.float64), tensor(4, (1, 3, 1), torch.float64)
    arguments = [x.requires_grad_() for x in (a, b, bias, c)]
    torch.library.opcheck(matmul.torch, arguments, {"activation": "silu", "alpha": 0.5})
    torch.library.opcheck(matmul.torch, (a.detach(), b.detach()), {"out_dtype": torch.float32})
    for activation in (None, "relu", "gelu", "silu"):
        assert torch.autograd.gradcheck(
            lambda *x, name=activation: matmul(*x, activation=name, alpha=0.7, beta=1.5),
            arguments,
            fast_mode=True,
        )


@pytest.mark.heavy
def test_compiled_by_torch(target):
    compiled = torch.compile(lambda a, b: matmul(a, 2 * b, activation="relu"), fullgraph=True)
    for shape in ((9, 16), (5, 16)):
        a, b = operands(shape, (16, 8), torch.float32, False, False)
        judge(compiled(a, b), lambda a, b: (a @ (2 * b)).relu(), a, b)


UNITS = [
    # the target, the element type, the tile, what multiplies it, and the bytes of rows in LDS
    ("gfx90a", torch.bfloat16, (128, 128), ("MFMA", 32, 8), 64),
    ("gfx942", torch.float16, (128, 128), ("MFMA", 32, 8), 64),
    ("gfx942", torch.float16, (32, 64), ("MFMA", 16, 16), 128),
    ("gfx942", torch.float32, (64, 64), ("MFMA", 32, 2), 64),
    ("gfx942", torch.float64, (64, 64), ("MFMA", 16, 4), 64),
    ("gfx950", torch.float16, (128, 128), ("MFMA", 32, 16), 128),
    ("gfx950", torch.float8_e4m3fn, (128, 128), ("scaled MFMA", 32, 64), 128),
    ("gfx950", torch.float8_e5m2, (128, 32), ("scaled MFMA", 16, 128), 128),
    ("gfx1201", torch.float16, (128, 128), ("WMMA", 16, 16), 64),
    ("gfx1250", torch.float16, (32, 64), ("WMMA", 16, 32), 128),
    ("gfx1250", torch.float8_e4m3fn, (128, 128), ("WMMA", 16, 128), 128),
    ("sm_90a", torch.float16, (32, 32), ("FMA", 1, 1), 64),
]


@pytest.mark.parametrize(("name", "dtype", "tile", "instruction", "row"), UNITS, ids=str)
def test_units(monkeypatch, name, dtype, tile, instruction, row):
    monkeypatch.setenv("FLY_TARGET", name)
    unit = plans.unit_of(dtype, tile)
    assert ((unit.kind, unit.edge, unit.k), unit.row) == (instruction, row)


@pytest.mark.heavy
def test_beyond_buffers(target, monkeypatch):
    """A buffer descriptor does not cover matrices of 2 GB, here of more than a few elements."""
    monkeypatch.setattr(plans, "NEAR", 64)
    a, b = operands((70, 50), (50, 62), torch.float16, False, True)
    assert not plans.access(a[None], 2).buffer
    judge(matmul(a, b), torch.matmul, a, b)
    x, weight = tensor(1, (1, 4, 6, 6), torch.float32), tensor(2, (8, 4, 3, 3), torch.float32)
    judge(conv2d(x, weight, padding=1), lambda x, w: torch.conv2d(x, w, padding=1), x, weight)


@pytest.mark.heavy
def test_without_matrix_instructions(monkeypatch):
    """NVIDIA's targets multiply by FMA; the device cpu runs their code on the processor."""
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    a, b = operands((33, 70), (70, 40), torch.float16, False, True)
    judge(matmul(a, b, split_k=2), torch.matmul, a, b)
    judge(matmul_preshuffled(a, preshuffle(b), 40), torch.matmul, a, b)
    a, b = [x.to(torch.int8) for x in (a, b)]
    assert torch.equal(matmul(a, b).long(), a.long() @ b.long())
    x, weight = tensor(1, (1, 4, 6, 6), torch.float32), tensor(2, (8, 4, 3, 3), torch.float32)
    judge(conv2d(x, weight, padding=1), lambda x, w: torch.conv2d(x, w, padding=1), x, weight)


@pytest.mark.heavy
@pytest.mark.parametrize(("needed", "products"), [((1, 0), 2), ((0, 1), 2), ((1, 1), 3)])
def test_a_frozen_operand_costs_no_product(target, monkeypatch, needed, products):
    made = []
    product = matrix_product.product
    monkeypatch.setattr(matrix_product, "product", lambda *a: made.append(a) or product(*a))
    a, b = tensor(60, (3, 5), torch.float32), tensor(61, (5, 4), torch.float32)
    for x, need in zip((a, b), needed, strict=True):
        x.requires_grad_(bool(need))
    matmul(a, b).sum().backward()
    assert len(made) == products
    assert [x.grad is not None for x in (a, b)] == [*map(bool, needed)]


ZEROS = np.zeros((4, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: matmul(ZEROS, ZEROS[:3]), "matrices of shapes (4, 4) and (3, 4) can't be multip"),
        (lambda: matmul(ZEROS, np.zeros((4, 4))), "a is of float32 and b of float64"),
        (
            lambda: matmul(np.zeros((2, 4, 4)), np.zeros((3, 4, 4))),
            "batches of (2,) and (3,) can't",
        ),
        (lambda: matmul(ZEROS, ZEROS, activation="tanh"), "activation is 'tanh'"),
        (lambda: matmul(ZEROS, ZEROS, split_k=0), "split_k is 0, and must be positive"),
        (lambda: matmul(ZEROS, ZEROS, ZEROS[0, :3]), "bias has shape (3,), and b has 4 columns"),
        (
            lambda: matmul(ZEROS, ZEROS, None, ZEROS[:3]),
            "an array of shape (3, 4) is not one of (4",
        ),
        (lambda: matmul(ZEROS.astype("u1"), ZEROS.astype("u1")), "gfx942 can't multiply u8"),
        (lambda: matmul(ZEROS, ZEROS, out_dtype=bool), "results can't be of bool"),
        (lambda: matmul(ZEROS, ZEROS, ZEROS[0] > 0), "bias is of bool"),
        (lambda: matmul(ZEROS, ZEROS, None, ZEROS > 0), "c is of bool"),
        (lambda: matmul(ZEROS, ZEROS, tf32="no"), "matmul takes tf32 as a bool, not 'no'"),
        (lambda: matmul(ZEROS, None), "matmul takes b as a NumPy array, not None"),
        (lambda: matmul(ZEROS, torch.ones(4, 4)), "matmul takes b as a NumPy array, not tensor("),
        (lambda: matmul(ZEROS.astype("i2"), ZEROS.astype("i2")), "gfx942 can't multiply i16"),
        (lambda: matmul(ZEROS.astype("c8"), ZEROS.astype("c8")), "matrices of complex64 can't be"),
        (
            lambda: matmul(ZEROS.astype("i1"), ZEROS.astype("i1"), alpha=2.0),
            "i32 results are plain sums, without bias, c, alpha and activation",
        ),
    ],
)
def test_refused(target, call, said):
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).startswith(said.replace("gfx942", target))
