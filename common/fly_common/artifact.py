"""The kinds of artifact in the pipe, detected by content.

A stage that gets the wrong kind reports what it got, which stage reads that, and which stage makes
what it needs. File names are not used: most inputs come through a pipe and have none.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError, Place
from fly_common.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


@record
class Artifact:
    """A kind of input: its name in messages, what to do with it, and how to get one."""

    noun: str
    use: str = ""
    source: str = ""


PYTHON = Artifact("Python source", "fly-trace reads Python")
MLIR = Artifact(
    "MLIR",
    "fly-opt-py reads MLIR",
    "fly-trace produces MLIR",
)
LLVM_IR = Artifact(
    "LLVM IR",
    "fly-llc reads LLVM IR",
    "fly-opt-py --target gfx942 produces LLVM IR",
)
BITCODE = Artifact("LLVM bitcode", "fly-llc reads bitcode")
MIR = Artifact("LLVM MIR", "fly-llc reads MIR", "fly-llc --emit mir produces MIR")
ASSEMBLY = Artifact(
    "AMD GPU assembly",
    "llvm-mc -triple=amdgcn-amd-amdhsa -mcpu=gfx942 -filetype=obj assembles it",
)
OBJECT = Artifact(
    "an AMD GPU object file", "fly-link reads object files", "fly-llc produces object files"
)
HSACO = Artifact(
    "a linked code object", "fly-run runs code objects", "fly-link produces HSACO files"
)
PTX = Artifact("PTX", "fly-link reads PTX", "fly-llc produces PTX for NVIDIA's GPUs")
CUBIN = Artifact("a cubin", "fly-run runs cubins", "fly-link produces cubins from PTX")
CUDA_OBJECT = Artifact("a relocatable CUDA object", "nvlink links such objects")
FOREIGN_ELF = Artifact("an ELF file for another machine")
ARCHIVE = Artifact("an archive", "llvm-ar x unpacks it")
EMPTY = Artifact("empty", "the previous stage produced no output; see its own message above")
# opt's output for an empty input, which LLVM accepts as a module.
EMPTY_MODULE = Artifact(
    "an empty LLVM module",
    "the stage before opt produced no output; see its own message above",
)
BINARY = Artifact("unknown binary data")
TEXT = Artifact("unknown text")

# None of these patterns may match the start of LLVM IR, such as `module asm`, `!0 = …`, `#0 = …`.
_TEXT_SIGNS: tuple[tuple[Artifact, str], ...] = (
    (MIR, r"---(?:[ \t]+\||[ \t]*$)|name:\s"),
    (
        MLIR,
        r'module(?!\s+asm\b)|builtin\.module|"builtin\.module"|(?:gpu|func|llvm)\.\w+|\{-#'
        r"|#\w*[A-Za-z]\w*(?:\.\w+)?\s*=|!(?!llvm\.)[A-Za-z_]\w*\s*=\s*[!<(\w]",
    ),
    (PTX, r"\.version[ \t]+\d+\.\d+\s"),
    (ASSEMBLY, r"\.(?:amdgcn_target|amdgpu_|text|section|globl|p2align|file)\b"),
    (PYTHON, r"(?:import|from)\s+\w|@\w+\.(?:kernel|jit)|def\s+\w+\(|\"\"\""),
    (
        LLVM_IR,
        r"source_filename\b|target\b|define\b|declare\b|attributes\b|module\s+asm|uselistorder"
        r"|[@%$^!#][\w.\"$-]*\s*=",
    ),
)
# Words that only LLVM IR begins with, and that cover nearly all of it: a fast path.
_LLVM_IR_WORDS = ("source_filename", "target ", "define ", "declare ", "attributes ")
# Nothing is tried twice (`*+`): a comment can begin in many places of a line.
_NOTHING = re.compile(r'(?:\s++|;[^\n]*+|source_filename = "[^\n]*"(?=\n|\Z))*+')
SHORT = 4096  # bytes; a longer module is not empty
# Blank lines and comments are skipped: `;` in LLVM IR, `//` in MLIR, `#` in MIR and Python.
_BLANK = re.compile(rb"(?:[ \t\r\n]+|;[^\n]*|//[^\n]*|#(?:[ \t!][^\n]*)?(?=\n|\Z))*")


def identify(data: bytes) -> Artifact:
    """Returns the kind of `data`, by its magic number or its first line that is not a comment. The
    rest is not checked."""
    if not data.strip():
        return EMPTY
    if data[:4] in (b"BC\xc0\xde", b"\xde\xc0\x17\x0b"):
        return BITCODE
    if len(data) <= SHORT and b"source_filename" in data and is_empty_module(data.decode("latin1")):
        return EMPTY_MODULE
    if data[:4] == b"\x7fELF":
        return _identify_elf(data)
    if data[:8] in (b"!<arch>\n", b"!<thin>\n"):
        return ARCHIVE
    head = data[_blank_until(data) :][:4096]
    if b"\0" in head or b"\0" in data[:64]:
        return BINARY
    text = head.decode(errors="replace")
    if text.startswith(_LLVM_IR_WORDS):
        return LLVM_IR
    for artifact, sign in _TEXT_SIGNS:
        if re.match(sign, text, re.MULTILINE):
            return artifact
    return TEXT if head.isascii() or "�" not in text[:-4] else BINARY


def is_empty_module(text: str) -> bool:
    """Whether LLVM IR has no definitions, no declarations and no target."""
    return _NOTHING.fullmatch(text) is not None


def _blank_until(data: bytes) -> int:
    match = _BLANK.match(data)
    return match.end() if match else 0


def _identify_elf(data: bytes) -> Artifact:
    """Identifies an ELF file. e_machine 224 is EM_AMDGPU, 190 is EM_CUDA; e_type 1 is a relocatable
    object, 2 an executable one, 3 a shared one."""
    machine = int.from_bytes(data[18:20], "little")
    if machine == 190:
        return CUBIN if int.from_bytes(data[16:18], "little") == 2 else CUDA_OBJECT
    if machine != 224:
        return FOREIGN_ELF
    return HSACO if int.from_bytes(data[16:18], "little") == 3 else OBJECT


def refuse(got: Artifact, wanted: Artifact, name: str) -> NoReturn:
    """Raises InputError: `name` holds `got` instead of `wanted`."""
    nothing = got in (EMPTY, EMPTY_MODULE)
    what = f"is {got.noun}" if nothing else f"is {got.noun}, not {wanted.noun}"
    advice = "; ".join(text for text in (got.use, "" if nothing else wanted.source) if text)
    raise InputError(f"the input {what}", place=Place(name), hint=advice or None)
