"""Telling what came out of a pipe, by content."""

import pytest
from fly_common import artifact
from fly_common.errors import InputError
from fly_common.programs import toolchain


def elf(machine: int, kind: int) -> bytes:
    return b"\x7fELF" + bytes(12) + kind.to_bytes(2, "little") + machine.to_bytes(2, "little")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", artifact.EMPTY),
        (b" \n\t\n", artifact.EMPTY),
        (b"; ModuleID = 'x'\nsource_filename = \"x\"\n", artifact.EMPTY_MODULE),
        (b"; ModuleID = 'x'\nsource_filename = \"x\"\n@g = global i32 0", artifact.LLVM_IR),
        (b'target triple = "amdgcn"\n', artifact.LLVM_IR),
        (b'module asm "nop"\n', artifact.LLVM_IR),
        (b"@g = global i32 0\n", artifact.LLVM_IR),
        (b"%t = type { i32 }\n", artifact.LLVM_IR),
        (b"!0 = !{}\n", artifact.LLVM_IR),
        (b"!llvm.ident = !{!0}\n", artifact.LLVM_IR),
        (b"$c = comdat any\n", artifact.LLVM_IR),
        (b"\n\n; comment\ndefine void @f() {\n", artifact.LLVM_IR),
        (b"BC\xc0\xde123", artifact.BITCODE),
        (b"\xde\xc0\x17\x0b123", artifact.BITCODE),
        (b"module {\n}\n", artifact.MLIR),
        (b"module attributes {gpu.container_module} {\n", artifact.MLIR),
        (b"module @name {\n", artifact.MLIR),
        (b'"builtin.module"() ({\n', artifact.MLIR),
        (b"// comment\nfunc.func @f() {\n", artifact.MLIR),
        (b"gpu.module @kernels {\n", artifact.MLIR),
        (b"#map = affine_map<(d0) -> (d0)>\nmodule {\n", artifact.MLIR),
        (b'#loc1 = loc("k.py":1:1)\n', artifact.MLIR),
        (b'!t = !fly.memref<f32, global, 4:1>\n', artifact.MLIR),
        (b"--- |\n  ; ModuleID\n", artifact.MIR),
        (b"---\nname: k\n", artifact.MIR),
        (b"# fly-llc: stopped after x\n--- |\n", artifact.MIR),
        (b'\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n', artifact.ASSEMBLY),
        (b"\t.text\n", artifact.ASSEMBLY),
        (b"import fly as flyc\n", artifact.PYTHON),
        (b"#!/usr/bin/env python3\nfrom fly import expr\n", artifact.PYTHON),
        (b"# A kernel.\n@fly.kernel\ndef f(): pass\n", artifact.PYTHON),
        (b'"""A kernel."""\n', artifact.PYTHON),
        (elf(224, 1), artifact.OBJECT),
        (elf(224, 3), artifact.HSACO),
        (elf(62, 1), artifact.FOREIGN_ELF),
        (b"\x7fELF", artifact.FOREIGN_ELF),
        (b"!<arch>\n", artifact.ARCHIVE),
        (b"\x93NUMPY\x01\x00v\x00{", artifact.BINARY),
        (b"hello world\n", artifact.TEXT),
        ("größer als je\n".encode(), artifact.TEXT),
    ],
)  # fmt: skip
def test_kinds(data, kind):
    assert artifact.identify(data) == kind


def test_every_beginning_is_something():
    for first in range(256):
        for second in range(0, 256, 5):
            assert artifact.identify(bytes([first, second])) is not None


def test_a_refusal_says_what_came_and_who_makes_what_was_wanted():
    with pytest.raises(InputError) as caught:
        artifact.refuse(artifact.OBJECT, artifact.LLVM_IR, "<stdin>")
    assert caught.value.render("fly-llc") == (
        "fly-llc: error: <stdin>: the input is an AMD GPU object file, not LLVM IR\n"
        "  fly-link reads object files; fly-opt-py --target gfx942 produces LLVM IR"
    )
    with pytest.raises(InputError, match="the input is empty"):
        artifact.refuse(artifact.EMPTY, artifact.MLIR, "k.mlir")


@pytest.mark.parametrize(
    "options", [["-S"], ["-S", "-O3"], [], ["-S", "-mtriple=amdgcn-amd-amdhsa"]]
)
def test_what_opt_makes_of_nothing(options):
    """As text it is told here; bitcode by who disassembles it. One for a target was asked for."""
    done = toolchain.run_program("opt", options, b"")
    assert done.returncode == 0
    if "-S" not in options:
        assert artifact.identify(done.stdout) == artifact.BITCODE
        done = toolchain.run_program("llvm-dis", ["-o", "-", "-"], done.stdout)
    empty = not any("mtriple" in option for option in options)
    assert artifact.is_empty_module(done.stdout.decode()) == empty
    expected = artifact.EMPTY_MODULE if empty else artifact.LLVM_IR
    assert artifact.identify(done.stdout) == expected


@pytest.mark.parametrize(
    "text",
    [
        'source_filename = "x"\n@g = global i32 0\n',
        "; ModuleID = 'x'\nsource_filename = \"x\"\ndeclare void @f()\n",
        'source_filename = "x"\n!llvm.ident = !{}\n',
    ],
)
def test_a_short_module_is_not_empty(text):
    assert artifact.identify(text.encode()) == artifact.LLVM_IR


def test_a_line_of_many_comment_signs_takes_no_time():
    """Each `;` may begin a comment; trying all of them took exponential time."""
    text = b'source_filename = "x"\n' + b"; a" * 1000 + b"\ndefine void @f() {\n"
    assert artifact.identify(text) == artifact.LLVM_IR
    assert artifact.identify(text.rpartition(b"define")[0]) == artifact.EMPTY_MODULE
