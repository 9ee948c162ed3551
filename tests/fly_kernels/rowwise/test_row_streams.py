"""Kernels of rows that are read ahead, and choices of plans, for Hopper on the device cpu."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

import fly
import fly.expr as fx
from fly.kernels import (
    cross_entropy_backward,
    cross_entropy_rows,
    layer_norm,
    norm_backward,
    softmax,
    softmax_backward,
)
from fly.kernels.rowwise import row_plans
from fly.kernels.rowwise.row_exchanges import NUMBERS, TURNS
from fly.kernels.rowwise.row_plans import (
    MOST_AHEAD,
    Choice,
    has_room,
    measured,
    plan,
    sums_in_registers,
)
from fly.kernels.rowwise.row_streams import each_row, goes_in_two, grid_of
from fly.kernels.rowwise.rows import Matrix
from fly_kernels.judging import judge, tensor

EPS = 1e-5
ROWS = 5  # more than blocks: each takes several


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")


# Columns, threads, vectors, rows ahead, blocks, matrices that are read ahead.
IN_REGISTERS = (520, 64, 2, 3, 2, MOST_AHEAD)
CHOICES = [
    IN_REGISTERS,
    (768, 32, 1, 1, 4, MOST_AHEAD),  # three whole tiles of one wave, in one slot
    (1032, 64, 1, 2, 2, 1),  # three tiles in two slots; a second matrix is not read ahead
    (10 * 256, 32, 1, 1, 3, MOST_AHEAD),  # more tiles than are waited for one by one
]


def norm_gradients(dy, x, weight, centred):
    x, weight = x.detach().clone().requires_grad_(), weight.detach().clone().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    shape = weight.shape
    if centred:
        y = F.layer_norm(x, shape, weight, bias, EPS)
    else:
        y = F.rms_norm(x, shape, weight, EPS)
    y.backward(dy)
    return (x.grad, weight.grad, bias.grad) if centred else (x.grad, weight.grad)


@pytest.mark.heavy
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_rows_that_are_read_ahead(monkeypatch, choice):
    columns, *given = choice
    monkeypatch.setattr(row_plans, "measured", lambda *_: Choice(*given))
    x, dy = (tensor(i, (ROWS, columns), torch.bfloat16) for i in (1, 2))
    weight, bias = (tensor(i, (columns,), torch.bfloat16) for i in (3, 4))
    assert plan(x, kernel="softmax").ahead == given[2]
    judge(softmax(x), lambda x: x.softmax(-1), x)
    judge(
        layer_norm(x, weight, bias, EPS), lambda *a: F.layer_norm(a[0], (columns,), *a[1:], EPS),
        *(x, weight, bias),
    )  # fmt: skip
    y = x.softmax(-1)
    judge(softmax_backward(dy, y), lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)), dy, y)
    centred = choice is IN_REGISTERS or columns % 256 == 0
    found = norm_backward(dy, x, weight, EPS, centred)[: 3 if centred else 2]
    judge(found, lambda *a: norm_gradients(*a, centred), dy, x, weight, roundings=8)
    targets = torch.arange(ROWS) * 7
    losses, sums = cross_entropy_rows(x, targets)
    judge(
        losses, lambda x: F.cross_entropy(x.float() if x.dtype != torch.float64 else x, targets,
                                          reduction="none"), x
    )  # fmt: skip
    d = torch.rand(ROWS)
    chances = x.double().softmax(-1) - F.one_hot(targets, columns)
    made = cross_entropy_backward(d, x, targets, sums, 0.0, -100)
    exact = chances * d[:, None].double()
    assert (made.double() - exact).abs().max() < 2**-8


def test_a_choice_is_for_rows_up_to_its_width(monkeypatch):
    rows = {"2048": [64, 2], "4096": [64, 4, 2, 264]}
    monkeypatch.setattr(row_plans, "_measured", lambda: {"sm_90a": {"one": rows}})
    found = [measured.__wrapped__("one", "sm_90a", n) for n in (1024, 1040, 2048, 2064, 4112)]
    narrow, wide = Choice(64, 2), Choice(64, 4, 2, 264)
    assert found == [None, narrow, narrow, wide, None]
    assert measured.__wrapped__("one", "sm_80", 2048) is None
    assert measured.__wrapped__("other", "sm_90a", 2048) is None


COLUMNS = [1, 7, 96, 512, 2048, 3000, 4096, 4104, 8192, 16384, 32768, 40000]


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_kernel_with_other_numbers_of_threads(monkeypatch, columns, dtype):
    """Only where it is said to have them."""
    x = torch.zeros(2, columns, dtype=dtype)
    for target in ("gfx942", "gfx950", "gfx1201", "sm_90a"):
        monkeypatch.setenv("FLY_TARGET", target)
        usual, own = plan(x), plan(x, kernel="add_layer_norm")
        if target not in row_plans.OTHERS:
            assert own == usual
            continue
        assert own.threads % 64 == 0
        assert own.fits == (own.tile >= columns) == (columns <= 32768)
        assert own.threads >= usual.threads
        most = 8 if columns <= 4096 else 16 if columns <= 8192 else 32
        assert own.vector * own.vectors <= most


def test_a_choice_is_left_for_rows_that_are_not_aligned(monkeypatch):
    monkeypatch.setattr(row_plans, "measured", lambda *_: Choice(64, 2, 2, 4))
    x = torch.zeros(4, 1032, dtype=torch.bfloat16)
    assert plan(x, kernel="one").ahead == 2
    assert plan(x).ahead == 0
    assert plan(x[:, 1:1025], kernel="one").ahead == 0
    assert plan(x, torch.zeros(1032), kernel="one").ahead == 0  # eight f32 are 32 bytes


def test_shipped_plans_fit():
    """Each is for a kernel of bf16 that a block of the chip can run."""
    document = json.loads(row_plans.FILE.read_text(encoding="utf-8"))
    assert set(document) == {"sm_90a"}
    for kernel, rows in document["sm_90a"].items():
        matrices = 2 if kernel in ("softmax_backward", "layer_norm_backward") else 1
        assert [*rows] == sorted(rows, key=int), kernel
        for width, row in rows.items():
            choice = Choice(*row)
            assert choice.threads % 32 == 0
            assert choice.threads <= 1024
            assert bool(choice.ahead) == bool(choice.blocks)
            made = row_plans._chosen(int(width) // 2, 8, choice)
            taken = made.ahead * made.room * 2 * min(matrices, made.among)
            if choice.cluster > 1 or goes_in_two(made):
                warps = choice.threads // 32 * choice.cluster
                assert warps & (warps - 1) == 0, (kernel, width)
                taken += 8 * TURNS * NUMBERS * warps
            assert taken * max(1, choice.resident) <= row_plans.SHARED, (kernel, width)
            assert choice.cluster in (1, 2, 4, 8)
            assert choice.blocks % choice.cluster == 0


def test_sums_need_room():
    """Those that threads have no registers for are in shared memory, beside the rows."""
    made = row_plans._chosen(16384, 8, Choice(512, 1, 1, 132))
    assert sums_in_registers(made, 2) == 2
    assert has_room(made._replace(ahead=3), 2, 2)
    assert not has_room(made._replace(ahead=4), 2, 2)
    wide = row_plans._chosen(32768, 8, Choice(1024, 1, 1, 132))
    assert sums_in_registers(wide, 2) == 1
    assert not has_room(wide, 2, 2)
    assert has_room(wide._replace(among=1), 2, 2)
    many = row_plans._chosen(16384, 8, Choice(32, 1, 1, 132))  # tiles, too many to have code for
    assert sums_in_registers(many, 1) == 0


@pytest.mark.heavy
@pytest.mark.parametrize("among", [1, 2])
def test_sums_in_registers_and_in_shared_memory(monkeypatch, among):
    """Of the weight's and the bias's gradients, threads have registers for one."""
    monkeypatch.setattr(row_plans, "measured", lambda *_: Choice(64, 1, 1, 2, among))
    monkeypatch.setattr(row_plans, "IN_REGISTERS", 1536)
    x, dy = (tensor(i, (ROWS, 1032), torch.bfloat16) for i in (1, 2))
    weight = tensor(3, (1032,), torch.bfloat16)
    assert sums_in_registers(plan(x, kernel="one"), 2) == 1
    found = norm_backward(dy, x, weight, EPS, True)
    judge(found, lambda *a: norm_gradients(*a, True), dy, x, weight, roundings=8)


@pytest.mark.heavy
def test_a_released_row_can_be_read_again(monkeypatch):
    """From memory: in shared memory there is another one."""
    monkeypatch.setattr(row_plans, "measured", lambda *_: Choice(64, 2, 1, 2))

    @fly.kernel
    def twice_kernel(X: fx.Tensor, Y: fx.Tensor, plan: fx.Constexpr[row_plans.Plan]):
        def one_row(row, _):
            x = row.read(X)
            row.release()
            total = row.sum(x)
            row.write(Y, row.map(lambda x, again: x + again + 0 * total, x, row.read(X)))

        each_row(plan, X.shape, one_row, X)

    @fly.jit
    def twice(X: Matrix, plan: fx.Constexpr[row_plans.Plan]):
        Y = fx.empty(X.shape, X.dtype)
        twice_kernel(X, Y, plan).launch(grid=grid_of(plan, X.shape[0]), block=plan.threads)
        return Y

    x = tensor(1, (ROWS, 520), torch.bfloat16)
    assert torch.equal(twice(x, plan(x, kernel="one")), 2 * x)
