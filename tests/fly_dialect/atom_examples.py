"""Examples of the ops of atoms for `test_verifier`: valid ones, and invalid ones with their
messages.

Operands are named; `ARGUMENTS` has their types.
"""

MFMA = "!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>"
SCALED = (
    "!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0, opselB = 0>"
)
COPY = "!fly.copy_atom<!fly.universal_copy<64>, 16>"
BUFFER_COPY = "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>"
BUFFER_PTR = "!fly.ptr<f32, #fly_rocdl.buffer_desc>"
TILED_COPY = f"!fly.tiled_copy<{COPY}, !fly.layout<(4,4):(4,1)>, !fly.tile<[16|1]>>"
TILED_MMA = f"!fly.tiled_mma<!fly.mma_atom<{MFMA}>, !fly.layout<(1,4,1):(0,1,0)>>"

MAP = "!fly_nvvm.tensor_map<f16, S<3,3,3> o 0 o (32,64):(64,1)>"

ARGUMENTS = {
    "map": MAP,
    "rows": "!fly.memref<f16, global, (?,?):(?{i64 div=8},1)>",
    "at_tile": "!fly.ptr<f16, shared, align<1024>>",
    "mbarrier": "!fly.ptr<i64, shared>",
    "row": "i32",
    "sums": "vector<64xf32>",
    "copy": COPY,
    "buffer_copy": BUFFER_COPY,
    "mma": f"!fly.mma_atom<{MFMA}>",
    "scaled": f"!fly.mma_atom<{SCALED}>",
    "tiled_copy": TILED_COPY,
    "tiled_mma": TILED_MMA,
    "bytes": "vector<4xi8>",
    "half": "vector<4xf16>",
    "single": "vector<4xf32>",
    "rmem_half": "!fly.memref<f16, register, 4:1>",
    "rmem_single": "!fly.memref<f32, register, 4:1>",
    "gmem_half": "!fly.memref<f16, global, 4:1>",
    "predicate": "!fly.memref<i1, register, 1:1>",
    "buffer": BUFFER_PTR,
    "short": "i16",
    "tile": "!fly.tile<[16|1]>",
    "layout_tv": "!fly.layout<(4,4):(4,1)>",
    "mnk": "!fly.layout<(1,4,1):(0,1,0)>",
    "swizzle": "!fly.swizzle<S<2,2,3>>",
    "a_tile": "!fly.memref<f16, shared, (32,16):(16,1), align<16>>",
    "composed": "!fly.memref<f16, shared, S<2,2,3> o 4 o (32,16):(16,1), align<16>>",
    "coords": "!fly.coord_tensor<(0,0), (16,64):(1E0,1E1)>",
    "places": "!fly.coord_tensor<3, (2,4):(?{i64},1)>",
    "fragment": "!fly.memref<f16, register, (4,2,1):(1,4,0)>",
    "extents": "!fly.int_tuple<(16,64)>",
    "thread": "!fly.int_tuple<?>",
}

ONE_OF_EACH = "{operandSegmentSizes = array<i32: 1, 1, 1, 0>}"
RIGHT = [
    ("make_copy_atom", "", "{valBits = 16 : i32}", COPY),
    ("make_mma_atom", "", "", f"!fly.mma_atom<{MFMA}>"),
    ("atom.set_value", "buffer_copy, i", '{field = "soffset"}', BUFFER_COPY),
    ("atom.set_value", "scaled, bytes", '{field = "scale_b"}', f"!fly.mma_atom<{SCALED}>"),
    ("get_copy_atom", "tiled_copy", "", COPY),
    ("get_mma_atom", "tiled_mma", "", f"!fly.mma_atom<{MFMA}>"),
    ("copy_atom_call", "copy, gmem_half, rmem_half", "", ""),
    ("copy_atom_call", "copy, gmem_half, rmem_half, predicate", "", ""),
    ("mma_atom_call", "mma, rmem_single, rmem_half, rmem_half, rmem_single", "", ""),
    ("copy_atom_call_ssa", "copy, gmem_half, half", ONE_OF_EACH, "vector<4xf16>"),
    ("mma_atom_call_ssa", "mma, half, half, single", "", "vector<4xf32>"),
    ("copy", "tiled_copy, gmem_half, rmem_half, predicate", "", ""),
    (
        "gemm",
        "tiled_mma, rmem_single, rmem_half, rmem_half, rmem_single",
        "{traversalOrder = #fly<gemm_traversal_order kmn_serpentine>}",
        "",
    ),
    ("gemm", "mma, rmem_single, rmem_half, rmem_half, rmem_single, l", "", ""),
    ("fly_rocdl.get_buffer_rsrc", "buffer", "", "!llvm.ptr<8>"),
    ("fly_nvvm.make_tensor_map", "rows", "", MAP),
    ("fly_nvvm.tma_load", "map, at_tile, mbarrier, row, row", "", ""),
    ("fly_nvvm.tma_multicast", "map, at_tile, mbarrier, row, row, row", "", ""),
    ("fly_nvvm.tma_store", "map, at_tile, row, row", "", ""),
    ("fly_nvvm.wgmma_wait", "sums", "{pending = 1 : i32}", "vector<64xf32>"),
    ("make_ptr", "p, short, j, i", "", BUFFER_PTR),
    ("make_ptr", "p, short, j", "", BUFFER_PTR),
    ("extract_aligned_pointer_as_index", "gmem_half", "", "!llvm.ptr<1>"),
    ("print", "i, x", '{format = "{} {}"}', ""),
    ("assume", "i, j", "", "i32"),
    ("make_tiled_copy", "copy, layout_tv, tile", "", TILED_COPY),
    ("make_tiled_mma", "mma, mnk", "", TILED_MMA),
    # 16 rows of the tile, 4 for each of 4 threads, and 2 × 16 tiles.
    (
        "tiled_copy.partition_src",
        "tiled_copy, a_tile, thread",
        "",
        "!fly.memref<f16, shared, ((4,1),2,16):((16,0),256,1), align<16>>",
    ),
    (
        "tiled_copy.partition_dst",
        "tiled_copy, composed, c",  # thread 12, 4 rows of 16 for each thread before it
        "",
        "!fly.memref<f16, shared, S<2,2,3> o 772 o ((4,1),2,16):((16,0),256,1), align<16>>",
    ),
    (
        "tiled_copy.retile",
        "tiled_copy, fragment",
        "",
        "!fly.memref<f16, register, ((4,1),2,1):((1,0),4,0)>",
    ),
    # Four rows of one column, and a wave for each 16 columns.
    (
        "tiled_mma.partition",
        "tiled_mma, coords, thread",
        "{operand_id = #fly<mma_operand c>}",
        "!fly.coord_tensor<(?{div=4},?), ((4,1),1,1):((1E0,0),0,0)>",
    ),
    (
        "tiled_mma.partition_shape",
        "tiled_mma, extents",
        "{operand_id = #fly<mma_operand c>}",
        "!fly.int_tuple<((4,1),1,1)>",
    ),
    (
        "mma.make_fragment",
        "tiled_mma, a_tile",
        "{operand_id = #fly<mma_operand a>, stages = 3 : i32}",
        "!fly.memref<f16, register, (4,2,1,3):(1,4,0,8)>",
    ),
    ("memref.load_vec", "rmem_half", "", "vector<4xf16>"),
    ("memref.load_vec", "places", "", "vector<8xi64>"),
    ("memref.store_vec", "half, rmem_half", "", ""),
    ("apply_swizzle", "q, swizzle", "", "!fly.ptr<f32, shared, align<16>, S<2,2,3>>"),
    # 4 elements of 2 bytes further: S<2,2,3> maps 4 to itself.
    ("decomposition", "composed", "", "!fly.memref<f16, shared, (32,16):(16,1), align<8>>"),
]
# Ops whose results may have any type.
ANY_RESULT = {"assume", "copy_atom_call_ssa", "mma_atom_call_ssa"}

WRONG = [
    (
        "fly_nvvm.make_tensor_map",
        "gmem_half",
        "",
        MAP,
        "the tensor has 1 modes, and its tile 2",
    ),
    (
        "fly_nvvm.tma_load",
        "map, at_tile, mbarrier, row",
        "",
        "",
        "the coordinate has 2 integers of 32 bits, not ['i32']",
    ),
    (
        "fly_nvvm.tma_multicast",
        "map, at_tile, mbarrier, l, row, row",
        "",
        "",
        "operand #3 must be a mask of 32 bits",
    ),
    ("fly_nvvm.tma_store", "map, buffer, row, row", "", "", "operand #1 must be a ptr to f16"),
    (
        "fly_nvvm.wgmma_wait",
        "sums",
        "{pending = 9 : i32}",
        "vector<64xf32>",
        "pending must be from 0 to 7",
    ),
    ("make_copy_atom", "", "{valBits = 32 : i32}", COPY, "valBits is 32, but !fly.copy_atom<"),
    ("make_mma_atom", "", "", COPY, "the result must be an mma_atom, but is !fly.copy_atom<"),
    (
        "atom.set_value",
        "buffer_copy, i",
        '{field = "scale_a"}',
        BUFFER_COPY,
        "!fly_rocdl.cdna3.buffer_copy<32> has the state soffset; there is no field `scale_a`",
    ),
    (
        "atom.set_value",
        "copy, i",
        '{field = "soffset"}',
        COPY,
        "!fly.universal_copy<64> has no state; there is no field `soffset`",
    ),
    (
        "atom.set_value",
        "buffer_copy, j",
        '{field = "soffset"}',
        BUFFER_COPY,
        "`soffset` of !fly_rocdl.cdna3.buffer_copy<32> is an i32, not i64",
    ),
    ("get_copy_atom", "copy", "", COPY, "operand #0 must be a tiled_copy, but is"),
    ("copy_atom_call", "mma, r, r", "", "", "operand #0 must be a copy_atom, but is"),
    ("copy_atom_call", "copy, r, half", "", "", "operand #2 must be a memref, but is vector<4xf"),
    (
        "copy_atom_call_ssa",
        "copy, r, half",
        "",
        "vector<4xf16>",
        "operandSegmentSizes must specify which of atom, source, destination and predicate the 3",
    ),
    ("copy", "mma, r, r", "", "", "operand #0 must be a copy_atom or tiled_copy, but is"),
    ("mma_atom_call_ssa", "copy, half, half, single", "", "vector<4xf32>", "must be an mma_atom"),
    (
        "gemm",
        "mma, rmem_single, rmem_half, rmem_half, rmem_single",
        "{traversalOrder = #fly<gemm_traversal_order knk>}",
        "",
        "`knk` is not a traversal order; expected one of kmn, knm,",
    ),
    (
        "gemm",
        "mma, rmem_single, rmem_half, rmem_half, rmem_single, l",
        "{traversalOrder = #fly<gemm_traversal_order kmn>}",
        "",
        "takes a traversalOrder or a traversalLayout, not both",
    ),
    (
        "fly_rocdl.get_buffer_rsrc",
        "p",
        "",
        "!llvm.ptr<8>",
        "expected a buffer_desc address space pointer, got one of global",
    ),
    ("extract_aligned_pointer_as_index", "i", "", "!llvm.ptr", "operand #0 must be a memref, but"),
    ("print", "i", "", "", "needs a format, a string"),
    ("make_ptr", "p, i", "", BUFFER_PTR, "needs a stride, bytes and flags (i16, i64, i32), but ha"),
    (
        "make_ptr",
        "buffer, short, j, i",
        "",
        BUFFER_PTR,
        "is made from a !fly.ptr<f32, global>, not",
    ),
    (
        "make_ptr",
        "p",
        "",
        "!fly.ptr<f32, shared>",
        "is allocated by make_ptr, which takes no operands",
    ),
    ("make_tiled_copy", "mma, layout_tv, tile", "", TILED_COPY, "operand #0 must be a copy_atom"),
    (
        "make_tiled_mma",
        "mma, d",
        "",
        TILED_MMA,
        "the layout of a tiled mma must be static, not (?{i64}",
    ),
    ("tiled_copy.retile", "tiled_copy, composed", "", "!fly.tile<4>", "its layout is composed"),
    (
        "tiled_mma.partition",
        "tiled_mma, coords, thread",
        "",
        "i32",
        "operand_id must be #fly<mma_operand a>, b, c or d, but is None",
    ),
    (
        "mma.make_fragment",
        "tiled_mma, a_tile",
        "{operand_id = #fly<mma_operand a>, stages = 0 : i32}",
        "i32",
        "stages must be positive, got 0",
    ),
    ("memref.load_vec", "m", "", "vector<4xf32>", "its shape is (?{i64},?{i64})"),
    ("memref.store_vec", "single, rmem_half", "", "", "vector<4xf32> can't be stored to !fly.memr"),
    ("apply_swizzle", "q, tile", "", "!fly.ptr<f32, shared>", "operand #1 must be a swizzle, but"),
    ("decomposition", "p", "", "f32", "operand #0 must be a memref or coord_tensor, but is"),
]
