"""Code objects: what the metadata and the descriptor say, and every way they can be wrong."""

import random
import subprocess

import msgpack
import pytest
from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_host import program, text
from fly_host.section import SECTION
from fly_image.amd.code_object import MOST_LDS, CodeObject
from fly_image.elf import Elf

SOURCE = """
  .text
  .globl first
  .p2align 8
  .type first,@function
first:
  s_endpgm
  .globl second
  .p2align 8
second:
  s_nop 0
  s_endpgm
  .rodata
  .p2align 6
  .amdhsa_kernel first
    .amdhsa_group_segment_fixed_size 1024
    .amdhsa_private_segment_fixed_size 48
    .amdhsa_kernarg_size 24
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_user_sgpr_dispatch_ptr 1
    .amdhsa_system_sgpr_workgroup_id_y 1
    .amdhsa_accum_offset 8
    .amdhsa_next_free_vgpr 24
    .amdhsa_next_free_sgpr 12
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel second
    .amdhsa_accum_offset 4
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 4
  .end_amdhsa_kernel
  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: first
    .symbol: first.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 48
    .wavefront_size: 64
    .sgpr_count: 18
    .vgpr_count: 24
    .agpr_count: 16
    .sgpr_spill_count: 2
    .vgpr_spill_count: 3
    .max_flat_workgroup_size: 256
    .reqd_workgroup_size: [16, 8, 1]
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: s, .offset: 8, .size: 12, .value_kind: by_value, .type_name: struct S}
      - {.offset: 20, .size: 4, .value_kind: hidden_block_count_x}
  - .name: second
    .symbol: second.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 10
    .vgpr_count: 4
    .max_flat_workgroup_size: 1024
...
  .end_amdgpu_metadata
"""
PROGRAM = program.Program(
    "entry", "gfx942", (), (("const", 1),), (program.Launch("first", *[(0,) * 3] * 2, 0, ()),)
)


def llvm(program: str, *arguments: str, data: bytes = b"") -> bytes:
    path = toolchain.find_program(program)
    return subprocess.run([path, *arguments], input=data, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code")

    def built(manifest: str | None = None, cpu: str = "gfx942", features: str = "") -> bytes:
        source = SOURCE
        if manifest is not None:
            escaped = manifest.replace('"', '\\"')
            source += f'\n.section {SECTION},"",@progbits\n.ascii "{escaped}"\n'
        arguments = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}", "-filetype=obj"]
        arguments += [f"-mattr={features}"] if features else []
        (folder / "k.o").write_bytes(llvm("llvm-mc", *arguments, data=source.encode()))
        llvm("ld.lld", "-shared", str(folder / "k.o"), "-o", str(folder / "k"))
        return (folder / "k").read_bytes()

    return built


@pytest.fixture(scope="module")
def data(build) -> bytes:
    return build(manifest=text.write(PROGRAM))


def test_a_kernel_is_its_descriptor_and_its_metadata(data):
    code = CodeObject.parse(data)
    assert code.target == "gfx942"
    assert code.features == ()
    assert list(code.kernels) == ["first", "second"]
    first = code.kernels["first"]
    assert first.entry == code.symbols["first"].value
    assert first.descriptor == code.symbols["first.kd"].value
    assert first.kernel_code_entry_byte_offset == first.entry - first.descriptor
    assert first.group_segment_fixed_size == 1024
    assert first.private_segment_fixed_size == 48
    assert first.kernarg_size == 24
    # enable_sgpr_dispatch_ptr is bit 1 of the properties, enable_sgpr_kernarg_segment_ptr bit 3.
    assert first.kernel_code_properties == 0b1010
    assert first.compute_pgm_rsrc1 & 0x3F == 24 // 8 - 1  # granulated VGPRs, in eights
    assert first.compute_pgm_rsrc2 >> 1 & 31 == 4  # user SGPRs
    assert first.compute_pgm_rsrc2 >> 7 & 7 == 0b011  # workgroup ids x and y
    assert first.compute_pgm_rsrc3 & 63 == 8 // 4 - 1  # accum_offset, in fours
    assert (first.sgpr_count, first.vgpr_count, first.agpr_count) == (18, 24, 16)
    assert (first.sgpr_spill_count, first.vgpr_spill_count) == (2, 3)
    assert first.max_flat_workgroup_size == 256
    assert first.required_workgroup_size == (16, 8, 1)
    assert first.wavefront_size == 64
    assert code.kernels["second"].required_workgroup_size is None


def test_arguments(data):
    out, s, hidden = CodeObject.parse(data).kernels["first"].args
    assert (out.name, out.offset, out.size, out.value_kind) == ("out", 0, 8, "global_buffer")
    assert (s.name, s.offset, s.size, s.type_name) == ("s", 8, 12, "struct S")
    assert [out.hidden, s.hidden, hidden.hidden] == [False, False, True]
    assert CodeObject.parse(data).kernels["first"].arguments == (out, s)


def test_the_program_is_read(data, build):
    assert CodeObject.parse(data).program == PROGRAM
    assert CodeObject.parse(build()).program is None


def test_segments_hold_the_code(data):
    code = CodeObject.parse(data)
    (segment,) = code.executable()
    entry = code.kernels["second"].entry - segment.address
    assert segment.data[entry : entry + 8] == bytes.fromhex("000080bf000081bf")


def test_the_target_id_says_its_features(build):
    code = CodeObject.parse(build(cpu="gfx90a", features="+sramecc,-xnack"))
    assert (code.target, code.features) == ("gfx90a", ("xnack-", "sramecc+"))


def test_one_kernel_needs_no_name(data):
    code = CodeObject.parse(data)
    assert code.kernel("second").name == "second"
    with pytest.raises(InputError) as caught:
        code.kernel(None)
    assert caught.value.render("t") == (
        "t: error: several kernels in the code object\n  its kernels: first, second"
    )
    with pytest.raises(InputError, match="no kernel 'third' in the code object"):
        code.kernel("third")


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        CodeObject.parse(data, "k.hsaco")
    assert str(caught.value.place) == "k.hsaco"
    return caught.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the input is empty"),
        (b"define void @f() {", "the input is LLVM IR, not a linked code object"),
        (b"\x7fELF", "the ELF header is truncated: the file has 4 bytes"),
    ],
)
def test_another_kind_of_file_is_named(content, message):
    assert refusal(content) == message


def test_a_program_for_the_host_is_named():
    made = llvm("llvm-mc", "-triple=x86_64-linux", "-filetype=obj", data=b"nop")
    assert refusal(made) == "the input is an ELF file for another machine, not a linked code object"


def test_an_object_is_not_linked():
    arguments = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj"]
    made = llvm("llvm-mc", *arguments, data=SOURCE.encode())
    assert refusal(made) == "the input is an AMD GPU object file, not a linked code object"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("{", "the host program is damaged: "),
        ("[]", "the host program is damaged: "),
        ('{"version":99}', "the host program has version 99, but this tool reads versions 2 and 3"),
        (text.write(PROGRAM) * 2, "the host program is damaged: "),
        (
            text.write(PROGRAM).replace("gfx942", "gfx950"),
            "the host program is for gfx950, but the code is for gfx942",
        ),
    ],
)
def test_programs_that_are_none(build, manifest, message):
    assert refusal(build(manifest=manifest)).startswith(message)


# -- damaged metadata ----------------------------------------------------------------------------


def with_metadata(data: bytes, change) -> bytes:
    """The code object with other metadata; room that is left over is zeros."""
    note = Elf.parse(data).section(".note")
    size = int.from_bytes(note.data[4:8], "little")
    start = note.offset + 12 + 8
    made = msgpack.unpackb(data[start : start + size])
    packed = msgpack.packb(change(made))
    assert len(packed) <= size
    head = data[: note.offset + 4] + len(packed).to_bytes(4, "little")
    body = data[note.offset + 8 : start] + packed.ljust(size, b"\0")
    return head + body + data[start + size :]


def change(key: str, value):
    """Sets a key of the first kernel; the second goes, to make room."""

    def changed(metadata):
        kernel = metadata["amdhsa.kernels"][0]
        if value is None:
            kernel.pop(key)
        else:
            kernel[key] = value
        metadata["amdhsa.kernels"] = [kernel]
        return metadata

    return changed


ARGUMENT = {".offset": 0, ".size": 8, ".value_kind": "global_buffer"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda m: [], "the metadata is damaged: the metadata is not a map"),
        (lambda m: {}, "the code object contains no kernel"),
        (lambda m: {"amdhsa.kernels": 5}, "the metadata is damaged: amdhsa.kernels is not a list"),
        (lambda m: {"amdhsa.kernels": [5]}, "the metadata is damaged: a kernel is not a map"),
        (change(".name", None), "the metadata is damaged: .name is missing"),
        (change(".name", 7), "the metadata is damaged: .name is 7"),
        (change(".symbol", "g.kd"), "kernel 'first' has no descriptor: symbol 'g.kd' is missing"),
        (change(".symbol", "first"), "kernel 'first' begins at 0x"),
        (change(".vgpr_count", -1), "the metadata is damaged: .vgpr_count is -1"),
        (change(".vgpr_count", True), "the metadata is damaged: .vgpr_count is True"),
        (change(".max_flat_workgroup_size", 0), "the metadata is damaged: .max_flat_workgroup"),
        (change(".max_flat_workgroup_size", 1025), "the metadata is damaged: .max_flat_workgroup"),
        (change(".wavefront_size", 33), "the metadata is damaged: .wavefront_size is 33"),
        (change(".reqd_workgroup_size", [1, 2]), "the metadata is damaged: .reqd_workgroup_size"),
        (change(".reqd_workgroup_size", [1, 2, "3"]), "the metadata is damaged: .reqd_workgroup"),
        (change(".args", {}), "the metadata is damaged: .args is not a list"),
        (change(".args", [ARGUMENT | {".size": -8}]), "the metadata is damaged: .size is -8"),
        (change(".args", [ARGUMENT | {".size": 25}]), "argument 'global_buffer' of kernel 'first'"),
        (change(".args", [{".offset": 0}]), "the metadata is damaged: .size is missing"),
        (
            lambda m: m | {"amdhsa.kernels": [m["amdhsa.kernels"][1]] * 2},
            "the metadata describes kernel 'second' twice",
        ),
    ],
)
def test_damaged_metadata_is_named(data, changed, message):
    assert refusal(with_metadata(data, changed)).startswith(message)


def test_metadata_that_is_no_msgpack(data):
    note = Elf.parse(data).section(".note")
    at = note.offset + 20
    assert refusal(data[:at] + b"\xc1" + data[at + 1 :]).startswith("the metadata is damaged: ")
    # A list of lists of lists …: msgpack stops at its own depth.
    deep = data[:at] + b"\x91" * 400 + data[at + 400 :]
    assert refusal(deep).startswith("the metadata is damaged: ")


def test_without_its_note_a_file_is_refused(data):
    at = Elf.parse(data).section(".note").offset
    assert refusal(data[: at + 8] + b"\x07" + data[at + 9 :]) == (
        "the code object has no AMD GPU metadata (a note of type 32)"
    )
    long = data[: at + 4] + b"\xff\xff\xff\x7f" + data[at + 8 :]
    assert refusal(long) == "a note extends past the end of its section"


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, 1 << 30, f"kernel 'first' requests 1073741824 bytes of LDS; the maximum is {MOST_LDS}"),
        (
            4,
            1 << 30,
            "kernel 'first' requests 1073741824 bytes of scratch per lane; the maximum is 131072",
        ),
        (8, 1 << 30, "kernel 'first' requests 1073741824 bytes of arguments; the maximum is 65536"),
        (16, 0, "kernel 'first' begins at 0x"),
        (16, 2, "kernel 'first' begins at 0x"),
    ],
)
def test_impossible_descriptors_are_refused(data, offset, value, message):
    code = CodeObject.parse(data)
    address = code.kernels["first"].descriptor
    segment = next(s for s in code.segments if s.holds(address, 64))
    at = data.index(segment.data) + address - segment.address + offset
    damaged = data[:at] + value.to_bytes(4, "little") + data[at + 4 :]
    assert refusal(damaged).startswith(message)


def test_endless_segments_are_refused(data):
    at = 64 + 2 * 56 + 40  # p_memsz of the third header
    assert refusal(data[:at] + (1 << 40).to_bytes(8, "little") + data[at + 8 :]) != ""


def test_every_sixteenth_and_random_damage(data):
    for sixteenth in range(16):
        refusal(data[: len(data) * sixteenth // 16])
    generator = random.Random(2)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 8)):
            damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        try:
            CodeObject.parse(bytes(damaged))
        except InputError:
            refused += 1
    assert 300 < refused < 1500
