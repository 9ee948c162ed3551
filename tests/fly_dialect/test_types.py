"""The types' text."""

import pytest
from fly_dialect.atoms import MmaAtomSpec
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.swizzle import Swizzle
from fly_dialect.type_text import parse_type
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    PtrSpec,
    SwizzleSpec,
    TileSpec,
    bits,
)


@pytest.mark.parametrize(
    ("source", "kind", "normal"),
    [
        ("!fly.int_tuple<(4, (2, ?{div=8}))>", IntTupleSpec, "!fly.int_tuple<(4,(2,?{div=8}))>"),
        ("!fly.layout<(4, 8) : (1, 4)>", LayoutSpec, "!fly.layout<(4,8):(1,4)>"),
        ("!fly.ptr<f32,global>", PtrSpec, "!fly.ptr<f32, global>"),
        (
            "!fly.ptr<f16, shared, align<16>, S<3, 3, 3>>",
            PtrSpec,
            "!fly.ptr<f16, shared, align<16>, S<3,3,3>>",
        ),
        ("!fly.ptr<f16, shared, S<3,3,3>>", PtrSpec, "!fly.ptr<f16, shared, S<3,3,3>>"),
        # The element's own alignment, and the swizzle that does nothing, go without saying.
        ("!fly.ptr<f32, shared, align<4>, S<0,0,0>>", PtrSpec, "!fly.ptr<f32, shared>"),
        (
            "!fly.memref<f32, global, (16, ?) : (1, ?)>",
            MemRefSpec,
            "!fly.memref<f32, global, (16,?):(1,?)>",
        ),
        (
            "!fly.memref<vector<4xf16>, register, 4:1, align<32>>",
            MemRefSpec,
            "!fly.memref<vector<4xf16>, register, 4:1, align<32>>",
        ),
        (
            "!fly.memref<f32, #fly_rocdl.buffer_desc, 4:1>",
            MemRefSpec,
            "!fly.memref<f32, #fly_rocdl.buffer_desc, 4:1>",
        ),
        (
            "!fly.coord_tensor<(0,0), (4,8):(1E0,1E1)>",
            CoordTensorSpec,
            "!fly.coord_tensor<(0,0), (4,8):(1E0,1E1)>",
        ),
        (
            "!fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>",
            ComposedLayoutSpec,
            "!fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>",
        ),
        (
            "!fly.memref<f32, global, 128:2 o 5 o [128:3 o 7 o (4,8):(1,4)]>",
            MemRefSpec,
            "!fly.memref<f32, global, 128:2 o 5 o [128:3 o 7 o (4,8):(1,4)]>",
        ),
        (
            "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>",
            MmaAtomSpec,
            "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>",
        ),
        (
            "!fly.composed_layout< CS<3, 0,[1,0],0,[2]> o (0, 0) o (4,8):(1E0,1E1)o(1,2) o 4:1E0>",
            ComposedLayoutSpec,
            "!fly.composed_layout<CS<3,0,[1, 0],0,[2]> o (0,0) o (4,8):(1E0,1E1) o (1,2) o 4:1E0>",
        ),
        (
            "!fly.coord_tensor<(0,0), S<1,2,3> o ? o (4,8):(1E0,1E1)>",
            CoordTensorSpec,
            "!fly.coord_tensor<(0,0), S<1,2,3> o ? o (4,8):(1E0,1E1)>",
        ),
        (
            "!fly.memref<f16, shared, S<3,3,3> o 0 o (8,64):(64,1), align<16>, S<2,3,3>>",
            MemRefSpec,
            "!fly.memref<f16, shared, S<3,3,3> o 0 o (8,64):(64,1), align<16>, S<2,3,3>>",
        ),
        ("!fly.swizzle< S<3, 4 ,3>>", SwizzleSpec, "!fly.swizzle<S<3,4,3>>"),
        (
            "!fly.coord_swizzle<CS<0,0,[],0,[]>>",
            CoordSwizzleSpec,
            "!fly.coord_swizzle<CS<0,0,[],0,[]>>",
        ),
        ("!fly.tile<4>", TileSpec, "!fly.tile<4>"),
        (
            "!fly.tile< [ 4 | [8:1|*] | (2, 2):(1, 2) ] >",
            TileSpec,
            "!fly.tile<[4|[8:1|*]|(2,2):(1,2)]>",
        ),
        ("!fly.tile<[4|8:1|*]>", TileSpec, "!fly.tile<[4|8:1|*]>"),
    ],
)
def test_a_type_reads_and_prints_in_normal_form(source, kind, normal):
    spec = parse_type(source)
    assert isinstance(spec, kind)
    assert str(spec) == normal
    assert parse_type(normal) == spec


def test_types_of_other_dialects_are_their_text():
    assert parse_type("vector<4xf32>") == "vector<4xf32>"
    assert parse_type("!llvm.ptr<1>") == "!llvm.ptr<1>"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("!fly.memref<f32, global>", "expected `,`, found the end"),
        ("!fly.memref<f32, local, 4:1>", "address space local is not one of"),
        ("!fly.memref<f32, global, 4>", "expected `:`, found the end"),
        ("!fly.ptr<f32, global, align<6>>", "multiple of f32's 4 bytes, not 6"),
        ("!fly.ptr<f32, global, align<0>>", "multiple of f32's 4 bytes, not 0"),
        ("!fly.ptr<f32, global, 4>", r"expected align<N> or S<mask,base,shift>, found `4`"),
        ("!fly.ptr<f32>", "expected an element type and an address space, found `f32`"),
        ("!fly.ptr<, global>", "expected an element type"),
        ("!fly.layout<(4,8):(1)>", r"shape \(4,8\) and stride \(1\) are not congruent"),
        ("!fly.int_tuple<>", "expected an integer"),
        ("!fly.composed_layout<4:1>", "expected `o` and an offset, found the end"),
        ("!fly.composed_layout<S<3,3,3>>", "expected `o` and an offset, found the end"),
        ("!fly.composed_layout<S<3,3,3> o 0>", "expected `o`, found the end"),
        ("!fly.swizzle<S<3,3>>", "expected `,`, found `>`"),
        ("!fly.swizzle<S<-3,3,3>>", "expected a number, found `-3,3,3>`"),
        ("!fly.tile<[4|(2,2)]>", r"expected an integer, a layout, `\*` or `\[`, found `\(2,2\)\]`"),
        ("!fly.tile<[4|?]>", r"a mode of a tile must be known at compile time, but \? is not"),
        ("!fly.ptr<!llvm.struct<()>, global>", "has no width in bits"),
    ],
)
def test_a_wrong_type_says_what_is_wrong(source, message):
    with pytest.raises(ValueError, match=message):
        parse_type(source)


def test_specs_are_made_and_read_alone():
    spec = MemRefSpec("bf16", "shared", Layout((32, 32), (33, 1)), 16, Swizzle(3, 3, 3))
    assert str(spec) == "!fly.memref<bf16, shared, (32,32):(33,1), align<16>, S<3,3,3>>"
    assert MemRefSpec.parse("bf16, shared, (32,32):(33,1), align<16>, S<3,3,3>") == spec
    assert MemRefSpec.parse(str(spec)) == spec
    assert spec.pointer == PtrSpec.parse("bf16, shared, align<16>, S<3,3,3>")
    assert (spec.alignment, PtrSpec("f64", "global").alignment) == (16, 8)
    with pytest.raises(ValueError, match="is not a ptr type"):
        PtrSpec.parse("!fly.layout<4:1>")


@pytest.mark.parametrize(
    ("element", "width"),
    [("f32", 32), ("bf16", 16), ("i1", 1), ("f8E4M3FN", 8), ("vector<2x4xf16>", 128), ("i64", 64)],
)
def test_the_width_of_an_element(element, width):
    assert bits(element) == width


@pytest.mark.parametrize(
    "text",
    [
        "!fly.ptr<f16, shared, S<3,60,3>>",
        "!fly.ptr<f16, shared, S<1,0,64>>",
        "!fly.ptr<f16, shared, S<9223372036854775808,0,0>>",
        "!fly.coord_swizzle<CS<3,62,[0],0,[1]>>",
        "!fly.coord_swizzle<CS<3,0,[0],62,[1]>>",
    ],
)
def test_a_swizzle_has_the_bits_of_an_offset(text: str) -> None:
    with pytest.raises(ValueError, match="uses bits above the 64 of an offset"):
        parse_type(text)
    assert str(parse_type("!fly.ptr<f16, shared, S<3,58,3>>")) == "!fly.ptr<f16, shared, S<3,58,3>>"
