"""What functions of arrays have in common, as operators of torch and without torch."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly import kernels
from fly.kernels import (
    flash_attention_backward,
    layer_norm,
    matmul,
    prefix_sum,
    softmax,
    top_k,
)

X = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("x", [X, X.numpy()], ids=["torch", "numpy"])
def test_arguments_by_name_in_any_order(target, x):
    torch.testing.assert_close(torch.as_tensor(softmax(dim=0, x=x)), X.softmax(0))


@pytest.mark.heavy
def test_bools_and_integers_of_numpy(target):
    wanted = [0, 0, 1, 3]
    for exclusive in (True, 1, np.bool_(True)):
        assert prefix_sum(X[0].numpy(), exclusive).tolist() == wanted
    for k in (True, 1, np.int32(1)):
        assert top_k(X.numpy(), k)[1].tolist() == [[3], [3], [3]]
    assert matmul(X.numpy(), X.numpy().T, tf32=np.bool_(False)).shape == (3, 3)


def test_matrices_of_numpy(target):
    """They have two dimensions whatever they are reshaped to."""
    x = X.numpy()
    calls = (lambda m: softmax(m), lambda m: matmul(x.T, m), lambda m: kernels.add_rms_norm(x, m))
    for call in calls:
        with pytest.raises(UsageError, match=r"takes \w+ as a NumPy array, not matrix\("):
            call(np.asmatrix(x))


REFUSED = {
    "softmax takes dim as an integer, not 'a'": lambda: softmax(X, "a"),
    "top_k takes k as an integer, not 2.0": lambda: top_k(X, 2.0),
    "layer_norm takes bias as a torch tensor, not array(": lambda: layer_norm(
        X, bias=np.ones(4, "f4")
    ),
    "quantize_rows takes dtype as a string, not torch.int8": lambda: kernels.quantize_rows(
        X, torch.int8
    ),
    "quantize_rows takes dtype as a string, not tensor(1)": lambda: kernels.quantize_rows(
        X, torch.tensor(1)
    ),
    "matmul takes out_dtype as a torch.dtype, not 'float16'": lambda: matmul(
        X, X.T, out_dtype="float16"
    ),
    "conv2d takes padding as an integer or two, not 'same'": lambda: kernels.conv2d(
        X[None, None], X[None, None], padding="same"
    ),
    "x is sparse_coo": lambda: softmax(X.to_sparse()),
    "x is jagged": lambda: softmax(torch.nested.nested_tensor([X], layout=torch.jagged)),
    f"seed is {2**64}, which does not fit in 64 bits": lambda: kernels.dropout(X, 0.5, 2**64),
}


@pytest.mark.parametrize("message", REFUSED)
def test_arguments_of_other_kinds_with_tensors(target, message):
    """torch's own message has the schema, and what pybind11 says of its build."""
    with pytest.raises(UsageError) as error:
        REFUSED[message]()
    assert str(error.value).startswith(message)


def packed(x: np.ndarray) -> np.ndarray:
    """The same elements as a field of packed records, of which most are at odd addresses."""
    records = np.zeros(x.shape, [("tag", "u1"), ("number", x.dtype)])
    records["number"] = x
    return records["number"]


@pytest.mark.parametrize(
    "call",
    [softmax, lambda x: top_k(x, 2)[0], lambda x: matmul(x, x.T), lambda x: prefix_sum(x[1])],
    ids=["softmax", "top_k", "matmul", "prefix_sum"],
)
def test_elements_at_odd_addresses(target, call):
    x = X.numpy()
    odd = np.frombuffer(bytearray(b"-" + x.tobytes()), x.dtype, x.size, 1).reshape(x.shape)
    assert not packed(x).flags.aligned
    assert not odd.flags.aligned
    for given in (packed(x), odd):
        np.testing.assert_array_equal(call(given), call(x))
    assert torch.equal(call(torch.from_numpy(odd)), call(X))


def test_odd_addresses_of_what_is_written(target):
    cache = np.zeros((1, 16, 1, 64), np.float16)
    angles, zero = np.ones((4, 16), "f4"), np.zeros(1, np.int32)
    x = np.ones((1, 1, 64), np.float16)
    with pytest.raises(fly.FlyError, match=r"k_cache .*make it contiguous"):
        kernels.rotary_and_cache(x, x, x, angles, angles, zero, packed(cache), cache, zero)


def test_arguments_without_elements(target):
    """torch calls the fake kernel if one argument is on the device `meta`."""
    there = X.to("meta")
    assert matmul(there, there.T).device.type == "meta"
    for given in ((X, there.T), (there, X.T)):
        with pytest.raises(UsageError) as error:
            matmul(*given)
        said = " and ".join(x.device.type for x in given)
        assert str(error.value) == f"matmul takes tensors of one device, not of {said}"


def test_no_forward_mode(target):
    """torch's operators would return results without a tangent, which counts as 0."""
    with pytest.raises(UsageError, match="softmax has no forward-mode derivative"):
        torch.func.jvp(softmax, (X,), (X,))
    with torch.autograd.forward_ad.dual_level():
        softmax(X)


@pytest.mark.heavy
def test_results_change_in_place(target):
    """Autograd refuses that for views, which most results are for NumPy."""
    x = X.clone().requires_grad_()
    for function in (layer_norm, lambda x: matmul(x, x.T), lambda x: top_k(x, 2)[0]):
        made = function(x)
        made.mul_(2)
        (twice,) = torch.autograd.grad(made.square().sum(), x)
        (once,) = torch.autograd.grad(function(x).square().sum(), x)
        torch.testing.assert_close(twice, 4 * once, rtol=1e-4, atol=1e-4)


@pytest.mark.heavy
def test_types_of_ml_dtypes(target):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = X.numpy().astype(bfloat16)
    assert softmax(x).dtype == bfloat16
    made = matmul(softmax(x), x.T)  # which took bits for integers
    assert made.dtype == bfloat16
    np.testing.assert_allclose(made.astype(np.float32), X.softmax(1) @ X.T, rtol=2**-6)


@fly.kernel
def twice_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[fx.thread_idx.x] * 2


def test_an_application_may_register_the_same_name(target):
    @fly.jit
    def softmax(X: fx.Tensor[fx.Float32, 4]):
        Y = fx.empty(4, fx.Float32)
        twice_kernel(X, Y).launch(grid=1, block=4)
        return Y

    theirs = fly.torch.register(softmax)
    assert theirs(X[1]).tolist() == [8, 10, 12, 14]
    torch.testing.assert_close(kernels.softmax(X, 0), X.softmax(0))


def test_threads_make_an_operator_once(monkeypatch):
    made = []

    def slow(self):
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    monkeypatch.setattr(type(softmax), "_operator", slow)
    monkeypatch.setattr(softmax, "_made", None)
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(lambda _: softmax.torch, range(4))]
    assert found == made * 4


def test_batches_by_vmap(target):
    torch.testing.assert_close(torch.func.vmap(softmax)(X), X.softmax(-1))


def test_gradients_of_attention_are_like_its_queries(target):
    q, sums = np.zeros((1, 2, 10, 64), np.float16), np.zeros((1, 2, 10), np.float32)
    with pytest.raises(UsageError) as error:
        flash_attention_backward(q.astype(np.float32), sums, q, q, q, q, sums)
    like = "float16(1, 2, 10, 64)"
    assert str(error.value) == f"d_out is float32(1, 2, 10, 64), and must be like q, {like}"
    with pytest.raises(UsageError, match="out is float16"):
        flash_attention_backward(q, sums, q, q, q, q[:, :1], sums)
