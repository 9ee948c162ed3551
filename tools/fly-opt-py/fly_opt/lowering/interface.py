"""`Lowering`: the interface of fly-opt-py to a backend.

A backend's record (`fly_backend`) refers to its `Lowering`. Nothing here imports MLIR, because
`--list-passes` and cache hits use it too. Methods that work on operations import MLIR themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from fly_backend import registry
from fly_common.resolve import resolve
from fly_dialect.extension import backend_of
from fly_plugin import active as plugins
from fly_target import registry as targets
from fly_target.target import Target

if TYPE_CHECKING:
    from fly_dialect.bindings import ir
    from fly_dialect.types import MemRefSpec, PtrSpec, Spec
    from fly_host.program import Word

    from fly_opt.ir.builder import Builder
    from fly_opt.passes.host.values import Values
    from fly_opt.passes.instrumentation.accesses import Access
    from fly_opt.passes.llvm.conversion import Conversion
    from fly_opt.pipeline.text import Nest

# The last element of a pipeline that ends in LLVM IR, in the listing of the host program, or in the
# LLVM IR of its launcher. It is written in the pipeline's text like a pass, so that the text alone
# says what comes out; it has to be the last.
EMIT_LLVM = "fly-emit-llvm"
EMIT_HOST = "fly-emit-host"
EMIT_HOST_LLVM = "fly-emit-host-llvm"

# The pass that lowers asserts and printed lines; the option `asserts` says which of them.
PRINTS = "fly-lower-prints"

# A place in a pipeline where plugins run (`fly_plugin.slots`), written among its fragments.
SLOT = "slot:"

# A function of SSA values.
Function = Callable[..., "ir.Value"]

# (target, whether to emit line tables) → the pipeline's fragments, each with its reason beside it.
Pipeline = Callable[[Target, bool], tuple[str, ...]]


class PointerSpaces(Protocol):
    """A backend's own address spaces, whose pointers are not LLVM pointers.

    `spec` is the type of the pointer or memref, `pointer` its lowered value. Methods raise
    ValueError for an unsupported operation.
    """

    def holds(self, spec: Spec, /) -> bool:
        """Returns whether a type is a pointer or memref in one of these spaces."""
        ...

    def lowered_type(self, spec: Spec, /) -> ir.Type:
        """Returns the LLVM type of a lowered pointer."""
        ...

    def make_pointer(self, conversion: Conversion, op: ir.Operation, /) -> ir.Value:
        """Lowers a `fly.make_ptr`."""
        ...

    def add(self, builder: Builder, pointer: ir.Value, elements: ir.Value, /) -> ir.Value:
        """Returns the pointer plus `elements` elements."""
        ...

    def load_through(
        self,
        builder: Builder,
        spec: PtrSpec | MemRefSpec,
        pointer: ir.Value,
        type_: ir.Type,
        /,
    ) -> ir.Value: ...

    def store_through(
        self,
        builder: Builder,
        spec: PtrSpec | MemRefSpec,
        pointer: ir.Value,
        value: ir.Value,
        /,
    ) -> None: ...


class Lowering(Protocol):
    """A backend's part of fly-opt-py."""

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Maps a pipeline's name to the function that returns its fragments."""
        ...

    def with_own_end(self, pipeline: Nest, target: Target, /) -> Nest:
        """Returns a pipeline that ends in MLIR's gpu-module-to-binary with LLVM IR as its end.
        UsageError if the backend has none for it."""
        ...

    @property
    def passes(self) -> Mapping[str, str]:
        """Maps a pass of this backend to the module that defines it."""
        ...

    @property
    def upstream_passes(self) -> Mapping[str, str]:
        """Maps an MLIR pass for this backend to its description."""
        ...

    @property
    def emitters(self) -> tuple[str, ...]:
        """Modules that register instruction emitters (`fly_opt.atoms.emitters`)."""
        ...

    @property
    def translated(self) -> tuple[str, ...]:
        """Prefixes of the ops that MLIR's translation to LLVM IR accepts, besides `llvm.`"""
        ...

    @property
    def intrinsics(self) -> frozenset[str]:
        """Intrinsics of the target that passes call by name."""
        ...

    def spaces(self) -> PointerSpaces | None: ...

    def lowered_type(self, spec: Spec, /) -> ir.Type | None:
        """Returns the LLVM type to which a type of the backend's dialect lowers, other than
        pointers and atoms; None for any other type."""
        ...

    def conversions(self) -> Mapping[str, Callable[[Conversion, ir.Operation], ir.Value | None]]:
        """Maps an op of the backend's dialect, by full name, to the function that converts it (see
        `fly_opt.passes.llvm`)."""
        ...

    def host_values(self) -> Mapping[str, Callable[[Values, ir.Operation], Word]]:
        """Maps an op of the backend's dialect that host functions have, by full name, to the
        function that returns what a kernel is passed for its result."""
        ...

    def convert_float(self, op: ir.Operation, target: Target | None) -> bool:
        """Replaces an `arith.extf` or `arith.truncf` of a float type that LLVM does not have by the
        target's instructions; returns False if LLVM has both types."""
        ...

    def accesses(self, op: ir.Operation) -> list[Access]:
        """Returns what an op that is not LLVM's reads and writes: see
        `fly_opt.passes.instrumentation.accesses`."""
        ...

    @property
    def block_scope(self) -> str:
        """LLVM's name for the scope of atomic operations among the threads of a block."""
        ...

    def function(self, op: ir.Operation) -> Function | None:
        """Returns how to compute a math operation, as a function of scalar SSA values, if the
        backend's way differs from that of `fly_opt.passes.math`."""
        ...

    def exponential(self, value: ir.Value) -> ir.Value:
        """Returns e^x of an f32."""
        ...

    def significand(self, value: ir.Value) -> ir.Value:
        """Returns m, as an f64, for an f64 ±m·2^k with 1/2 <= m < 1."""
        ...

    def exponent(self, value: ir.Value) -> ir.Value:
        """Returns k, as an i32, for an f64 ±m·2^k with 1/2 <= m < 1."""
        ...

    def lacks(self, name: str) -> bool:
        """Returns whether the oldest supported LLVM lacks an op and there is no replacement."""
        ...

    def replaces(self, name: str) -> bool:
        """Returns whether `replace` replaces an op that the oldest supported LLVM lacks."""
        ...

    def replace(self, op: ir.Operation) -> None: ...

    @property
    def function_attributes(self) -> Mapping[str, str]:
        """Maps attributes that the backend's passes set on functions to the class of their value in
        the bindings. Functions with other dialect attributes are translated in a child process
        first."""
        ...

    def wrong_function(self, function: ir.Operation) -> str | None:
        """Returns what is wrong with a function that would crash MLIR's translation."""
        ...

    def bridge(self, text: str) -> str:
        """Rewrites intrinsics in LLVM IR to the form that the oldest supported LLVM reads."""
        ...

    def host_program(self, text: str) -> tuple[str, ...]:
        """Returns the lines of module assembly that carry the host program to the linker, in the
        section `.fly.manifest`. Stamps of plugins are carried in the same way, in a section that is
        named otherwise."""
        ...

    def module_flags(self) -> tuple[str, ...]:
        """`#llvm.mlir.module_flag` attributes of a module for this backend."""
        ...

    def needed_functions(self, text: str) -> tuple[str, ...]:
        """Returns the device library functions that LLVM IR declares."""
        ...

    def link(self, text: str, functions: tuple[str, ...], target: Target) -> str:
        """Links these functions into LLVM IR. MissingError if the libraries are not installed."""
        ...

    def identity(self) -> str:
        """Identifies what results depend on outside this project's sources: the device
        libraries."""
        ...


_loaded: dict[str, Lowering] = {}  # by backend, in the order of their first use


def of_backend(name: str) -> Lowering:
    """Returns the lowering of the backend `name`."""
    if plugins() and (own := registry.of_plugins().get(name)) is not None:
        return resolve(own.lowering)
    if name not in _loaded:
        _loaded[name] = resolve(registry.find(name).lowering)
    return _loaded[name]


def _in_use() -> dict[str, Lowering]:
    """Returns the lowerings that were used, and those of active plugins, by backend."""
    if not plugins():
        return _loaded
    return {**_loaded, **{name: of_backend(name) for name in registry.of_plugins()}}


def of_target(target: Target) -> Lowering:
    return of_backend(target.backend)


def set_target(target: Target) -> str:
    """Returns the first fragment of a pipeline for `target`, which records it on the module."""
    row = targets.get(target.name)
    own = row is None or row.backend == target.backend
    return f"fly-set-target{{chip={target.name}{'' if own else f' backend={target.backend}'}}}"


def of_name(name: str) -> Lowering | None:
    """Returns the lowering of the backend whose dialect has the op, type or space `name`."""
    backend = backend_of(name)
    return None if backend is None else of_backend(backend.name)


def upstream_of(lowerings: Iterable[Lowering]) -> Iterator[str]:
    """Yields the names of MLIR's dialects whose ops these lowerings build."""
    chosen, used = list(lowerings), _in_use()
    for backend in registry.loaded():
        if used.get(backend.name) in chosen:
            yield from backend.upstream


def owners(passes: Container[str]) -> Iterator[Lowering]:
    """Yields the lowerings in use that have one of these passes."""
    for lowering in _in_use().values():
        if any(name in passes for name in lowering.passes):
            yield lowering


def searched() -> Iterator[Lowering]:
    """Yields the lowerings of the backends in use, then the other built-in ones: a search that ends
    early loads no other."""
    yield from list(_loaded.values())
    for backend in registry.loaded():
        if backend.name not in _loaded:
            yield of_backend(backend.name)


def guests() -> Iterator[Lowering]:
    """Yields the lowerings of the backends in use that are not built in."""
    for backend in registry.loaded():
        if backend.name not in registry.BUILT_IN:
            yield of_backend(backend.name)


def loaded() -> tuple[Lowering, ...]:
    """Returns the lowerings of the built-in backends, then those of the others in use."""
    return tuple(of_backend(backend.name) for backend in registry.loaded())


def candidates(target: Target | None) -> tuple[Lowering, ...]:
    """Returns the target's lowering; all of them if a module names no target."""
    return loaded() if target is None else (of_target(target),)


# The lowering of the running pass; formulas use it for the target's own instructions.
active: ContextVar[Lowering] = ContextVar("active lowering")


def current() -> Lowering:
    """Returns the lowering of the running pass, or the default backend's if none is set."""
    return active.get(None) or of_backend(registry.default().name)
