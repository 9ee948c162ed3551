"""The registry of passes: ours, which are imported when they run, and MLIR's.

MLIR registers its passes in its library and does not list them for Python. `upstream` names those
that matter to this compiler, for `--list-passes` and for suggestions; any other registered name
works too.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.resolve import resolve
from fly_plugin import active

from fly_opt.lowering import interface
from fly_opt.lowering.interface import EMIT_HOST, EMIT_HOST_LLVM, EMIT_LLVM, Lowering
from fly_opt.passes.base import Pass, make
from fly_opt.pipeline.text import Step
from fly_opt.reporting.suggestions import did_you_mean

# What ends a pipeline, and prints something else than MLIR.
EMISSIONS = {
    EMIT_LLVM: "Prints the module as LLVM IR that LLVM 22 and newer read; always the last.",
    EMIT_HOST: "Prints the host program as text for people; always the last.",
    EMIT_HOST_LLVM: "Prints the LLVM IR of a launcher of the host program; always the last.",
}

# name → the module that defines it. Backends add their own.
_OWN: dict[str, str] = {
    "fly-rewrite-func-signature": "fly_opt.passes.signature.rewrite_signature",
    "fly-canonicalize": "fly_opt.passes.layout.canonicalize",
    "fly-layout-lowering": "fly_opt.passes.layout.layout_lowering",
    "fly-int-swizzle-simplify": "fly_opt.passes.layout.swizzle_simplify",
    "fly-convert-atom-call-to-ssa-form": "fly_opt.passes.registers.atom_ssa",
    "fly-promote-regmem-to-vectorssa": "fly_opt.passes.registers.promote_regmem",
    "fly-set-target": "fly_opt.passes.target.set_target",
    "fly-extract-host-program": "fly_opt.passes.host.extract_host_program",
    "fly-set-plugins": "fly_opt.passes.plugins.set_plugins",
    "fly-external-filter": "fly_opt.passes.plugins.external_filter",
    "fly-verify-slot": "fly_opt.passes.plugins.verify_slot",
    "fly-fold-wave-size": "fly_opt.passes.target.wave_size",
    "fly-check-shuffles": "fly_opt.passes.target.wave_size",
    "fly-lower-prints": "fly_opt.passes.instrumentation.printing",
    "fly-select-math": "fly_opt.passes.math.select_math",
}

_UPSTREAM: dict[str, str] = {
    "affine-expand-index-ops": "lowers affine operations on indices to arith",
    "arith-expand": "expands ceildiv, floordiv, min and max into simpler arith operations",
    "arith-int-range-narrowing": "narrows integer operations to the bits their values need",
    "arith-unsigned-when-equivalent": "converts signed operations to equivalent unsigned ones",
    "canonicalize": "folds and simplifies with the rules of each operation",
    "composite-fixed-point-pass": "repeats a pipeline until nothing changes",
    "control-flow-sink": "moves operations into the only region that uses them",
    "convert-arith-to-llvm": "lowers arith to the LLVM dialect",
    "convert-cf-to-llvm": "lowers branches to the LLVM dialect",
    "convert-complex-to-llvm": "lowers complex numbers to the LLVM dialect",
    "convert-func-to-llvm": "lowers functions to the LLVM dialect",
    "convert-gpu-to-nvvm": "lowers a gpu.module to nvvm",
    "convert-index-to-llvm": "lowers index operations to the LLVM dialect",
    "convert-math-to-llvm": "lowers math to LLVM's intrinsics",
    "convert-scf-to-cf": "lowers structured control flow to branches",
    "convert-ub-to-llvm": "lowers poison to the LLVM dialect",
    "convert-vector-to-llvm": "lowers vectors to the LLVM dialect",
    "convert-vector-to-scf": "lowers vector transfers to loops",
    "cse": "removes common subexpressions",
    "ensure-debug-info-scope-on-llvm-func": "adds debug scopes to functions, to preserve locations",
    "expand-strided-metadata": "makes the arithmetic of memref views explicit",
    "finalize-memref-to-llvm": "lowers memrefs to the LLVM dialect",
    "gpu-async-region": "makes gpu operations asynchronous",
    "gpu-decompose-memrefs": "flattens memrefs inside kernels",
    "gpu-eliminate-barriers": "removes unnecessary barriers",
    "gpu-kernel-outlining": "moves gpu.launch bodies into kernels",
    "gpu-launch-sink-index-computations": "sinks index computations into gpu.launch",
    "gpu-map-parallel-loops": "maps parallel loops to blocks and threads",
    "gpu-module-to-binary": "compiles gpu.modules into gpu.binary",
    "gpu-to-llvm": "lowers gpu launches on the host to runtime calls",
    "inline": "inlines calls",
    "int-range-optimizations": "folds operations using integer ranges",
    "llvm-legalize-for-export": "rewrites operations that LLVM IR can't express",
    "loop-invariant-code-motion": "hoists invariant operations out of loops",
    "loop-invariant-subset-hoisting": "hoists invariant subsets out of loops",
    "lower-affine": "lowers affine to scf and arith",
    "math-expand-ops": "expands math operations into simpler ones",
    "math-extend-to-supported-types": "computes math on small floats in a wider type",
    "math-uplift-to-fma": "fuses multiply and add into fma",
    "mem2reg": "promotes memory slots to values",
    "print-ir": "prints the module to standard error",
    "print-op-stats": "counts operations on standard error",
    "reconcile-unrealized-casts": "removes conversion casts that cancel",
    "remove-dead-values": "removes values and functions that nothing uses",
    "scf-for-loop-canonicalization": "simplifies scf.for bounds",
    "scf-for-to-while": "turns scf.for into scf.while",
    "sccp": "propagates constants along control flow",
    "snapshot-op-locations": "takes new locations from the printed module",
    "sroa": "splits aggregates in memory slots",
    "strip-debuginfo": "removes locations",
    "symbol-dce": "removes symbols that nothing uses",
    "symbol-privatize": "makes symbols private",
    "topological-sort": "orders operations by dominance",
}


# How the names of this project's passes begin. MLIR's begin otherwise, so that no built-in backend
# has to be searched for them.
_PREFIXES = ("fly-", "convert-fly-")


def home(name: str) -> str | None:
    """Returns the module that defines the pass `name`; None if it is not of this project, of a
    backend in use, of an active plugin, or itself a reference `module:Class`."""
    if name in _OWN:
        return _OWN[name]
    if (reference := _reference(name)) is not None:
        return reference.partition(":")[0]
    lowerings = interface.searched() if name.startswith(_PREFIXES) else interface.guests()
    tables = (lowering.passes for lowering in lowerings)
    return next((table[name] for table in tables if name in table), None)


def _reference(name: str) -> str | None:
    """Returns the reference `module:Class` that the name of a pass is, or stands for in an active
    plugin."""
    if ":" in name:
        return name
    return next((where for one in active() if (where := one.plugin.passes.get(name))), None)


def owner(name: str) -> str | None:
    """Returns who has the pass `name`, besides plugins, for messages; None if nobody has."""
    if name in _UPSTREAM:
        return "MLIR"
    found = name in EMISSIONS or name in passes()
    return "fly-opt-py" if found else None


def passes() -> dict[str, str]:
    """Maps each pass of this project, of the backends in use and of the active plugins to the
    module that defines it."""
    tables = (one.plugin.passes for one in active())
    guests = {name: where.partition(":")[0] for table in tables for name, where in table.items()}
    return {**_passes(interface.loaded()), **guests}


@cache
def _passes(lowerings: tuple[Lowering, ...]) -> dict[str, str]:
    tables = (_OWN, *(lowering.passes for lowering in lowerings))
    return {name: module for table in tables for name, module in table.items()}


def upstream() -> dict[str, str]:
    """Maps each MLIR pass that matters to this compiler to its description."""
    return _upstream(interface.loaded())


@cache
def _upstream(lowerings: tuple[Lowering, ...]) -> dict[str, str]:
    tables = (_UPSTREAM, *(lowering.upstream_passes for lowering in lowerings))
    return dict(sorted((name, text) for table in tables for name, text in table.items()))


def is_ours(name: str) -> bool:
    return home(name) is not None


def load(step: Step) -> Pass:
    """Returns the pass of a pipeline's step, with its options. UsageError if they are invalid."""
    if (reference := _reference(step.name)) is not None:
        return make(_class(reference, step.name), step.options)
    where = home(step.name)
    assert where is not None, f"{step.name} is not a pass of this project"
    # The module of a backend from outside may be reloaded while it is developed.
    is_own = where.partition(".")[0] == __name__.partition(".")[0]
    return (_own if is_own else _load)(where, step.name, step.options)


def _load(where: str, name: str, options: str) -> Pass:
    module = importlib.import_module(where)
    for value in vars(module).values():
        if isinstance(value, type) and getattr(value, "name", None) == name:
            return make(value, options)
    raise LookupError(f"{module.__name__} defines no pass {name}")


_own = lru_cache(maxsize=256)(_load)


def _class(reference: str, name: str) -> type[Pass]:
    """Returns the pass class that a reference names. UsageError if there is none."""
    try:
        found = resolve(reference)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"pass {name}: {reference} can't be loaded: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Pass)):
        raise UsageError(
            f"pass {name}: {reference} is not a pass",
            hint="a pass is a frozen dataclass that inherits fly_opt.passes.base.Pass",
        )
    if ":" not in name and found.name != name:
        raise UsageError(f"pass {name}: {reference} calls itself {quoted(found.name)}")
    return found


def unknown(name: str) -> UsageError:
    """The error for a name that is neither one of ours nor registered with MLIR."""
    hint = did_you_mean(name, [*passes(), *EMISSIONS, *upstream()], "")
    if not hint.startswith("did you mean"):
        hint = "fly-opt-py --list-passes prints the names"
    return UsageError(f"unknown pass {quoted(name)}", hint=hint)


def descriptions() -> dict[str, str]:
    """Maps each pass of this project to the first line of its docstring, sorted by name.

    The sources are parsed, not imported, so that listing names does not import MLIR.
    """
    import ast

    found = dict(EMISSIONS)
    for name, module in passes().items():
        tree = ast.parse(_source(module))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and _names(node, name):
                found[name] = (ast.get_docstring(node) or "").partition("\n")[0]
    return dict(sorted(found.items()))


def _source(module: str) -> str:
    """Returns the text of a module without importing it or its packages."""
    package, *inner = module.split(".")
    spec = importlib.util.find_spec(package)
    if not inner and spec and spec.origin:
        return Path(spec.origin).read_text(encoding="utf-8")
    folder = next(iter(spec.submodule_search_locations or ())) if spec else ""
    path = Path(folder, *inner)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8")


def _names(node: Any, name: str) -> bool:
    """Returns whether a statement of a class body is `name = "<name>"`."""
    import ast

    return any(
        isinstance(line, ast.Assign | ast.AnnAssign)
        and isinstance(line.value, ast.Constant)
        and line.value.value == name
        for line in node.body
    )
