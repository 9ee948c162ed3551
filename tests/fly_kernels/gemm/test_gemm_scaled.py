"""Products of 8-bit floats whose blocks have scales, judged by torch in f64."""

from __future__ import annotations

import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import quantize_rows, scaled_matmul
from fly.kernels.gemm.scaled import scaled_product
from fly.kernels.gemm.warpgroups import warpgroup_choices

BLOCK = 128
E4M3, E5M2, F16, BF16, F32 = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float16,
    torch.bfloat16,
    torch.float32,
)
EXACT = {"gfx942": torch.float8_e4m3fnuz}  # other targets have E4M3FN


def blocks(extent):
    return -(-extent // BLOCK)


def operands(m, n, k, dtype=E4M3, seed=0):
    """A, B of which K is adjacent, and scales that differ by up to 2^8."""
    random = torch.Generator().manual_seed(seed)

    def scales(*shape):
        return torch.exp2(8 * torch.rand(shape, generator=random) - 4)

    a = torch.randn(m, k, generator=random).to(dtype)
    b = torch.randn(n, k, generator=random).to(dtype).t()
    return a, b, scales(m, blocks(k)), scales(blocks(k), blocks(n))


def widened(a, b, scale_a, scale_b):
    """The matrices that are meant, in f64."""
    (m, k), n = a.shape, b.shape[1]
    scale_a = scale_a.double().repeat_interleave(BLOCK, 1)[:m, :k]
    scale_b = scale_b.double().repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:k, :n]
    return a.double() * scale_a, b.double() * scale_b


def judged(found, *given, exact=None, slack=0.0):
    """Allowed are a rounding of the result, and of f32 for what was added."""
    a, b = widened(*given)
    exact = a @ b if exact is None else exact
    rounding = {BF16: 2**-8, F16: 2**-11, F32: 2**-23}[found.dtype]
    error = (found.double() - exact).abs()
    assert found.shape == exact.shape
    assert (error <= rounding * exact.abs() + 2**-20 * (a.abs() @ b.abs()) + 1e-6 + slack).all()


@pytest.fixture
def hopper(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")


@pytest.mark.heavy
@pytest.mark.parametrize("tile", warpgroup_choices.SCALED_TILES)
def test_tiles(tile, hopper, monkeypatch):
    """More than one tile and block along each dimension, none of them whole. A block has all tiles,
    and must not replace the results of one that TMA still reads."""
    monkeypatch.setattr(warpgroup_choices, "SCALED_TILES", {tile: 1.0})
    warpgroup_choices._plan.cache_clear()
    plan = warpgroup_choices.scaled_plan
    monkeypatch.setattr(
        scaled_product, "scaled_plan", lambda *given: plan(*given)._replace(blocks=1)
    )
    given = operands(150, 400, 336)
    found = scaled_matmul(*given, out_dtype=BF16)
    warpgroup_choices._plan.cache_clear()
    judged(found, *given)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "out"),
    [
        (1, 1, 1, E4M3, F32),
        (65, 129, 257, E5M2, F32),  # rows that are copied first, and that TMA can't store
        (33, 40, 4096, E4M3, BF16),  # parts of sums
    ],
)
def test_extents_and_types(m, n, k, dtype, out, hopper):
    given = operands(m, n, k, dtype)
    judged(scaled_matmul(*given, out_dtype=out), *given)


@pytest.mark.heavy
def test_any_order_in_memory(hopper):
    """Only elements along K may be adjacent for wgmma: others are copied."""
    a, b, scale_a, scale_b = operands(70, 136, 200)
    given = a.t().contiguous().t(), b.contiguous(), scale_a.t().contiguous().t(), scale_b
    judged(scaled_matmul(*given), a, b, scale_a, scale_b)
    every_second = torch.stack([scale_b, -scale_b], -1)[..., 0]
    judged(scaled_matmul(a, b, scale_a, every_second), a, b, scale_a, scale_b)


@pytest.mark.heavy
def test_an_epilogue(hopper):
    a, b, scale_a, scale_b = operands(70, 136, 200)
    bias = torch.randn(136).to(BF16)
    found = scaled_matmul(a, b, scale_a, scale_b, bias, activation="relu", out_dtype=F16)
    wide = widened(a, b, scale_a, scale_b)
    exact = (wide[0] @ wide[1] + bias.double()).relu()
    judged(found, a, b, scale_a, scale_b, exact=exact)


@pytest.mark.heavy
def test_rows_of_several_dimensions_that_quantize_rows_made(hopper):
    x, weight = torch.randn(2, 5, 256), torch.randn(40, 256)
    y, scales = quantize_rows(x.unflatten(-1, (2, BLOCK)), "float8_e4m3fn")
    scale_b = torch.full((2, 1), 0.5)
    found = scaled_matmul(y.flatten(-2), weight.to(E4M3).t(), scales, scale_b)
    exact = (x.double() @ weight.double().t()) * 0.5
    assert found.shape == (2, 5, 40)
    assert ((found - exact).abs().max() / exact.abs().max()) < 0.05


@pytest.mark.heavy
def test_a_scale_reaches_its_block_alone(hopper):
    """Each scale in turn is NaN: what becomes NaN is what it scales."""
    a, b, scale_a, scale_b = operands(130, 260, 260)
    for row, block in ((0, 0), (129, 2)):
        changed = scale_a.clone()
        changed[row, block] = torch.nan
        found = scaled_matmul(a, b, changed, scale_b).isnan()
        assert found[row].all()
        assert found.sum() == found.shape[1]
    for block, column in ((0, 0), (2, 2), (1, 1)):
        changed = scale_b.clone()
        changed[block, column] = torch.nan
        found = scaled_matmul(a, b, scale_a, changed).isnan()
        assert found[:, column * BLOCK : (column + 1) * BLOCK].all()
        assert found.sum() == found[:, column * BLOCK : (column + 1) * BLOCK].numel()


@pytest.mark.heavy
def test_torch_checks_the_operator(hopper):
    given = operands(20, 40, 136)
    checks = ("test_faketensor", "test_autograd_registration")  # others add 8-bit floats
    for more, named in (((), {"out_dtype": BF16}), ((torch.ones(40),), {})):
        torch.library.opcheck(scaled_matmul.torch, (*given, *more), named, test_utils=checks)


@pytest.mark.heavy
@pytest.mark.parametrize(("m", "n", "k"), [(0, 8, 16), (8, 0, 16), (8, 16, 0)])
def test_empty(m, n, k, hopper):
    found = scaled_matmul(*operands(m, n, k))
    assert found.shape == (m, n)
    assert (found == 0).all()


@pytest.mark.heavy
@pytest.mark.parametrize(("m", "n", "k"), [(37, 150, 300), (16, 16, 128), (5, 3, 17)])
@pytest.mark.parametrize("name", ["gfx942", "gfx950", "gfx1201"])
def test_other_targets(name, m, n, k, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", name)
    monkeypatch.setenv("FLY_DEVICE", "emulator")
    given = operands(m, n, k, EXACT.get(name, E4M3))
    bias = torch.randn(n)
    exact = (wide := widened(*given))[0] @ wide[1] + bias.double()
    judged(scaled_matmul(*given, bias), *given, exact=exact)


def test_refusals(hopper):
    a, b, scale_a, scale_b = operands(8, 16, 256)
    for given, said in (
        ((a.float(), b, scale_a, scale_b), "a is of float32, and must be of"),
        ((a, b.to(E5M2), scale_a, scale_b), "a is of torch.float8_e4m3fn and b of"),
        ((a, b[:128], scale_a, scale_b), r"matrices of shapes \(8, 256\) and \(128, 16\) can't"),
        ((a, b, scale_a[:, :1], scale_b), r"scale_a has shape \(8, 1\), and must have \(8, 2\)"),
        ((a, b, scale_a, scale_b.t()), r"scale_b has shape \(1, 2\), and must have \(2, 1\)"),
        ((a, b, scale_a.half(), scale_b), "scale_a is of float16, and must be of float32"),
        ((a, b[None], scale_a, scale_b), "a and b have 2 and 3 dimensions, and must have 2"),
        ((a, b, scale_a, scale_b, torch.ones(8)), r"bias has shape \(8,\), and must have \(16,\)"),
    ):
        with pytest.raises(UsageError, match=said):
            scaled_matmul(*given)
    with pytest.raises(UsageError, match="results can't be of float8_e4m3fn") as error:
        scaled_matmul(a, b, scale_a, scale_b, out_dtype=E4M3)
    assert error.value.hint == "give out_dtype=float32, float16 or bfloat16"
    with pytest.raises(UsageError, match="activation is 'tanh'"):
        scaled_matmul(a, b, scale_a, scale_b, activation="tanh")
