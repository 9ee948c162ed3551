"""`Lowering`: what fly-opt-py asks of a backend.

A backend's record (`fly_backend`) refers to its `Lowering`. Nothing here imports MLIR:
`--list-passes` and a cache hit ask too. What works on operations is imported by the method that
does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from fly_backend import registry
from fly_common.resolve import resolve
from fly_target.target import Target

# The last element of a pipeline that ends in LLVM IR, in the listing of the host program, or in the
# LLVM IR of its launcher. It is written in the pipeline's text like a pass, so that the text alone
# says what comes out; it has to be the last.
EMIT_LLVM = "fly-emit-llvm"
EMIT_HOST = "fly-emit-host"
EMIT_HOST_LLVM = "fly-emit-host-llvm"

# Target, whether line tables are wanted → the pipeline's fragments, each with its reason beside it.
Pipeline = Callable[[Target, bool], tuple[str, ...]]


class PointerSpaces(Protocol):
    """The address spaces of a backend's own, whose pointers are not LLVM's. `spec` is the pointer's
    or memref's type as data, `pointer` the value that it has become. ValueError for what can't
    be."""

    def holds(self, spec: Any, /) -> bool:
        """Whether a type is a pointer or memref in one of these spaces."""
        ...

    def lowered_type(self, spec: Any, /) -> Any:
        """The LLVM type that a pointer becomes."""
        ...

    def make_pointer(self, conversion: Any, op: Any, /) -> Any:
        """The pointer that a `fly.make_ptr` makes."""
        ...

    def add(self, builder: Any, pointer: Any, elements: Any, /) -> Any:
        """The pointer `elements` on."""
        ...

    def load_through(self, builder: Any, spec: Any, pointer: Any, type_: Any, /) -> Any: ...

    def store_through(self, builder: Any, spec: Any, pointer: Any, value: Any, /) -> None: ...


class Lowering(Protocol):
    """A backend's part of fly-opt-py."""

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Name of a pipeline → what makes its fragments."""
        ...

    @property
    def passes(self) -> Mapping[str, str]:
        """Name of a pass of this backend's own → the module that defines it."""
        ...

    @property
    def upstream_passes(self) -> Mapping[str, str]:
        """Name of a pass of MLIR's for this backend → what it does."""
        ...

    @property
    def emitters(self) -> tuple[str, ...]:
        """Modules that register emitters of instructions (`fly_opt.atoms.emitters`)."""
        ...

    @property
    def translated(self) -> tuple[str, ...]:
        """Prefixes of the ops that MLIR's translation to LLVM IR knows, beside `llvm.`"""
        ...

    @property
    def intrinsics(self) -> frozenset[str]:
        """Intrinsics of the target that passes call by name."""
        ...

    def spaces(self) -> PointerSpaces | None: ...

    def conversions(self) -> Mapping[str, Callable[[Any, Any], Any]]:
        """The ops of the backend's dialect by full name, each with the function that converts it
        (as in `fly_opt.passes.llvm`)."""
        ...

    def convert_float(self, op: Any, target: Target | None) -> bool:
        """Replaces an `arith.extf` or `arith.truncf` of a float that LLVM does not have by the
        target's instructions; False where LLVM has both types."""
        ...

    def significand(self, value: Any) -> Any:
        """m of an f64 ±m·2^k, 1/2 <= m < 1, as an f64."""
        ...

    def exponent(self, value: Any) -> Any:
        """k of an f64 ±m·2^k, 1/2 <= m < 1, as an i32."""
        ...

    def lacks(self, name: str) -> bool:
        """Whether the oldest LLVM that is accepted lacks an op, and nothing replaces it."""
        ...

    def replaces(self, name: str) -> bool:
        """Whether `replace` replaces an op, which the oldest LLVM lacks, by what it has."""
        ...

    def replace(self, op: Any) -> None: ...

    @property
    def function_attributes(self) -> Mapping[str, str]:
        """Attributes that the backend's passes put on functions → the class of their value in the
        bindings. Functions with other attributes of a dialect are translated in a child first."""
        ...

    def wrong_function(self, function: Any) -> str | None:
        """What is wrong with a function on which MLIR's translation would crash."""
        ...

    def bridge(self, text: str) -> str:
        """LLVM IR with intrinsics in the form that the oldest LLVM reads."""
        ...

    def module_flags(self) -> tuple[str, ...]:
        """`#llvm.mlir.module_flag` attributes that a module for this backend has."""
        ...

    def needed_functions(self, text: str) -> tuple[str, ...]:
        """The functions of the device libraries that LLVM IR declares."""
        ...

    def link(self, text: str, functions: tuple[str, ...], target: Target) -> str:
        """LLVM IR with these functions linked into it. MissingError without the libraries."""
        ...

    def identity(self) -> str:
        """What results depend on outside of this project's sources: the device libraries."""
        ...


@functools.cache
def of_backend(name: str) -> Lowering:
    """The lowering of the backend `name`."""
    return resolve(registry.find(name).lowering)


def of_target(target: Target) -> Lowering:
    return of_backend(target.backend)


@functools.cache
def built_in() -> tuple[Lowering, ...]:
    """The lowerings of the backends that come with the compiler."""
    return tuple(of_backend(name) for name in registry.BUILT_IN)


def candidates(target: Target | None) -> tuple[Lowering, ...]:
    """The target's lowering; all of them for a module that names no target."""
    return built_in() if target is None else (of_target(target),)


# The lowering that the pass at work is for; formulas ask it for the target's own instructions.
active: ContextVar[Lowering] = ContextVar("active lowering")


def current() -> Lowering:
    """The lowering that the pass at work is for; the default backend's where none says so."""
    return active.get(None) or built_in()[0]
