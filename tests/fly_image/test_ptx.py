"""Sections in PTX, kernels as PTX declares them, and the image of PTX."""

from __future__ import annotations

import tempfile
from pathlib import Path

import fly_image
import pytest
from cuda_modules import TWO, manifest, module, ptxas
from fly_common.errors import InputError
from fly_image.image import POINTER, VALUE
from fly_image.nvidia import cubin, entries, ptx
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = st.from_regex(r"\.[a-z.]{1,20}", fullmatch=True)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=300) | st.text(max_size=100)), max_size=4))
def test_sections_arrive_as_they_were(added):
    text, expected = module().decode(), {}
    for name, content in added:
        data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
        text = ptx.with_section(text, name, data)
        expected[name] = data
    assert ptx.sections(text) == expected
    assert (
        entries.without_comments(text).split()
        == entries.without_comments(module().decode()).split()
    )


def test_a_section_is_readable_where_it_is_text():
    made = ptx.with_section("", ".a", b"one\ntwo")
    assert made == "//.fly.section .a text\n//.fly| one\n//.fly| two\n//.fly.end\n"
    assert ptx.with_section("x", ".b", b"\0\1") == (
        "x\n//.fly.section .b base64\n//.fly| AAE=\n//.fly.end\n"
    )
    assert ptx.sections("  " + made.replace("\n", "\n\t")) == {".a": b"one\ntwo"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("//.fly.section .a text\n//.fly| one\n", "the section .a of the PTX has no end"),
        ("//.fly.section .a json\n//.fly.end\n", "the section .a of the PTX has the unknown form"),
        (
            "//.fly.section .a base64\n//.fly| A\n//.fly.end\n",
            "the section .a of the PTX is damaged",
        ),
    ],
)
def test_damaged_sections(text: str, message: str):
    with pytest.raises(InputError, match=message):
        ptx.sections(text)


def test_entries():
    scale, nothing = entries.entries(entries.without_comments(module().decode()))
    assert (scale.name, scale.max_threads, scale.required_block) == ("scale", 256, None)
    assert [(p.offset, p.size, p.type_name, p.pointer) for p in scale.parameters] == [
        (0, 8, "u64", "global"),
        (8, 4, "f32", None),
        (12, 1, "u8", None),
        (16, 16, "b8", None),
    ]
    assert scale.argument_bytes == 32
    assert (nothing.parameters, nothing.max_threads, nothing.required_block) == (
        (),
        256,
        (32, 4, 2),
    )


@pytest.mark.parametrize(
    ("text", "most", "required"),
    [
        ("", 1024, None),
        (".maxntid 96", 96, None),
        (".maxntid 2048", 1024, None),
        (".reqntid 7, 3\n.minnctapersm 2", 21, (7, 3, 1)),
        (".maxnreg 64\n.maxntid 8,8,8", 512, None),
    ],
)
def test_limits(text: str, most: int, required):
    (made,) = entries.entries(f".entry k(.param .u32 a)\n{text} {{ ret; }}")
    assert (made.max_threads, made.required_block) == (most, required)


@pytest.mark.parametrize(
    "parameter", [".param .texref t", ".param .align 3 .b8 x[4]", ".param .b8 x[70000]", "x"]
)
def test_parameters_that_are_refused(parameter: str):
    with pytest.raises(InputError, match="the kernel k has"):
        entries.entries(f".entry k({parameter}) {{ ret; }}")


SCALARS = st.sampled_from(["u8", "s16", "b16", "u32", "f32", "b64", "f64"])
POINTERS = st.sampled_from(
    [".u64 .ptr .global .align 16", ".u64 .ptr .align 1", ".u64 .ptr .shared .align 4", ".u64 .ptr"]
)
ARRAYS = st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 40))


@settings(max_examples=25, deadline=None)
@given(st.lists(SCALARS | POINTERS | ARRAYS, min_size=1, max_size=12))
def test_offsets_are_those_of_ptxas(parameters):
    """The attributes that ptxas writes into a cubin have the same places."""
    words = [
        f".param .align {one[0]} .b8 p{n}[{one[1]}]"
        if isinstance(one, tuple)
        else f".param {one if one.startswith('.') else f'.{one}'} p{n}"
        for n, one in enumerate(parameters)
    ]
    source = module(f".visible .entry k({', '.join(words)}) {{ ret; }}\n")
    with tempfile.TemporaryDirectory() as folder:
        made, _ = ptxas(Path(folder), source)
    theirs = cubin.read(made).kernel("k")
    ours = fly_image.read(source).kernel("k")
    assert [(a.offset, a.size) for a in ours.arguments] == [
        (a.offset, a.size) for a in theirs.arguments
    ]
    assert ours.argument_bytes == theirs.argument_bytes


def test_the_image():
    image = fly_image.read(module(manifest=manifest()))
    assert (image.target, image.variant) == ("sm_90a", "PTX for sm_90a")
    assert image.program is not None
    assert [launch.kernel for launch in image.program.launches] == ["scale"]
    kernel = image.kernel("scale")
    assert [a.kind for a in kernel.arguments] == [POINTER, VALUE, VALUE, VALUE]
    assert [a.description for a in kernel.arguments][:2] == [
        "a pointer (global)",
        "4 bytes by value (f32)",
    ]
    assert (kernel.shared_bytes, kernel.argument_bytes, kernel.max_threads) == (1024, 32, 256)
    assert kernel.details() == [
        ("block", "at most 256 threads in warps of 32"),
        ("memory", "1024 bytes shared, 32 of arguments"),
    ]
    assert image.kernel("nothing").details()[0] == ("block", "32×4×2 threads in warps of 32")
    assert image.line(0) is None
    assert image.document()["format"] == "ptx"


def test_the_same_code_with_other_comments():
    image = fly_image.read(module())
    assert image.same_code(fly_image.read(module(manifest=manifest())))
    assert image.same_code(fly_image.read(module(TWO.replace("\t", "  "))))
    assert not image.same_code(fly_image.read(module(TWO.replace("mul.rn", "mul.rz"))))
    assert image.digest != fly_image.read(module(manifest=manifest())).digest


def test_shared_memory_that_is_declared():
    body = ".shared .align 8 .b64 a[3][5];\n.extern .shared .align 16 .b8 d[];\n.shared .b16 c;\n"
    assert fly_image.read(module(body + TWO)).kernel("nothing").shared_bytes == 120 + 2 + 1024


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b".version 8.8\n.address_size 64\n", "the PTX names no .target"),
        (module(".func f() { ret; }"), "the PTX contains no kernel"),
        (module() + b"\xff", "is not UTF-8: this is not PTX"),
        (module(manifest=manifest("sm_80")), "the host program is for sm_80, but the code is for"),
        (
            module(manifest=manifest(kernel="gone")),
            "launches the kernel gone, which the code lacks",
        ),
        (module(manifest=manifest())[:-12], "the section .fly.manifest of the PTX has no end"),
    ],
)
def test_what_is_refused(data: bytes, message: str):
    with pytest.raises(InputError, match=message) as caught:
        fly_image.read(data, "k.ptx")
    assert caught.value.place is not None
    assert caught.value.place.file == "k.ptx"
