"""`flydsl.compiler.kernel_function`: kernels and their launches."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import FunctionType
from typing import Any, ClassVar

from fly_common.errors import InputError
from fly_common.record import record
from fly_trace.core import locations, tracing
from fly_trace.session.decorators import KernelFunction as _KernelFunction
from fly_trace.session.launch import KernelCall

from fly.flydsl.compiler import hints, plain_functions  # noqa: F401  (registers itself)
from fly.flydsl.numbers.operators import NUMBERS


@record(frozen=False, eq=False)
class KernelFunction(_KernelFunction):
    """The result of `@flyc.kernel`. `owner` is the object that it is a method of."""

    settable: ClassVar[frozenset[str]] = frozenset(("_known_block_size", "name"))
    rules: Any = NUMBERS
    owner: Any = None

    @property
    def _set(self) -> dict[str, Any]:
        """What the host function that is traced has assigned to the kernel's attributes."""
        return tracing.current("a kernel's attribute").scratch.setdefault(("kernel", id(self)), {})

    @property
    def _known_block_size(self) -> Any:
        if tracing.active() is None:
            return None if self.block is None else list(self.block)
        return self._set.get("block", self.block)

    @_known_block_size.setter
    def _known_block_size(self, value: Sequence[int]) -> None:
        self._set["block"] = tuple(int(size) for size in (*value, 1, 1)[:3])

    @property
    def _func(self) -> _Named:
        return _Named(self)

    @functools.cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def __get__(self, owner: Any, kind: Any = None) -> KernelFunction:
        """As an attribute of an object: its first parameter is the object."""
        if owner is None:
            return self
        return KernelFunction(self.function, self.name, self.block, self.rules, owner)  # type: ignore[arg-type]

    def __call__(
        self,
        *arguments: Any,
        unit_attrs: Sequence[str] | None = None,
        value_attrs: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> Any:
        if self.owner is not None:
            arguments = (self.owner, *arguments)
        builder = tracing.active()
        if builder is None or not builder.host:
            return super().__call__(*arguments, **named)  # refused
        chosen, rules = self._set, builder.rules or NUMBERS
        key = chosen.get("name", self.name), chosen.get("block", self.block), rules
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = _KernelAsSet(self.function, key[0], key[1])  # type: ignore[arg-type]
            made.rules = rules
        call = _KernelFunction.__call__(made, *arguments, **named)
        return KernelLauncher(call, tuple(unit_attrs or ()), value_attrs or {})


class _KernelAsSet(_KernelFunction):
    """A kernel with the attributes that a host function has assigned."""

    rules: Any = NUMBERS


class _Named:
    """The function of a kernel, whose name a host function may assign."""

    settable = frozenset(("__name__",))

    _kernel: KernelFunction

    def __init__(self, kernel: KernelFunction):
        object.__setattr__(self, "_kernel", kernel)

    @property
    def __name__(self) -> str:
        return self._kernel._set.get("name", self._kernel.name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "__name__":
            raise AttributeError(f"{name} of a kernel's function can't be assigned")
        self._kernel._set["name"] = str(value)


class KernelLauncher:
    """`kernel(A, B)`: a call that waits for `.launch(…)`."""

    def __init__(self, call: KernelCall, units: tuple[str, ...], values: Mapping[str, Any]):
        self._call, self._units, self._values = call, units, values

    def launch(
        self,
        grid: Any = (1, 1, 1),
        block: Any = (1, 1, 1),
        smem: Any = None,
        stream: Any = None,
        cluster: Sequence[int] | None = None,
        unit_attrs: Sequence[str] | None = None,
        value_attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Launches the kernel. `value_attrs` and `unit_attrs` are attributes of MLIR for its
        function; a value of None leaves one out. `cluster` is the number of blocks of a cluster
        along x, y and z, on targets that have clusters."""
        given = {**self._values, **(value_attrs or {})}
        rules = self._call.kernel.rules
        if rules.waves_per_eu:
            given["rocdl.waves_per_eu"] = rules.waves_per_eu
        if rules.registers:
            own = list(given.get("passthrough") or ())
            given["passthrough"] = [*own, ["amdgpu-num-vgpr", str(rules.registers)]]
        if "passthrough" in given:  # which MLIR's conversion of kernels drops
            given["fly.passthrough"] = given.pop("passthrough")
        if cluster is not None and tuple(cluster) != (1, 1, 1):
            x, y, z = (*cluster, 1, 1)[:3]
            given["rocdl.cluster_dims"] = f"{x},{y},{z}"
        attributes = tuple(
            sorted(
                (name, _plain(name, value)) for name, value in given.items() if value is not None
            )
        )
        attributes += tuple((name, True) for name in sorted({*self._units, *(unit_attrs or ())}))
        self._call.launch(grid, block, smem, stream, attributes)


def _plain(name: str, value: Any) -> int | str:
    number = getattr(value, "number", None)
    found = value if number is None else number
    if isinstance(found, (int, str)):
        return found
    if isinstance(found, (list, tuple)):
        return f"[{', '.join(map(_text, found))}]"
    if hasattr(found, "type") or hasattr(found, "context"):
        return str(found)
    raise InputError(
        f"value_attrs[{name!r}] must be a number or text, not {tracing.describe(value)}"
    )


def _text(value: Any) -> str:
    """An item of a list as the text of an attribute."""
    import json

    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return json.dumps(value) if isinstance(value, str) else str(value)


def block_of(given: Any) -> tuple[int, int, int]:
    """`known_block_size`, checked. TypeError or ValueError for what is none."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"known_block_size is a sequence of 3 positive integers, not {given!r}")
    if len(given) != 3:
        raise ValueError(f"known_block_size has exactly 3 elements, not {len(given)}")
    sizes = []
    for one in given:
        size = getattr(one, "number", one)
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"an element of known_block_size must be an int, not {one!r}")
        if size < 1:
            raise ValueError(f"an element of known_block_size must be positive, not {size}")
        sizes.append(size)
    x, y, z = sizes
    return x, y, z


def kernel(
    function: Any = None, *, name: str | None = None, known_block_size: Sequence[int] | None = None
) -> Any:
    """Makes a function a kernel: `@flyc.kernel`, `@flyc.kernel(known_block_size=(256, 1, 1))`."""

    block = None if known_block_size is None else block_of(known_block_size)

    def make(plain: Any) -> KernelFunction:
        if not isinstance(plain, FunctionType):
            raise InputError(
                f"@flyc.kernel decorates a function, not a {type(plain).__name__}",
                place=locations.place(locations.here(2)),
            )
        return KernelFunction(plain, name or plain.__name__, block)

    return make if function is None else make(function)


class CompilationContext:
    """`with CompilationContext.compile_hints({"waves_per_eu": 2}): launch(…)`."""

    @staticmethod
    def compile_hints(given: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Hints for what is compiled in the block, besides those of the blocks around it."""
        return hints.using(given)

    @staticmethod
    def get_compile_hints() -> dict[str, Any]:
        """The hints of the surrounding blocks."""
        return dict(hints.current())

    @property
    def gpu_module_body(self) -> Any:
        """The block of the module that the kernels of the traced function are in."""
        function = tracing.current("gpu_module_body").block.owner.operation
        assert function.parent is not None, "it is in a module"
        around = function.parent.operation
        if around.name != "gpu.module":
            siblings = around.regions[0].blocks[0].operations
            around = next(one.operation for one in siblings if one.operation.name == "gpu.module")
        return around.regions[0].blocks[0]

    @staticmethod
    @functools.cache
    def get_current() -> CompilationContext:
        """The context of the function that is traced."""
        return CompilationContext()
