"""A random call, and how its results are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from fly_kernels.judging import judge
from torch._subclasses.fake_tensor import FakeTensorMode

from kernel_cases.choice import Choice, listed

Function = Callable[..., Any]


@dataclass
class Case:
    """A call of a kernel.

    call: the kernel, exact: the reference, of the same arguments. text: options. judge: compares
    results with those of the reference, instead of `fly_kernels.judging`. differentiable: which
    arguments have a gradient. written: which arguments the call writes: they are results, too.
    """

    call: Function
    exact: Function
    arguments: Sequence[torch.Tensor]
    text: str = ""
    check: Callable[[Any, Sequence[torch.Tensor]], None] | None = None
    differentiable: Sequence[int] = ()
    written: Sequence[int] = ()
    options: dict[str, Any] = field(default_factory=dict)  # of `judge`

    def __str__(self) -> str:
        return f"{self.text} of {listed(self.arguments)}"


def ways(choice: Choice, case: Case) -> str:
    """How the case is called: "torch", "numpy", or "gradients"."""
    if case.differentiable and choice.chance(0.5):
        return "gradients"
    of_numpy = all(one.dtype != torch.bfloat16 and one.itemsize != 1 for one in case.arguments)
    return "numpy" if of_numpy and choice.chance(0.3) else "torch"


def run(choice: Choice, case: Case, way: str) -> None:
    """Raises AssertionError if results are not those of the reference, if another argument is
    changed, or if a result is not as the fake kernel says."""
    before = [one.clone() for one in case.arguments]
    if way == "gradients":
        _judge_gradients(choice, case)
    else:
        arguments = [_writable(one, i in case.written) for i, one in enumerate(case.arguments)]
        if way == "numpy":
            arrays = [_flipped(choice, one, i in case.written) for i, one in enumerate(arguments)]
            found = _tensors(case.call(*arrays))
            arguments = [torch.from_numpy(one.copy()) for one in arrays]
        else:
            found = case.call(*arguments)
            _same_as_fake(case, found)
        found = (*_tuple(found), *(arguments[i] for i in case.written))
        found = found if len(found) > 1 else found[0]
        if case.check is not None:
            case.check(found, before)
        else:
            judge(found, case.exact, *before, **case.options)
    for i, (one, was) in enumerate(zip(case.arguments, before, strict=True)):
        if i not in case.written:
            torch.testing.assert_close(one, was, rtol=0, atol=0, equal_nan=True, msg="changed")


def _judge_gradients(choice: Choice, case: Case) -> None:
    wanted = [i for i in case.differentiable if choice.chance(0.7)] or [case.differentiable[0]]
    gradients: list[torch.Tensor] = []

    def derivative(function: Function, arguments: Sequence[torch.Tensor]) -> Any:
        own = [
            one.detach().clone().requires_grad_() if i in wanted else one
            for i, one in enumerate(arguments)
        ]
        made = _tuple(function(*own))
        if not gradients:
            gradients.extend(choice.normal(one.shape, one.dtype, 1.0) for one in made)
        pairs = [
            (one, gradient.to(one.dtype))
            for one, gradient in zip(made, gradients, strict=True)
            if one.requires_grad
        ]
        made, given = zip(*pairs, strict=True)
        return torch.autograd.grad(made, [own[i] for i in wanted], given, allow_unused=True)

    found = derivative(case.call, case.arguments)
    assert None not in found, "a gradient is missing"
    judge(found, lambda *given: derivative(case.exact, given), *case.arguments, **case.options)


def _same_as_fake(case: Case, found: Any) -> None:
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(one) for one in case.arguments]
        expected = case.call(*fakes)
    for real, fake in zip(_tuple(found), _tuple(expected), strict=True):
        as_real, as_fake = [(one.dtype, tuple(one.shape), _steps(one)) for one in (real, fake)]
        assert as_real == as_fake, f"the result is {as_real}, and its fake {as_fake}"


def _steps(x: torch.Tensor) -> Any:
    """The strides that matter."""
    if not x.numel():
        return None
    return [step for step, extent in zip(x.stride(), x.shape, strict=True) if extent > 1]


def _writable(x: torch.Tensor, written: bool) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format) if written else x


def _flipped(choice: Choice, x: torch.Tensor, written: bool) -> np.ndarray:
    """The same numbers as an array, in the opposite order in memory along some dimension."""
    array = x.numpy()
    if written or not array.ndim or choice.chance(0.7):
        return array
    axis = choice.whole(0, array.ndim - 1)
    return np.flip(np.flip(array, axis).copy(), axis)


def _tensors(found: Any) -> Any:
    made = tuple(torch.from_numpy(np.array(one)) for one in _tuple(found))
    return made if isinstance(found, tuple) else made[0]


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
