"""The ops of the fly dialect: a table of names, operand counts and typing rules."""

from __future__ import annotations

from fly_common.resolve import resolve

from fly_dialect.extension import extension_of, extensions, plugins_dialects
from fly_dialect.inference import atoms, host, layouts, memory, tiled, vectors
from fly_dialect.inference import rules as infer
from fly_dialect.inference.computation import COMPUTATIONS, Computation
from fly_dialect.op_info import OpInfo

_TABLE = [
    OpInfo("static", 0, 1, check=infer.check_static, form="static"),
    OpInfo("make_int_tuple", None, 1, check=infer.check_make_int_tuple),
    OpInfo("make_shape", None, 1, check=infer.check_make_int_tuple),
    OpInfo("make_stride", None, 1, check=infer.check_make_int_tuple),
    OpInfo("make_coord", None, 1, check=infer.check_make_int_tuple),
    OpInfo("make_view", 2, 1, infer.infer_make_view),
    OpInfo("get_iter", 1, 1, infer.infer_get_iter),
    OpInfo("get_scalar", 1, 1, infer.infer_get_scalar),
    OpInfo("get_leaves", 1, None, infer.infer_get_leaves),
    OpInfo("make_fragment_like", 1, 1, layouts.infer_make_fragment_like, form="fragment_like"),
    OpInfo("slice", 2, 1, layouts.infer_slice),
    OpInfo("elem_less", 2, 1, layouts.infer_elem_less),
    OpInfo("equal", 2, 1, layouts.infer_equal),
    OpInfo("decomposition", 1, 1, layouts.infer_decomposition),
    OpInfo("apply_swizzle", 2, 1, memory.infer_apply_swizzle),
    OpInfo("add_offset", 2, 1, memory.infer_add_offset),
    OpInfo("recast_iter", 1, 1, check=memory.check_recast_iter),
    OpInfo("ptrtoint", 1, 1, memory.infer_ptrtoint),
    OpInfo("inttoptr", 1, 1, check=memory.check_inttoptr),
    OpInfo("to_llvm_ptr", 1, 1, memory.infer_to_llvm_ptr),
    OpInfo("make_ptr", None, 1, check=memory.check_make_ptr, pure=False),
    OpInfo("get_dyn_shared", 0, 1, memory.infer_get_dyn_shared, form="nullary"),
    OpInfo("ptr.load", 1, 1, check=memory.check_ptr_load, pure=False),
    OpInfo("ptr.store", 2, 0, check=memory.check_ptr_store, pure=False),
    OpInfo("memref.load", 2, 1, memory.infer_memref_load, pure=False),
    OpInfo("memref.store", 3, 0, check=memory.check_memref_store, pure=False),
    OpInfo("memref.alloca", 1, 1, check=memory.check_memref_alloca, pure=False),
]


def _computation(name: str, computation: Computation) -> OpInfo:
    count = len(computation.operands)
    counts = (
        count if not computation.optional else tuple(range(count - computation.optional, count + 1))
    )
    form = "padded" if name in ("append", "prepend") else "functional"
    return OpInfo(name, counts, 1, layouts.infer_computation(computation), form=form)


_COMPUTATIONS = [_computation(*item) for item in COMPUTATIONS.items()]

_ATOMS = [
    OpInfo("make_copy_atom", 0, 1, check=atoms.check_make_copy_atom, form="static"),
    OpInfo("make_mma_atom", 0, 1, check=atoms.check_make_mma_atom, form="static"),
    OpInfo("atom.set_value", 2, 1, atoms.infer_atom_set_value, form="set_value"),
    OpInfo("get_copy_atom", 1, 1, atoms.infer_get_copy_atom),
    OpInfo("get_mma_atom", 1, 1, atoms.infer_get_mma_atom),
    OpInfo("copy_atom_call", (3, 4), 0, check=atoms.check_copy_atom_call, pure=False),
    OpInfo("mma_atom_call", 5, 0, check=atoms.check_mma_atom_call, pure=False),
    OpInfo(
        "copy_atom_call_ssa",
        (2, 3, 4),
        None,
        check=atoms.check_copy_atom_call_ssa,
        pure=False,
    ),
    OpInfo("mma_atom_call_ssa", (4, 5), None, check=atoms.check_mma_atom_call_ssa, pure=False),
    OpInfo("copy", (3, 4), 0, check=atoms.check_copy, pure=False),
    OpInfo("gemm", (5, 6), 0, check=atoms.check_gemm, pure=False, form="gemm"),
    OpInfo("make_tiled_copy", 3, 1, tiled.infer_make_tiled_copy),
    OpInfo("make_tiled_mma", (2, 3), 1, tiled.infer_make_tiled_mma),
    OpInfo("tiled_copy.partition_src", 3, 1, tiled.infer_partition_src),
    OpInfo("tiled_copy.partition_dst", 3, 1, tiled.infer_partition_dst),
    OpInfo("tiled_copy.retile", 2, 1, tiled.infer_retile),
    OpInfo("tiled_mma.partition", 3, 1, tiled.infer_partition, form="partition"),
    OpInfo("tiled_mma.partition_shape", 2, 1, tiled.infer_partition_shape),
    OpInfo("mma.make_fragment", 2, 1, tiled.infer_make_fragment, form="make_fragment"),
    OpInfo("memref.load_vec", 1, 1, vectors.infer_memref_load_vec, pure=False),
    OpInfo("memref.store_vec", 2, 0, check=vectors.check_memref_store_vec, pure=False),
    OpInfo("extract_aligned_pointer_as_index", 1, 1, check=memory.check_extract_ptr, form="bare"),
    OpInfo("print", None, 0, check=memory.check_print, pure=False),
    OpInfo("assume", 2, 1),
]
# What a host function does beside arithmetic and launches.
_HOST = [
    OpInfo("empty", None, 1, check=host.check_empty, pure=False),
    OpInfo("call", None, None, check=host.check_call, pure=False),
    OpInfo("check", None, 0, check=host.check_check, pure=False),
]
# The ops of fly, by name.
OPS = {info.name: info for info in (*_TABLE, *_COMPUTATIONS, *_ATOMS, *_HOST)}


def find(full_name: str) -> OpInfo | None:
    """The op with this full name, such as `fly.get`, or None. An op of fly may lack the prefix."""
    if (info := OPS.get(full_name.removeprefix("fly."))) is not None:
        return info
    extension = extension_of(full_name)
    ops = () if extension is None else extension.ops
    return next((op for op in ops if op.full_name == full_name), None)


def every() -> dict[str, OpInfo]:
    """All ops: fly's by name, those of the backends' and the plugins' dialects by full name."""
    guests = map(resolve, plugins_dialects().values())
    return OPS | {op.full_name: op for one in (*extensions(), *guests) for op in one.ops}


def op(name: str) -> OpInfo:
    """Like `find`, for a name that is in the table."""
    if (info := OPS.get(name) or find(name)) is None:
        raise KeyError(name)
    return info
