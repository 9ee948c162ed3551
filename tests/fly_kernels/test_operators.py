"""What functions of arrays have in common, as operators of torch and without torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import flash_attention_backward, matmul, prefix_sum, softmax, top_k

X = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("x", [X, X.numpy()], ids=["torch", "numpy"])
def test_arguments_by_name_in_any_order(target, x):
    torch.testing.assert_close(torch.as_tensor(softmax(dim=0, x=x)), X.softmax(0))


def test_bools_and_integers_of_numpy(target):
    wanted = [0, 0, 1, 3]
    for exclusive in (True, 1, np.bool_(True)):
        assert prefix_sum(X[0].numpy(), exclusive).tolist() == wanted
    for k in (True, 1, np.int32(1)):
        assert top_k(X.numpy(), k)[1].tolist() == [[3], [3], [3]]
    assert matmul(X.numpy(), X.numpy().T, tf32=np.bool_(False)).shape == (3, 3)


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
