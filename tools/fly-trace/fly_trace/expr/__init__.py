"""The language, which kernels import as `fx`. Only tracing imports MLIR, not this module.

The names are FlyDSL's. A name is imported from its module on first use. `fx.gpu`, `fx.math` and
similar names are modules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fly_backend.registry import built_in, loaded
from fly_plugin import active

from fly_trace.expr import types
from fly_trace.expr.types import *  # noqa: F403
from fly_trace.signatures.annotations import Constexpr, Stream, Tensor, aligned
from fly_trace.values import operators as operators
from fly_trace.values.dtypes import DType

if TYPE_CHECKING:
    from fly_trace.atoms.atom import *  # noqa: F403
    from fly_trace.atoms.movement import *  # noqa: F403
    from fly_trace.atoms.tiled import *  # noqa: F403
    from fly_trace.control.assertions import *  # noqa: F403
    from fly_trace.control.compile_time import *  # noqa: F403
    from fly_trace.core.target import get_arch as get_arch
    from fly_trace.expr import ffi as ffi
    from fly_trace.expr import gpu as gpu
    from fly_trace.expr import math as math
    from fly_trace.expr.gpu import *  # noqa: F403
    from fly_trace.expr.math import *  # noqa: F403
    from fly_trace.gpu import cluster as cluster
    from fly_trace.gpu.assumptions import *  # noqa: F403
    from fly_trace.gpu.inline_assembly import *  # noqa: F403
    from fly_trace.host.allocation import *  # noqa: F403
    from fly_trace.host.library_calls import *  # noqa: F403
    from fly_trace.layouts.coord_tensors import *  # noqa: F403
    from fly_trace.layouts.int_tuples import *  # noqa: F403
    from fly_trace.layouts.layout_algebra import *  # noqa: F403
    from fly_trace.layouts.layouts import *  # noqa: F403
    from fly_trace.layouts.tiles import *  # noqa: F403
    from fly_trace.layouts.tuple_math import *  # noqa: F403
    from fly_trace.memory.pointers import *  # noqa: F403
    from fly_trace.memory.shared_memory import *  # noqa: F403
    from fly_trace.memory.structs import *  # noqa: F403
    from fly_trace.memory.view_construction import *  # noqa: F403
    from fly_trace.pipelines.ring import *  # noqa: F403
    from fly_trace.pipelines.roles import *  # noqa: F403
    from fly_trace.primitives import block as block
    from fly_trace.primitives import random as random
    from fly_trace.primitives import warp as warp
    from fly_trace.signatures.extents import *  # noqa: F403
    from fly_trace.values.functions.fast_math import *  # noqa: F403
    from fly_trace.values.rounding import *  # noqa: F403
    from fly_trace.values.vector.vectors import *  # noqa: F403

# Module → the names it exports to fx, as in its `__all__`.
NAMES = {
    "fly_trace.control.assertions": "assert_finite assert_in_bounds assert_uniform",
    "fly_trace.core.target": "get_arch",
    "fly_trace.gpu.assumptions": "assume",
    "fly_trace.gpu.inline_assembly": "inline_asm",
    "fly_trace.atoms.atom": """
        AtomicOp CopyAtom MmaAtom SyncScope UniversalAtomic UniversalAtomicAdd UniversalAtomicAnd
        UniversalAtomicDec UniversalAtomicInc UniversalAtomicMax UniversalAtomicMin
        UniversalAtomicOr UniversalCopy UniversalCopy128b UniversalCopy16b UniversalCopy32b
        UniversalCopy64b UniversalCopy8b UniversalFMA atom_set_value make_copy_atom make_mma_atom
        """,
    "fly_trace.layouts.coord_tensors": "CoordTensor",
    "fly_trace.expr.gpu": """
        atomic_add atomic_and atomic_cas atomic_dec atomic_inc atomic_load atomic_max
        atomic_min atomic_or atomic_store atomic_sub atomic_xchg atomic_xor barrier
        block_dim block_idx dynamic_shared grid_dim known_block_size lane_id memory_fence
        num_warp_threads shared_array shuffle_down shuffle_idx shuffle_up shuffle_xor
        thread_idx
        """,
    "fly_trace.expr.math": """
        abs absf absi acos acosh asin asinh atan atan2 atanh bitcast cbrt ceil ceildiv
        clampf copysign cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1 floor fma fpowi
        ipowi isfinite isinf isnan isnormal log log10 log1p log2 max maximum maximumf maxnumf min
        minimum minimumf minnumf pow powf round roundeven rsqrt sin sincos sinh sqrt tan tanh trunc
        where
        """,
    "fly_trace.signatures.extents": "sym_int32 sym_int64",
    "fly_trace.values.functions.fast_math": "FastMathFlags fastmath",
    "fly_trace.layouts.int_tuples": """
        Basis E IntTuple depth get_leaves get_scalar has_none make_coord make_int_tuple make_shape
        make_stride rank
        """,
    "fly_trace.layouts.layout_algebra": """
        blocked_product coalesce complement composition coprofile coshape cosize crd2idx flat_divide
        flat_product get_1d_coord get_flat_coord idx2crd left_inverse local_partition local_tile
        logical_divide logical_product make_layout_tv raked_product recast_layout right_inverse
        size tile_to_shape tiled_divide tiled_product zipped_divide zipped_product
        """,
    "fly_trace.layouts.layouts": """
        ComposedLayout CoordSwizzle CoordSwizzleType Layout Swizzle SwizzleType composed_get_inner
        composed_get_offset composed_get_outer get_layout get_shape get_stride make_composed_layout
        make_identity_layout make_layout make_layout_like make_ordered_layout static
        """,
    "fly_trace.memory.view_construction": """
        get_iter make_fragment_layout_like make_fragment_like make_rmem_tensor make_view
        memref_alloca memref_load memref_load_vec memref_store memref_store_vec
        """,
    "fly_trace.host.allocation": "Allocation empty empty_like",
    "fly_trace.host.library_calls": "call",
    "fly_trace.atoms.movement": """
        GemmTraversalOrder copy copy_atom_call gather gemm mma_atom_call scatter
        """,
    "fly_trace.memory.pointers": """
        AddressSpace Pointer add_offset apply_swizzle get_dyn_shared inttoptr ptr_load ptr_store
        ptrtoint recast_iter
        """,
    "fly_trace.memory.shared_memory": "Arena SharedAllocator Storage",
    "fly_trace.control.compile_time": "const_expr draw range_constexpr",
    "fly_trace.control.messages": "printf",
    "fly_trace.memory.structs": "Align Array Struct Union struct union",
    "fly_trace.atoms.tiled": """
        MmaOperand ThrCopy ThrMma TiledCopy TiledMma make_tiled_copy make_tiled_copy_A
        make_tiled_copy_B make_tiled_copy_C make_tiled_copy_tv make_tiled_mma mma_make_fragment
        tiled_copy_partition_dst tiled_copy_partition_src tiled_copy_retile tiled_mma_partition
        tiled_mma_partition_shape
        """,
    "fly_trace.layouts.tiles": "Tile make_tile",
    "fly_trace.pipelines.ring": "pipeline pipeline_threads tile_source",
    "fly_trace.pipelines.roles": "warp_group",
    "fly_trace.layouts.tuple_math": """
        append ceil_div dice elem_less equal get get_ group int_tuple_add int_tuple_div
        int_tuple_mod int_tuple_mul int_tuple_product int_tuple_product_each int_tuple_product_like
        int_tuple_sub prepend select shape_div slice take
        """,
    "fly_trace.values.rounding": "RoundingMode",
    "fly_trace.values.vector.vectors": """
        ReductionOp Vector full full_like ones_like zeros_like
        """,
}
_HOMES = {name: module for module, names in NAMES.items() for name in names.split()}
# `fx.NAME` → module.
_MODULES = {
    "cluster": "fly_trace.gpu.cluster",
    "gpu": "fly_trace.expr.gpu",
    "ffi": "fly_trace.expr.ffi",
    "math": "fly_trace.expr.math",
    "block": "fly_trace.primitives.block",
    "random": "fly_trace.primitives.random",
    "warp": "fly_trace.primitives.warp",
}
# Namespaces of the built-in backends: `fx.NAME` → module.
_NAMESPACES = {name: home for one in built_in() for name, home in one.namespaces.items()}

__all__ = [
    "Constexpr",
    "Stream",
    "Tensor",
    "aligned",
    *types.__all__,
    *_MODULES,
    *_NAMESPACES,
    *_HOMES,
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _NAMESPACES:
        from fly_trace.core.target import check_namespace

        check_namespace(name)
        return importlib.import_module(_NAMESPACES[name])
    home = _HOMES.get(name)
    if home is None and (found := _vector_type(name)) is not None:
        globals()[name] = found
        return found
    if home is None:
        for backend in loaded():
            if name in backend.namespaces:
                return importlib.import_module(backend.namespaces[name])
        for plugin in active():
            if (where := plugin.plugin.namespaces.get(name)) is not None:
                return importlib.import_module(where)
        import difflib

        near = difflib.get_close_matches(name, __all__, n=1)
        raise AttributeError(f"fx has no {name!r}{f'; did you mean {near[0]}?' if near else ''}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def _vector_type(name: str) -> Any:
    """`Float32x4` is the type of vectors of 4 f32."""
    title, _, lanes = name.rpartition("x")
    dtype = globals().get(title)
    if not isinstance(dtype, DType) or not lanes.isdecimal() or int(lanes) < 1:
        return None
    from fly_trace.values.vector.vectors import VectorType

    return VectorType(dtype, int(lanes))


def __dir__() -> list[str]:
    return sorted(__all__)
