"""Kernels of rows that the blocks of a cluster share, or of which a block takes two at a time, for
Hopper on the device cpu."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fly.kernels import (
    cross_entropy_backward,
    cross_entropy_rows,
    layer_norm,
    log_softmax,
    norm_backward,
    rms_norm,
    softmax,
    softmax_backward,
)
from fly.kernels.rowwise import row_plans
from fly.kernels.rowwise.row_plans import MOST_AHEAD, Choice, plan
from fly.kernels.rowwise.row_streams import goes_in_two
from fly_kernels.judging import judge, tensor
from fly_kernels.rowwise.test_row_streams import EPS, norm_gradients

ROWS = 7  # more than clusters: each takes several


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")


@pytest.fixture
def choose(monkeypatch):
    """Has all kernels take a choice."""

    def taken(*choice):
        monkeypatch.setattr(row_plans, "measured", lambda *_: Choice(*choice))

    return taken


# Type and columns; threads, vectors, rows ahead, blocks, matrices ahead, blocks of a cluster.
ONE_ROW = (torch.bfloat16, 1000, 64, 1, 0, 0, MOST_AHEAD, 2)
WHOLE = (torch.float16, 4096, 128, 1, 0, 0, MOST_AHEAD, 4)
MANY_TILES = (torch.bfloat16, 5000, 32, 1, 0, 0, MOST_AHEAD, 2)  # too many to have code for
IN_REGISTERS = (torch.float32, 1004, 64, 2, 2, 8, MOST_AHEAD, 4)
IN_TILES = (torch.bfloat16, 1352, 32, 1, 1, 4, 1, 2)  # a second matrix is not read ahead
IN_TWO = (torch.float16, 1200, 32, 1, 3, 4, MOST_AHEAD, 2)
BY_A_BLOCK = (torch.bfloat16, 1496, 64, 1, 2, 2, 1, 1)
WHOLE_TILES = (torch.float32, 1024, 64, 1, 3, 3, MOST_AHEAD, 1)
TWO_AT_A_TIME = [IN_TWO, BY_A_BLOCK, WHOLE_TILES]
CHOICES = [ONE_ROW, WHOLE, MANY_TILES, IN_REGISTERS, IN_TILES, *TWO_AT_A_TIME]


@pytest.mark.heavy
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_rows_that_clusters_share(choose, choice):
    dtype, columns, *given = choice
    choose(*given)
    x, dy = (tensor(i, (ROWS, columns), dtype) for i in (1, 2))
    weight, bias = (tensor(i, (columns,), dtype) for i in (3, 4))
    assert plan(x, kernel="softmax").cluster == given[-1]
    judge(softmax(x), lambda x: x.softmax(-1), x)
    judge(log_softmax(x), lambda x: x.log_softmax(-1), x)
    judge(
        layer_norm(x, weight, bias, EPS), lambda *a: F.layer_norm(a[0], (columns,), *a[1:], EPS),
        *(x, weight, bias),
    )  # fmt: skip
    judge(
        rms_norm(x, weight, EPS), lambda *a: F.rms_norm(a[0], (columns,), a[1], EPS), *(x, weight)
    )
    y = x.softmax(-1)
    judge(softmax_backward(dy, y), lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)), dy, y)
    targets = torch.arange(ROWS) * 11
    losses, sums = cross_entropy_rows(x, targets)
    exact = x.double()
    judged = F.cross_entropy(exact, targets, reduction="none")
    assert (losses.double() - judged).abs().max() < 1e-5 * judged.abs().max()
    d = torch.rand(ROWS)
    made = cross_entropy_backward(d, x, targets, sums, 0.0, -100)
    right = (exact.softmax(-1) - F.one_hot(targets, columns)) * d[:, None]
    assert (made.double() - right).abs().max() < 2 * torch.finfo(dtype).eps


@pytest.mark.heavy
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_gradients_of_norms(choose, choice, centred):
    dtype, columns, *given = choice
    choose(*given)
    x, dy = (tensor(i, (ROWS, columns), dtype) for i in (1, 2))
    weight = tensor(3, (columns,), dtype)
    assert goes_in_two(plan(x, kernel="one")) == (choice in TWO_AT_A_TIME)
    found = norm_backward(dy, x, weight, EPS, centred)[: 3 if centred else 2]
    judge(found, lambda *a: norm_gradients(*a, centred), dy, x, weight, roundings=8)
    if choice is ONE_ROW:  # without parameters: the kernel of x alone
        found = norm_backward(dy, x, None, EPS, centred)[0]
        ones = torch.ones(columns, dtype=dtype)
        judge(found, lambda *a: norm_gradients(*a, centred)[0], dy, x, ones, roundings=8)


@pytest.mark.heavy
@pytest.mark.parametrize("choice", [IN_REGISTERS, IN_TILES, IN_TWO], ids=str)
def test_there_is_no_race(choose, monkeypatch, choice):
    """More rows than a cluster has words for, with one warp a block: others are slow to trace."""
    monkeypatch.setenv("FLY_STRICT", "1")
    ahead, among = choice[4], choice[6]
    columns = 264 if choice is IN_REGISTERS else 776
    choose(32, 2 if choice is IN_REGISTERS else 1, ahead, 2, among, 2)
    x, dy = (tensor(i, (ROWS, columns), torch.bfloat16) for i in (1, 2))
    weight = tensor(3, (columns,), torch.bfloat16)
    found = norm_backward(dy, x, weight, EPS, True)
    judge(found, lambda *a: norm_gradients(*a, True), dy, x, weight, roundings=8)


@pytest.mark.heavy
@pytest.mark.parametrize("columns", [1024, 1000])
@pytest.mark.parametrize("choice", [(64, 4, 0, 0, 8, 2), (64, 1, 2, 4, 8, 2)], ids=str)
def test_a_great_mean_loses_no_digits(choose, columns, choice):
    """Of f32, whose squares would lose all of them, nor if the element that a thread takes off its
    others is far from them."""
    choose(*choice)
    x = tensor(1, (ROWS, columns), torch.float32) + 5000
    x[1, 0], x[2, 4], x[3, 500:] = 2e5, -1e6, 0
    judge(layer_norm(x, None, None, EPS), lambda x: F.layer_norm(x, (columns,), eps=EPS), x)


@pytest.mark.heavy
@pytest.mark.parametrize("choice", [ONE_ROW, IN_TWO, BY_A_BLOCK], ids=str)
def test_numbers_that_are_not_finite(choose, choice):
    dtype, columns, *given = choice
    choose(*given)
    x = tensor(1, (ROWS, columns), dtype)
    x[0, 5], x[1, 999], x[2], x[3, :800] = float("nan"), float("inf"), float("-inf"), float("-inf")
    judge(softmax(x), lambda x: x.softmax(-1), x)
    x[4], x[5, 3] = 3.0, float("-inf")
    judge(layer_norm(x, None, None, EPS), lambda x: F.layer_norm(x, (columns,), eps=EPS), x)
    judge(rms_norm(x, None, EPS), lambda x: F.rms_norm(x, (columns,), eps=EPS), x)


@pytest.mark.heavy
def test_all_blocks_have_the_same_bits(choose):
    """Of a row of equal numbers, all results are equal: each block computes them of the same
    maximum and the same sum, whose order is fixed."""
    choose(64, 1, 0, 0, MOST_AHEAD, 8)
    y = softmax(torch.full((3, 4096), 1.7, dtype=torch.float32))
    assert (y == y[0, 0]).all()


def test_a_share_is_of_whole_lines():
    """128 bytes: elsewhere blocks would read lines in two parts."""
    for size, line in ((8, 64), (4, 32)):
        made = row_plans._chosen(1000, size, Choice(64, 1, 0, 0, MOST_AHEAD, 2))
        assert made.share % line == 0
        assert made.share * 2 >= 1000 > made.share * 2 - 2 * line
        assert made.room % made.tile == 0
        assert made.room >= made.share
    assert not row_plans._chosen(1000, 8, Choice(64, 1, 0, 0, MOST_AHEAD, 2)).whole
    whole = row_plans._chosen(2048, 8, Choice(64, 2, 1, 8, MOST_AHEAD, 2))
    assert (whole.whole, whole.fits, whole.share, whole.room) == (True, True, 1024, 1024)
    tiles = row_plans._chosen(2048, 8, Choice(32, 1, 1, 8, MOST_AHEAD, 2))
    assert (tiles.whole, tiles.fits, tiles.groups) == (True, False, 4)
