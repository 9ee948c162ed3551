"""Functions of this library as operators of torch.

    op = fly.torch.register(softmax)                 torch.ops.fly.softmax
    torch.compile(lambda x: op(x) + 1)(x)

`torch.compile` sees an operator that it knows the shapes of; see `register`.
"""

from fly.torch.operators import register

__all__ = ["register"]
