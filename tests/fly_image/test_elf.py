"""The ELF reader, beside what LLVM's readelf says of the same files."""

import json
import random
import subprocess

import pytest
from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_image.elf import Elf
from fly_target.amd.processors import PROCESSORS

SOURCE = """
  .text
  .globl f
  .type f,@function
  .p2align 8
f:
  s_endpgm
  .size f, .-f
  .data
  .globl pointer
  .p2align 3
  .type pointer,@object
pointer:
  .quad f
  .quad local+8
  .size pointer, .-pointer
local:
  .quad 0
  .quad 0
  .bss
  .globl zeros
  .type zeros,@object
zeros:
  .skip 4096
  .size zeros, 4096
  .section .fly.note,"",@progbits
  .ascii "hello"
"""


def llvm(program: str, *arguments: str, data: bytes = b"") -> bytes:
    path = toolchain.find_program(program)
    return subprocess.run([path, *arguments], input=data, capture_output=True, check=True).stdout


def assemble(source: str, cpu: str, *options: str) -> bytes:
    arguments = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}", "-filetype=obj", *options]
    return llvm("llvm-mc", *arguments, data=source.encode())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elf")
    (folder / "made.o").write_bytes(assemble(SOURCE, "gfx90a"))
    llvm("ld.lld", "-shared", str(folder / "made.o"), "-o", str(folder / "made"))
    return folder / "made"


@pytest.fixture(scope="module")
def data(path) -> bytes:
    return path.read_bytes()


@pytest.fixture(scope="module")
def told(path):
    """What llvm-readelf says."""
    arguments = ["--elf-output-style=JSON", "-hSl", "--symbols", str(path)]
    return json.loads(llvm("llvm-readelf", *arguments))[0]


def test_sections(data, told):
    wanted = [item["Section"] for item in told["Sections"]]
    found = Elf.parse(data).sections
    assert [s.name for s in found] == [item["Name"]["Name"] for item in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.type, ours.flags) == (theirs["Type"]["Value"], theirs["Flags"]["Value"])
        assert (ours.address, ours.offset) == (theirs["Address"], theirs["Offset"])
        assert (ours.size, ours.link) == (theirs["Size"], theirs["Link"])


def test_section_content(data):
    elf = Elf.parse(data)
    assert elf.section(".fly.note").data == b"hello"
    assert elf.section(".bss").data == b""
    assert elf.section(".nothing") is None


def test_segments(data, told):
    wanted = [item["ProgramHeader"] for item in told["ProgramHeaders"]]
    loads = [item for item in wanted if item["Type"]["Value"] == 1]
    found = Elf.parse(data).segments
    assert len(found) == len(loads) >= 3
    for ours, theirs in zip(found, loads, strict=True):
        assert (ours.address, ours.size) == (theirs["VirtualAddress"], theirs["MemSize"])
        assert (len(ours.data), ours.flags) == (theirs["FileSize"], theirs["Flags"]["Value"])
        assert ours.data == data[theirs["Offset"] :][: theirs["FileSize"]]


def test_symbols(data, told):
    wanted = {item["Symbol"]["Name"]["Name"]: item["Symbol"] for item in told["Symbols"]}
    found = Elf.parse(data).symbols
    assert {"f", "pointer", "zeros", "local"} <= found.keys() <= wanted.keys()
    for name, symbol in found.items():
        assert (symbol.value, symbol.size) == (wanted[name]["Value"], wanted[name]["Size"])
        assert symbol.type == wanted[name]["Type"]["Value"]


def test_relocations_hold_what_their_symbols_are_worth(data):
    elf = Elf.parse(data)
    at = elf.symbols["pointer"].value
    found = {item.address: item.value for item in elf.relocations()}
    assert found == {at: elf.symbols["f"].value, at + 8: elf.symbols["local"].value + 8}


def test_read_takes_loaded_bytes_only(data):
    elf = Elf.parse(data)
    code = elf.symbols["f"].value
    assert elf.read(code, 4) == bytes.fromhex("000081bf")
    for address, size in ((code, 1 << 20), (1 << 40, 4), (elf.symbols["zeros"].value, 4)):
        with pytest.raises(InputError, match="no segment contains"):
            elf.read(address, size)


@pytest.mark.parametrize(("number", "name"), PROCESSORS.items())
def test_every_processor_is_the_one_llvm_means(number, name):
    made = Elf.parse(assemble("s_nop 0", name, "--amdhsa-code-object-version=6"))
    assert made.flags & 0xFF == number
    assert made.processor == name


def test_other_machines_are_named():
    made = llvm("llvm-mc", "-triple=x86_64-linux", "-filetype=obj", data=b"nop")
    with pytest.raises(InputError, match="machine 62, not for an AMD GPU"):
        _ = Elf.parse(made).processor


def test_an_unknown_processor_is_an_error(data):
    damaged = bytearray(data)
    damaged[48] = 0xEE
    with pytest.raises(InputError, match="unknown AMD GPU processor 0xee"):
        _ = Elf.parse(bytes(damaged)).processor


def everything(elf: Elf) -> None:
    _ = elf.processor, elf.symbols, elf.relocations()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:3], "not an ELF file"),
        (lambda d: d[:63], "the ELF header is truncated: the file has 63 bytes"),
        (lambda d: d[:4] + b"\x01" + d[5:], "not a 64-bit little-endian"),
        (lambda d: d[:54] + b"\x07" + d[55:], "segment headers have 7 bytes, not 56"),
        (lambda d: d[:58] + b"\x07" + d[59:], "section headers have 7 bytes, not 64"),
        (lambda d: d[:62] + b"\xff\x00" + d[64:], "the section names are in section 255 of"),
        (lambda d: d[:-200], "the section table is at bytes"),
        (lambda d: d[:39] + b"\xff" * 8 + d[47:], "the file has"),
    ],
)
def test_damage_is_named(data, change, message):
    with pytest.raises(InputError) as caught:
        everything(Elf.parse(change(data)))
    assert message in caught.value.message


def test_every_truncation_is_an_input_error(data):
    """The section table is at the end, so that no shorter file is whole."""
    for length in range(len(data)):
        with pytest.raises(InputError):
            everything(Elf.parse(data[:length]))


def test_random_damage_is_an_input_error_or_none(data):
    generator = random.Random(1)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 16)):
            damaged[generator.randrange(len(data))] = generator.choice((0, 1, 127, 128, 255))
        try:
            everything(Elf.parse(bytes(damaged)))
        except InputError:
            refused += 1
    assert refused > 300
