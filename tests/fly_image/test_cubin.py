"""Cubins, read beside what ptxas says of the same code."""

from __future__ import annotations

import random
import re
from pathlib import Path

import fly_image
import pytest
from cuda_modules import from_llvm, manifest, module, ptxas
from fly_common.errors import InputError
from fly_image.elf import Elf
from fly_image.image import POINTER, VALUE
from fly_image.nvidia import nv_info, resources
from fly_image.nvidia.cubin import Cubin, read
from fly_image.nvidia.sections import with_sections
from fly_link import link
from fly_link.options import Options

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a")
# Many values that live at once: few registers make ptxas spill.
MANY = (
    ".visible .entry many(.param .u64 .ptr .global p) {\n .reg .f32 %f<65>; .reg .b64 %rd<2>;\n"
    " ld.param.u64 %rd1, [p];\n"
    + "".join(f" ld.volatile.global.f32 %f{n}, [%rd1+{4 * n}];\n" for n in range(64))
    + "".join(f" st.volatile.global.f32 [%rd1+{4 * n}], %f{63 - n};\n" for n in range(64))
    + " ret;\n}\n"
)


@pytest.mark.parametrize("target", TARGETS)
def test_a_cubin_of_ours(target: str):
    image = fly_image.read(link([module(target=target, manifest=manifest(target))]))
    assert isinstance(image, Cubin)
    assert (image.target, image.variant) == (target, target)
    assert image.program is not None
    assert [launch.kernel for launch in image.program.launches] == ["scale"]
    assert set(image.kernels) == {"scale", "nothing"}
    kernel = image.kernel("scale")
    assert [(a.offset, a.size, a.kind) for a in kernel.arguments] == [
        (0, 8, POINTER),
        (8, 4, VALUE),
        (12, 1, VALUE),
        (16, 16, VALUE),
    ]
    assert (kernel.shared_bytes, kernel.argument_bytes) == (1024, 32)
    assert (kernel.max_threads, kernel.required_block) == (256, None)
    nothing = image.kernel("nothing")
    assert (nothing.max_threads, nothing.required_block) == (256, (32, 4, 2))
    assert (nothing.shared_bytes, nothing.argument_bytes, nothing.arguments) == (0, 0, ())


@pytest.mark.parametrize("target", TARGETS)
def test_a_cubin_of_ptxas_itself(tmp_path: Path, target: str):
    """Without our sections: parameters are values without types, spills are not known."""
    made, said = ptxas(tmp_path, module(target=target), target)
    image, ours = read(made), read(link([module(target=target)]))
    assert (image.target, image.program, image.sections) == (target, None, {})
    for name, kernel in image.kernels.items():
        same = ours.kernels[name]
        assert [(a.offset, a.size) for a in kernel.arguments] == [
            (a.offset, a.size) for a in same.arguments
        ]
        assert {a.kind for a in kernel.arguments} <= {VALUE}
        for field in ("argument_bytes", "shared_bytes", "max_threads", "required_block"):
            assert getattr(kernel, field) == getattr(same, field)
        told = same.resources
        assert (kernel.resources.registers, kernel.resources.stack) == (told.registers, told.stack)
        assert kernel.resources.spills == "spills unknown"
    assert image.same_code(ours)
    assert set(re.findall(r"Used (\d+) registers", said)) == {
        str(kernel.resources.registers) for kernel in image.kernels.values()
    }


def test_registers_spills_and_shared_memory(tmp_path: Path):
    few = Options(flags=("-maxrregcount=24",))
    kernel = read(link([module(MANY)], options=few)).kernel("many")
    _, said = ptxas(tmp_path, module(MANY), "sm_90a", "-maxrregcount=24")
    stores, loads = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said).groups()  # type: ignore[union-attr]
    assert int(stores) > 0
    assert kernel.details() == [
        ("block", "at most 1024 threads in warps of 32"),
        ("registers", f"24 a thread, {stores} bytes of spill stores, {loads} of spill loads"),
        ("memory", f"0 bytes shared, {kernel.resources.stack} of stack a thread, 8 of arguments"),
    ]
    plain = read(link([module(MANY)])).kernel("many").resources
    assert plain.spills == "0 spilled"
    assert plain.registers is not None
    assert plain.registers > 64
    shared = read(link([module()])).kernel("scale")
    assert shared.resources.shared == shared.shared_bytes == 1024


def test_what_ptxas_says_without_its_times():
    said = (
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Function properties for k\n"
        "    400 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 5 registers, used 2 barriers, 60000 bytes smem\n"
        "ptxas info    : Compile time = 2.324 ms\n"
        "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
    )
    assert "Compile time" not in resources.without_times(said)
    found = resources.read(said)
    assert found["k"] == resources.Resources(5, 400, 8, 12, 2, 60000)
    assert found["other"] == resources.Resources(shared=0)


LINES = """
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @first(ptr addrspace(1) %p) !dbg !3 {
  store float 1.0, ptr addrspace(1) %p, !dbg !6
  ret void, !dbg !6
}
define ptx_kernel void @second(ptr addrspace(1) %p) !dbg !9 {
  store float 2.0, ptr addrspace(1) %p, !dbg !10
  ret void, !dbg !10
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!8}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, isOptimized: true, emissionKind: 3)
!1 = !DIFile(filename: "kernel.py", directory: "/src")
!3 = distinct !DISubprogram(name: "first", scope: !1, file: !1, line: 3, type: !4, unit: !0, spFlags: 8)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 40, column: 3, scope: !3)
!8 = !{i32 2, !"Debug Info Version", i32 3}
!9 = distinct !DISubprogram(name: "second", scope: !1, file: !1, line: 50, type: !4, unit: !0, spFlags: 8)
!10 = !DILocation(line: 51, column: 3, scope: !9)
"""  # noqa: E501


def test_lines():
    """All functions begin at address 0 of their sections, and are told apart all the same."""
    source = from_llvm(LINES.replace("emissionKind: 3", "emissionKind: LineTablesOnly"))
    image = read(link([source]))
    for kernel, own in (("first", {40, 3}), ("second", {51, 50})):
        size = image.code[kernel].size
        places = [image.line(image.address(kernel, offset)) for offset in range(0, size, 16)]
        lines = {place.line for place in places if place is not None}
        assert lines
        assert lines <= own
        assert {place.file for place in places if place is not None} == {"/src/kernel.py"}
    assert read(link([module()])).line(0) is None


def test_the_same_code():
    image = read(link([module()]))
    assert image.same_code(read(link([module(manifest=manifest())])))
    assert not image.same_code(read(link([module().replace(b"mul.rn", b"mul.rz")])))
    assert not image.same_code(read(link([module(target="sm_80")])))
    assert not image.same_code(fly_image.read(module()))
    assert image.document()["kernels"][0]["resources"]["spill_stores"] == 0


def test_other_cuda_objects_are_refused(tmp_path: Path):
    relocatable, _ = ptxas(tmp_path, module(), "sm_90a", "-c")
    with pytest.raises(
        InputError, match="is a relocatable CUDA object, not a cubin\n  nvlink links"
    ):
        fly_image.read(relocatable)
    empty, _ = ptxas(tmp_path, module(".visible .func f() { ret; }\n"))
    with pytest.raises(InputError, match="the cubin contains no kernel"):
        fly_image.read(empty)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({".fly.entries": b".entry scale(.param .u32 a)"}, "does not match its code"),
        ({".fly.manifest": b"{}"}, "the host program is damaged"),
        ({".fly.manifest": manifest("sm_80").encode()}, "is for sm_80, but the code is for sm_90a"),
    ],
)
def test_sections_that_do_not_match(tmp_path: Path, sections: dict[str, bytes], message: str):
    plain, _ = ptxas(tmp_path, module())
    with pytest.raises(InputError, match=message):
        read(with_sections(plain, sections))


@pytest.mark.parametrize("data", [b"\4\x2f\x08", b"\4\x2f\x08\0\1\2\3"])
def test_attributes_that_are_truncated(data: bytes):
    with pytest.raises(InputError, match=r"a section \.nv\.info is truncated"):
        nv_info.read(data)


def test_attributes_with_too_little_data():
    (one,) = nv_info.read(b"\4\x17\x04\0\0\0\0\0")
    with pytest.raises(InputError, match=r"the attribute 0x17 of \.nv\.info has 4 bytes"):
        nv_info.parameters([one])


def test_appending_to_what_is_no_object():
    assert with_sections(b"", {}) == b""
    for data in (b"\x7fELF", bytes(64), b"\x7fELF" + bytes(54) + b"\x40\0\xff\xff\xff\xff"):
        with pytest.raises(InputError):
            with_sections(data, {".a": b""})


def test_appended_sections_are_found_by_their_names(tmp_path: Path):
    plain, _ = ptxas(tmp_path, module())
    added = {".fly.a": b"x", ".fly.empty": b"", ".fly.long": bytes(range(256)) * 40}
    twice = with_sections(with_sections(plain, added), {".fly.later": b"y"})
    found = {one.name: one.data for one in Elf.parse(twice).sections}
    assert added.items() <= found.items()
    assert found[".fly.later"] == b"y"
    assert read(twice).sections == {**added, ".fly.later": b"y"}


def test_damaged_cubins_are_errors():
    """Each is read, or refused by an InputError."""
    generator = random.Random(1)
    whole = link([module(manifest=manifest())])
    refused = 0
    for _ in range(600):
        data = bytearray(whole)
        if generator.random() < 0.2:
            del data[generator.randrange(len(data)) :]
        for _ in range(generator.randrange(1, 6)):
            if data:
                data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            image = fly_image.read(bytes(data), "k.cubin")
            for kernel in image.kernels.values():
                kernel.details(), kernel.argument_rows()
            image.document(), image.line(0)
        except InputError:
            refused += 1
    assert 50 < refused < 600
