"""RMSNorm and layer normalization, also with a residual and with 8 bits, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fly_common.errors import UsageError

from fly.kernels import (
    add_layer_norm,
    add_rms_norm,
    add_rms_norm_quantized,
    layer_norm,
    layer_norm_quantized,
    norm_backward,
    quantize_rows,
    rms_norm,
    rms_norm_quantized,
)
from fly_kernels.judging import check_quantized, gradients, judge, tensor

SHAPES = [
    ((3, 1000), torch.float32),
    ((2, 2048), torch.float16),  # a whole tile
    ((2, 3, 33), torch.bfloat16),
    ((40, 7), torch.float64),
    ((4, 1), torch.float32),
    ((0, 5), torch.float32),
    ((3, 0), torch.float32),
    ((7,), torch.float16),
    ((1, 40000), torch.bfloat16),  # several tiles
    ((70, 130), torch.float32),  # several parts of the sums of parameters
    ((2, 96), torch.bfloat16),
    ((3, 3000), torch.float16),  # a thread has several vectors, and not all of them
    ((2, 4104), torch.bfloat16),
]
shapes = pytest.mark.parametrize(("shape", "dtype"), SHAPES, ids=str)
# The types of 8 bits that a target converts to.
EIGHT_BITS = {
    "gfx90a": ("int8",),
    "gfx942": ("int8", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    "gfx950": ("int8", "float8_e4m3fn", "float8_e5m2"),
    "gfx1100": ("int8",),
    "gfx1201": ("int8", "float8_e4m3fn", "float8_e5m2"),
    "gfx1250": ("int8", "float8_e4m3fn", "float8_e5m2"),
}


def layer_norm_of_torch(x, weight=None, bias=None):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def rms_norm_of_torch(x, weight=None):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-6)


def inputs(shape, dtype):
    """x, a residual, a weight and a bias."""
    n = shape[-1:]
    return [tensor(seed, one, dtype) for seed, one in enumerate((shape, shape, n, n))]


@shapes
def test_layer_norm(target, shape, dtype):
    x, _, weight, bias = inputs(shape, dtype)
    judge(layer_norm(x, weight, bias), layer_norm_of_torch, x, weight, bias)
    judge(
        gradients(layer_norm, x, weight, bias),
        lambda *given: gradients(layer_norm_of_torch, *given),
        x,
        weight,
        bias,
    )


@shapes
def test_rms_norm(target, shape, dtype):
    x, _, weight, _ = inputs(shape, dtype)
    judge(rms_norm(x, weight), rms_norm_of_torch, x, weight)
    judge(
        gradients(rms_norm, x, weight),
        lambda *given: gradients(rms_norm_of_torch, *given),
        x,
        weight,
    )


@pytest.mark.parametrize(("shape", "dtype"), SHAPES[:3], ids=str)
def test_without_parameters(target, shape, dtype):
    x = tensor(5, shape, dtype)
    for function, reference in ((layer_norm, layer_norm_of_torch), (rms_norm, rms_norm_of_torch)):
        judge(function(x), reference, x)
        judge(gradients(function, x), lambda x, f=reference: gradients(f, x), x)


def test_a_bias_without_a_weight(target):
    x, _, _, bias = inputs((3, 40), torch.float16)

    def of_torch(x, bias):
        return layer_norm_of_torch(x, None, bias)

    judge(layer_norm(x, bias=bias), of_torch, x, bias)
    found = gradients(lambda x, bias: layer_norm(x, None, bias), x, bias)
    judge(found, lambda *given: gradients(of_torch, *given), x, bias)


def test_parameters_with_elements_apart(target):
    x, _, weight, bias = inputs((3, 40), torch.float32)
    weight, bias = [one.repeat_interleave(3)[::3] for one in (weight, bias)]
    judge(layer_norm(x, weight, bias), layer_norm_of_torch, x, weight, bias)
    judge(
        norm_backward(x, x, weight, 1e-5, True)[0],
        lambda x, weight: gradients_of(layer_norm_of_torch, x, weight),
        x,
        weight,
    )
    same = weight[:1].expand(40)
    judge(rms_norm(x, same), rms_norm_of_torch, x, same)
    assert np.array_equal(rms_norm(x.numpy(), weight.numpy()[::-1]), rms_norm(x, weight.flip(0)))


def gradients_of(function, x, weight):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x, weight), x, x.detach())[0]


@shapes
def test_residuals(target, shape, dtype):
    x, residual, weight, bias = inputs(shape, dtype)

    def of_torch(x, residual, weight, bias=None):
        total = x + residual
        if bias is None:
            return rms_norm_of_torch(total, weight), total
        return layer_norm_of_torch(total, weight, bias), total

    judge(add_rms_norm(x, residual, weight), of_torch, x, residual, weight)
    given = (x, residual, weight, bias)
    judge(add_layer_norm(*given), of_torch, *given)
    if 1 < shape[-1] <= 1000:
        for function, count in ((add_rms_norm, 3), (add_layer_norm, 4)):
            judge(
                gradients(lambda *given, f=function: sum(f(*given)), *given[:count]),
                lambda *given: gradients(lambda *given: sum(of_torch(*given)), *given),
                *given[:count],
            )


ROUNDED = [
    ((3, 200), torch.float32),
    ((1, 512), torch.float16),
    ((2, 3, 33), torch.bfloat16),
    ((5, 1), torch.float32),
    ((0, 7), torch.float16),
    ((1, 8192), torch.bfloat16),
    ((4, 1000), torch.float16),
    ((2, 2049), torch.float32),
    ((16, 96), torch.bfloat16),
    ((1, 33000), torch.float16),  # several tiles
]


@pytest.mark.parametrize(("shape", "dtype"), ROUNDED, ids=str)
def test_eight_bits(target, shape, dtype):
    """By int8, and by one of the target's floats of 8 bits for each shape."""
    x, residual, weight, bias = inputs(shape, dtype)
    wide = [one.double() for one in (x, residual, weight, bias)]
    kinds, place = EIGHT_BITS[target], ROUNDED.index((shape, dtype))
    check_quantized(quantize_rows(x, "int8"), wide[0], "int8")
    for kind in kinds[place % len(kinds) :][:1]:
        check_quantized(quantize_rows(x, kind), wide[0], kind)
        exact = rms_norm_of_torch(wide[0], wide[2])
        check_quantized(rms_norm_quantized(x, kind, weight), exact, kind)
        exact = layer_norm_of_torch(wide[0], wide[2], wide[3])
        check_quantized(layer_norm_quantized(x, kind, weight, bias), exact, kind)
        total = (x + residual).double()  # what is normalized is what is returned
        *found, sums = add_rms_norm_quantized(x, residual, kind, weight)
        check_quantized(found, rms_norm_of_torch(total, wide[2]), kind)
        torch.testing.assert_close(sums, x + residual)


@pytest.mark.parametrize("size", [15, 300])
def test_a_mean_that_is_great_beside_the_differences(target, size):
    """What lies beyond a row, 0 less the mean, is not its greatest magnitude; equal elements are
    0."""
    x = 100 + tensor(1, (3, size), torch.float32, 0.1)
    exact = layer_norm_of_torch(x.double())
    check_quantized(layer_norm_quantized(x, "int8"), exact, "int8")
    assert layer_norm_quantized(torch.full((2, size), 0.5), "int8")[1].tolist() == [0.0, 0.0]


def test_types_that_the_target_does_not_convert_to(target):
    other = "float8_e4m3fn" if target == "gfx942" else "float8_e4m3fnuz"
    with pytest.raises(UsageError) as error:
        quantize_rows(torch.ones(2, 3), other)
    known = ", ".join(EIGHT_BITS[target])
    said = f"{target} has no conversion to {other}\n  on {target}, it is one of {known}"
    assert str(error.value) == said


def test_rows_without_a_scale(target):
    y, scales = quantize_rows(torch.zeros(2, 3), "int8")
    assert not y.any()
    assert not scales.any()
    y, scales = quantize_rows(torch.tensor([[1.0, float("nan")], [2.0, float("inf")]]), "int8")
    assert scales.isnan().tolist() == [True, False]
    assert scales[1] == float("inf")


@pytest.mark.parametrize("greatest", [1e-44, 1e-40, 1e-38, 1e-36, 3e38])
def test_eight_bits_of_small_and_great_numbers(target, greatest):
    x = greatest * torch.tensor([[1.0, -1.0, 0.5, 0.0]])
    y, scales = quantize_rows(x, "int8")
    found = y.double() * scales.double()
    assert ((found - x.double()).abs() <= x.double().abs() + 1e-45).all()
    if greatest > 1e-37:
        assert y.tolist() in ([[127, -127, 64, 0]], [[127, -127, 63, 0]])


def test_eight_bits_of_numpy(target):
    x = np.random.default_rng(6).standard_normal((3, 20), np.float32)
    y, scales = quantize_rows(x, "int8")
    assert (y.dtype, scales.dtype) == (np.int8, np.float32)
    np.testing.assert_allclose(y * scales[:, None], x, atol=scales.max() * 0.51)


def test_strict(strict, target):
    test_layer_norm(target, (2, 70), torch.float16)
    test_residuals(target, (2, 1026), torch.bfloat16)


DIFFERENTIABLE = [
    (layer_norm, "x weight bias"),
    (layer_norm, "x"),
    (rms_norm, "x weight"),
    (add_layer_norm, "x residual weight bias"),
    (add_rms_norm, "x residual weight"),
]


@pytest.mark.parametrize(("function", "names"), DIFFERENTIABLE)
def test_torch_checks_the_gradients(target, function, names):
    named = zip(("x", "residual", "weight", "bias"), inputs((2, 5), torch.float64), strict=True)
    given = [one.requires_grad_() for name, one in named if name in names.split()]
    torch.library.opcheck(function.torch, given)
    assert torch.autograd.gradcheck(lambda *given: function(*given), given)


def test_torch_checks_the_operators(target):
    x, residual, weight, _ = inputs((3, 9), torch.float32)
    for function, given in (
        (norm_backward, (x, residual, weight, 1e-5, True)),
        (norm_backward, (x, residual, None, 1e-5, False)),
        (quantize_rows, (x, "int8")),
        (layer_norm_quantized, (x, "int8", weight)),
        (rms_norm_quantized, (x, "int8", weight)),
        (add_rms_norm_quantized, (x, residual, "int8", weight)),
    ):
        torch.library.opcheck(function.torch, given)


def test_compiled_by_torch(target):
    def both(x, weight):
        return rms_norm(layer_norm(2 * x, weight), weight) + x

    compiled = torch.compile(both, fullgraph=True)
    for shape in ((3, 9), (5, 20)):
        x, _, weight, _ = inputs(shape, torch.float32)
        torch.testing.assert_close(compiled(x, weight), both(x, weight))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: layer_norm(x, x[0, :2]), "weight has the shape (2,), and a row 3 elements"),
        (lambda x: add_rms_norm(x, x[:1]), "the arrays have different shapes: (2, 3), (1, 3)"),
        (lambda x: rms_norm(x.reshape(6)[:1].reshape(())), "the array has no dimension"),
        (lambda x: quantize_rows(x, "int4"), "dtype is 'int4'"),
        (lambda x: rms_norm(x.astype(np.int32)), "x is of int32, and must be of float16"),
        (lambda x: rms_norm(x, x[0].astype(np.int8)), "weight is of int8, and must be of float16"),
        (lambda x: rms_norm(x, 1e-5), "rms_norm takes weight as a NumPy array, not 1e-05"),
        (lambda x: layer_norm(x, eps="a"), "layer_norm takes eps as a number, not 'a'"),
        (lambda x: rms_norm(None), "rms_norm takes NumPy arrays or torch tensors, not None"),
    ],
)
def test_refused(target, call, said):
    with pytest.raises(UsageError) as error:
        call(np.zeros((2, 3), np.float32))
    assert str(error.value).startswith(said)
