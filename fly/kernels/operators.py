"""Functions of arrays that are operators of torch, too.

A kernel of this package is called by a function of arrays. For NumPy arrays the function runs. For
torch tensors the operator `torch.ops.fly_kernels.NAME` is called instead, whose implementation is
the same function: torch then knows its gradient, and `torch.compile` the shapes of its results.

Nothing here imports torch. Operators are made when torch is there: with the module that defines the
function, or at the first call with a tensor. `torch.compile` can't trace the latter: import torch
before `fly.kernels`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from numbers import Integral, Real
from threading import Lock
from typing import Any, NamedTuple

from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly.kernels.arrays import aligned

NAMESPACE = "fly_kernels"  # "fly" is that of functions that an application registers
Function = Callable[..., Any]
_MAKING = Lock()  # torch replaces an operator that is made again, also while it is called


class Kind(NamedTuple):
    """What an argument of a schema may be: of some types, or of a type named so, or have an
    attribute."""

    text: str
    types: tuple[type, ...] = ()
    attribute: str = ""
    names: tuple[str, ...] = ()

    def has(self, value: Any) -> bool:
        """Whether an argument of a call with NumPy arrays is of this kind."""
        if self.attribute:  # np.matrix stays one of two dimensions, whatever it is reshaped to
            return hasattr(value, self.attribute) and type(value).__name__ != "matrix"
        return isinstance(value, self.types) or type(value).__name__ in self.names

    def has_for(self, torch: Any, value: Any) -> bool:
        """Whether an argument of a call with tensors is of this kind: torch takes a tensor of one
        element as a number, and a number that it does not know while it traces."""
        if self.attribute:
            return isinstance(value, torch.Tensor)
        if isinstance(value, torch.Tensor):
            return value.ndim == 0 and str not in self.types
        return self.has(value) or type(value).__name__ in ("SymInt", "SymFloat", "SymBool")


# Kinds by torch's types; what is not here a function checks itself.
KINDS = {
    "Tensor": Kind("a NumPy array", attribute="__array_interface__"),
    "int": Kind("an integer", (Integral,)),
    "SymInt": Kind("an integer", (Integral,)),
    "float": Kind("a number", (Real,)),
    "bool": Kind("a bool", (Integral,), names=("bool", "bool_")),  # NumPy's, too
    "str": Kind("a string", (str,)),
}
# Of calls with tensors alone: NumPy's have many ways to say it.
TORCH_KINDS = {
    **KINDS,
    "ScalarType": Kind("a torch.dtype", names=("dtype",)),
    "int[2]": Kind("an integer or two", (Integral, list, tuple), names=("Size",)),
}


class Operator:
    """A function of arrays, decorated by `operator`."""

    def __init__(self, function: Function, schema: str, fake: Function, mutates: tuple[str, ...]):
        self.function, self.schema, self.fake, self.mutates = function, schema, fake, mutates
        self.name = function.__name__
        self._kinds = kinds_of(schema)
        self._gradient: tuple[Function, Function] | None = None
        self._made: Any = None
        update_wrapper(self, function)
        if "torch" in sys.modules:
            self._made = self._operator()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        first = arguments[0] if arguments else named.get(next(iter(self._kinds)))
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(first, torch.Tensor):
            if not torch.compiler.is_compiling():
                self._refuse_tangents(torch, (*arguments, *named.values()))
                self._check(arguments, named, torch)
            return self.torch(*arguments, **named)
        if not hasattr(first, "__array_interface__"):
            raise UsageError(
                f"{self.name} takes NumPy arrays or torch tensors, not {quoted(first)}"
            )
        self._check(arguments, named)
        return self._call(arguments, named)

    def _check(self, arguments: tuple[Any, ...], named: dict[str, Any], torch: Any = None) -> None:
        """Raises UsageError for arguments of other kinds than the schema's. With tensors, torch's
        own check would come next, whose message has the whole schema and pybind11's advice."""
        kinds = TORCH_KINDS if torch else KINDS
        for name, value in (*zip(self._kinds, arguments, strict=False), *named.items()):
            kind_name, optional = self._kinds.get(name, ("", True))
            kind = kinds.get(kind_name)
            if kind is None or (optional and value is None):
                continue
            if not (kind.has_for(torch, value) if torch else kind.has(value)):
                text = "a torch tensor" if torch and kind.attribute else kind.text
                raise UsageError(f"{self.name} takes {name} as {text}, not {quoted(value)}")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise UsageError(f"{name} is {value}, which does not fit in 64 bits")
            if torch and kind.attribute and value.layout is not torch.strided:
                layout = str(value.layout).removeprefix("torch.")
                raise UsageError(f"{name} is {layout}", hint="pass x.to_dense()")

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Calls the function with arrays whose elements are where a kernel can read them: others,
        such as a field of packed records, are copied, but for those that it writes."""
        given = {name: one if name in self.mutates else aligned(one) for name, one in named.items()}
        placed = [
            one if name in self.mutates else aligned(one)
            for name, one in zip(self._kinds, arguments, strict=False)
        ]
        return self.function(*placed, *arguments[len(placed) :], **given)

    def _refuse_tangents(self, torch: Any, values: tuple[Any, ...]) -> None:
        """Raises UsageError for tensors with a forward-mode derivative, which operators of
        `torch.library` leave out of their results without a word."""
        unpack = torch.autograd.forward_ad.unpack_dual
        tensors = (one for one in values if isinstance(one, torch.Tensor))
        if any(unpack(one).tangent is not None for one in tensors):
            raise UsageError(
                f"{self.name} has no forward-mode derivative",
                hint="take gradients backward, as by torch.autograd.grad",
            )

    def gradient(self, save: Function) -> Callable[[Function], Function]:
        """Decorates the backward function, which gets the context that `save` has filled and the
        gradients of the results, and returns the gradients of the arguments. Both are as in
        `torch.library.register_autograd`."""

        def decorate(backward: Function) -> Function:
            self._gradient = backward, save
            if self._made is not None:
                self._made.register_autograd(backward, setup_context=save)
            return backward

        return decorate

    @property
    def torch(self) -> Any:
        """The operator of torch: what `torch.library.custom_op` returns."""
        if self._made is None:
            with _MAKING:
                if self._made is None:
                    self._made = self._operator()
        return self._made

    def _operator(self) -> Any:
        from torch.library import custom_op

        made = custom_op(
            f"{NAMESPACE}::{self.name}",
            self._run,
            mutates_args=self.mutates,
            schema=self.schema,
        )
        made.register_fake(self._fake)
        if self._gradient is not None:
            backward, save = self._gradient
            made.register_autograd(backward, setup_context=save)
        return made

    def _run(self, *arguments: Any, **named: Any) -> Any:
        made = self._call(arguments, named)
        return tuple(map(unviewed, made)) if isinstance(made, tuple) else unviewed(made)

    def _fake(self, *arguments: Any, **named: Any) -> Any:
        """What the function returns, as tensors without elements. torch also calls this if one of
        the tensors has none, on the device `meta`: UsageError if others have."""
        values = (*arguments, *named.values())
        devices = {str(one.device): None for one in values if hasattr(one, "device")}
        if len(devices) > 1:
            raise UsageError(
                f"{self.name} takes tensors of one device, not of {' and '.join(devices)}"
            )
        return self.fake(*arguments, **named)


def unviewed(x: Any) -> Any:
    """A tensor of the same memory that is no view: autograd refuses to change an operator's result
    in place if it is one, as in relu_()."""
    if not x._is_view():
        return x
    return x.new_empty(0).set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride())


def kinds_of(schema: str) -> dict[str, tuple[str, bool]]:
    """torch's type of each parameter of a schema, and whether it may be None."""
    parameters = schema[1 : schema.rindex(") ->")].split(", ")
    named = (one.partition("=")[0].rpartition(" ")[::2] for one in parameters if one != "*")
    return {name: (kind.partition("(")[0].rstrip("?"), kind.endswith("?")) for kind, name in named}


def operator(
    schema: str, *, fake: Function, mutates: tuple[str, ...] = ()
) -> Callable[[Function], Operator]:
    """Decorates a function of arrays. `schema` is torch's, as in "(Tensor x, int dim=-1) ->
    Tensor"; the first argument is an array. `fake` takes tensors without elements and returns such
    ones. `mutates` names the arguments that the function writes, "Tensor(a!) x" in the schema."""

    def decorate(function: Function) -> Operator:
        return Operator(function, schema, fake, mutates)

    return decorate


def wanted(ctx: Any, count: int) -> tuple[bool, ...]:
    """Which of the first `count` arguments need a gradient, in a backward function: the others cost
    nothing if it returns None. torch's list leaves out arguments that were not given."""
    return (*ctx.needs_input_grad, *[False] * count)[:count]


def like(x: Any, *_: Any) -> Any:
    """The fake of operators that return a contiguous tensor of the first argument's type and
    shape."""
    return x.new_empty(x.shape)
