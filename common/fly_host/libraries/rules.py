"""The shape rules of the library functions that every program may call."""

from __future__ import annotations

from typing import Any

from fly_host.libraries.function import Extent, Like, Made, Registered

_Equal = tuple[Extent, Extent, str]


def _tensors(*given: Any) -> str:
    """The one dtype of the tensors."""
    for one in given:
        if not isinstance(one, Like):
            raise ValueError("an argument is no tensor")
    dtypes = {one.dtype for one in given}
    if len(dtypes) > 1:
        raise ValueError(f"the tensors are of {' and '.join(sorted(dtypes))}")
    return dtypes.pop()


def _rank(what: str, one: Like, *ranks: int) -> None:
    if one.rank not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise ValueError(f"{what} has {one.rank} dimensions, and not {wanted}")


def matmul(input: Any, other: Any, *, out: Any = None) -> Made:
    """Vectors, matrices, and batches of matrices whose leading extents are equal."""
    dtype = _tensors(input, other)
    if 0 in (input.rank, other.rank):
        raise ValueError("an argument has no dimensions")
    rows, columns = input.shape[-2:-1], other.shape[-1:] if other.rank > 1 else ()
    inner = other.shape[-2] if other.rank > 1 else other.shape[0]
    equal: list[_Equal] = [(input.shape[-1], inner, "the inner extents")]
    first, second = input.shape[:-2], other.shape[:-2]
    if first and second:
        if len(first) != len(second):
            raise ValueError(f"the arguments have {input.rank} and {other.rank} dimensions")
        equal += [(a, b, "the batches' extents") for a, b in zip(first, second, strict=True)]
    return Made((Like(dtype, (*(first or second), *rows, *columns)),), tuple(equal))


def mm(input: Any, mat2: Any, *, out: Any = None) -> Made:
    _tensors(input, mat2)
    _rank("input", input, 2)
    _rank("mat2", mat2, 2)
    return matmul(input, mat2)


def bmm(input: Any, mat2: Any, *, out: Any = None) -> Made:
    _tensors(input, mat2)
    _rank("input", input, 3)
    _rank("mat2", mat2, 3)
    return matmul(input, mat2)


def addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Made:
    """beta·input + alpha·mat1·mat2; `input` has the product's shape or is one row of it."""
    _tensors(input, mat1)
    product = mm(mat1, mat2)
    _rank("input", input, 1, 2)
    shape = product.results[0].shape
    pairs = zip(input.shape, shape[-input.rank :], strict=True)
    return Made(product.results, (*product.equal, *((a, b, "input's extents") for a, b in pairs)))


def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Made:
    """input · weightᵀ + bias."""
    dtype = _tensors(input, weight, *(() if bias is None else (bias,)))
    _rank("weight", weight, 2)
    if not input.rank:
        raise ValueError("input has no dimensions")
    features, inner = weight.shape
    equal: list[_Equal] = [(input.shape[-1], inner, "the inner extents")]
    if bias is not None:
        _rank("bias", bias, 1)
        equal.append((bias.shape[0], features, "bias's extents"))
    return Made((Like(dtype, (*input.shape[:-1], features)),), tuple(equal))


BUILT_IN = {
    one.name: one
    for one in (
        Registered("numpy.matmul", matmul),
        Registered("torch.addmm", addmm),
        Registered("torch.bmm", bmm),
        Registered("torch.matmul", matmul),
        Registered("torch.mm", mm),
        Registered("torch.nn.functional.linear", linear, takes_out=False),
    )
}
