"""CUDA graphs, and operators under torch.compile."""

from __future__ import annotations

from collections.abc import Callable

import torch

from h200_devices.on_tensors import compiled, has_native, native, tensors


def captured(call: Callable[..., object]) -> None:
    """Captures two calls, and replays them with other contents."""
    a, b, c = tensors(100_000)
    d = torch.zeros_like(c)
    call(a, b, c)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    c.zero_()
    with torch.cuda.graph(graph):
        call(a, b, c)
        call(c, b, d)
    torch.cuda.synchronize()
    assert not c.any()  # it was captured, not run
    for seed in range(3):
        a.fill_(seed)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(c, b + seed)
        assert torch.equal(d, b + seed + b)


def graph() -> str:
    captured(compiled())
    if not has_native():
        return "Python; native not run: llvmlite is not installed"
    captured(native(*tensors(100_000)))
    return "Python and native"


def made_in_a_graph() -> None:
    """Tensors that the host function makes come from the graph's pool."""
    call = compiled(makes=True)
    a, b, _ = tensors(100_000)
    call(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = call(call(a, b), b)
    for seed in range(3):
        a.fill_(seed)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(made, b + seed + b)


def operator() -> str:
    """An operator of torch, as fly.torch.register makes one, under torch.compile."""
    call = compiled(makes=True)
    name = "fly_h200::add"

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return call(a, b)

    made = torch.library.custom_op(name, run, mutates_args=())
    made.register_fake(lambda a, b: torch.empty_like(a))
    a, b, _ = tensors(100_000)
    assert torch.equal(made(a, b), a + b)
    torch.library.opcheck(made, (a, b), test_utils=("test_schema", "test_faketensor"))
    told = ["eager"]
    for mode in ("default", "reduce-overhead"):  # the latter uses CUDA graphs
        function = torch.compile(lambda x, y: made(x, y) * 2 + 1, mode=mode)
        for _ in range(4):
            a.uniform_()
            torch.testing.assert_close(function(a, b), (a + b) * 2 + 1)
        told.append(mode)
    return ", ".join(told)


CHECKS = {one.__name__: one for one in (graph, made_in_a_graph, operator)}
