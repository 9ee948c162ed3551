"""Links the functions of LLVM bitcode that kernels call (`fx.ffi.function`).

The trace has the contents of the files (`fly.bitcode`) and a declaration of each function with the
number of its file. A file is read by LLVM's opt, whose text is compared with the declarations: LLVM
itself would link a function of another type, and one for another target. What is needed of it is
linked with internal linkage, for the kernel's processor, so that `opt` may inline it.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common.errors import InputError, Place
from fly_common.programs import toolchain
from fly_target.target import Target

from fly_opt.reporting.diagnostics import Source

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

FILES, FILE = "fly.bitcode", "fly.bitcode_file"
_TRIPLE = re.compile(r'^target triple = "([^"]*)"', re.MULTILINE)
_LAYOUT = re.compile(r'^target datalayout = "([^"]*)"', re.MULTILINE)
_PROCESSOR = re.compile(r'"target-(?:cpu|features)"="[^"]*" ?')
_GROUP = re.compile(r"^attributes (#\d+) = \{ (.*)\}$", re.MULTILINE)
_BARE = re.compile(r"^(define [^\n]*\)(?: (?:local_)?unnamed_addr)?)((?: ![\w.]+ !\d+)* \{)$", re.M)
_NAME = r'@(?:"%s"|%s)\('


@dataclass(frozen=True)
class File:
    """A file's path, as it was given, and its contents."""

    path: str
    data: bytes


@dataclass(frozen=True)
class Declared:
    """A function that kernels call, its file, and where it was called first."""

    name: str
    file: File
    place: Place | None


def taken(module: ir.Operation, flat: ir.Module, source: Source) -> tuple[Declared, ...]:
    """Returns the functions of bitcode that the module of the kernels declares, and removes the
    attributes that say so, which LLVM does not know. `module` has the files."""
    found = []
    for child in flat.body:
        attributes = child.operation.attributes
        if FILE not in attributes:
            continue
        place = source.place_of(child.operation.location)
        entries = _files(module)
        number = attributes[FILE].value
        if not 0 <= number < len(entries):
            raise InputError(f"{FILE} names file {number} of {len(entries)}", place=place)
        found.append(Declared(attributes["sym_name"].value, entries[number], place))
        del attributes[FILE]
    return tuple(found)


def _files(module: ir.Operation) -> list[File]:
    """The files of a module."""
    found = []
    for entry in module.attributes.get(FILES, ()):
        try:
            form = {one.name: one.attr.value for one in entry}
            text = form.get("text")
            data = (
                base64.b64decode(form["base64"], validate=True) if text is None else text.encode()
            )
            found.append(File(form["file"], data))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(
                f"{FILES} is a list of {{file, text}} and {{file, base64}}, all strings"
            ) from None
    return found


def link(text: str, functions: Sequence[Declared], target: Target) -> str:
    """Links the functions into LLVM IR. InputError, at the call, if a file is not LLVM IR or is for
    another target, or if a function is not in its file or has another type."""
    processor = " ".join(dict.fromkeys(one.strip() for one in _PROCESSOR.findall(text)))
    with tempfile.TemporaryDirectory(prefix="fly-opt-") as folder:
        paths = []
        for number, file in enumerate(dict.fromkeys(one.file for one in functions)):
            own = [one for one in functions if one.file == file]
            read = _read(file, own[0].place)
            _check_target(read, file, own[0].place, target)
            for one in own:
                _check_type(text, read, one)
            paths.append(os.path.join(folder, f"{number}.ll"))
            with open(paths[-1], "w", encoding="utf-8") as made:
                made.write(_for_processor(read, processor))
        words = ["-S", "--only-needed", "--internalize", "--suppress-warnings", "-", *paths]
        done = toolchain.run_program("llvm-link", words, text.encode())
    if done.returncode:
        names = ", ".join(dict.fromkeys(one.file.path for one in functions))
        raise InputError(
            f"linking {names} failed: {_reason(done.stderr)}", place=functions[0].place
        )
    return done.stdout.decode()


def _read(file: File, place: Place | None) -> str:
    """The text of a file."""
    done = toolchain.run_program("opt", ["-S", "-o", "-", "-"], file.data)
    if done.returncode:
        raise InputError(
            f"{file.path} is not LLVM IR that opt reads: {_reason(done.stderr)}", place=place
        )
    return done.stdout.decode()


def _reason(stderr: bytes) -> str:
    """The first error that a program of LLVM reports, with its line in the input."""
    for line in stderr.decode(errors="replace").splitlines():
        if match := re.search(r"(?:<stdin>:(\d+:\d+: ))?error: (.*)", line):
            return (match[1] or "") + match[2].strip()
    return "no reason given"


def _check_target(text: str, file: File, place: Place | None, target: Target) -> None:
    for what, pattern, wanted in (
        ("triple", _TRIPLE, target.triple),
        ("data layout", _LAYOUT, target.data_layout),
    ):
        match = pattern.search(text)
        if match and match[1] != wanted and not _is_same_triple(match[1], wanted):
            raise InputError(
                f"{file.path} is for another target: its {what} is {match[1]}, that of"
                f" {target.name} is {wanted}",
                place=place,
                hint=f"compile it for {target.triple}: clang -target {target.triple} -emit-llvm",
            )


def _is_same_triple(a: str, b: str) -> bool:
    """Whether two triples differ at most in parts that are empty or unknown."""
    parts = ([one for one in text.split("-") if one not in ("", "unknown")] for text in (a, b))
    first, second = parts
    return first == second


def _check_type(text: str, read: str, one: Declared) -> None:
    """Compares a declaration in the kernels' LLVM IR with the definition in the file's."""
    name = _NAME % (re.escape(one.name), re.escape(one.name))
    declared = re.search(rf"^declare (.*?){name}", text, re.MULTILINE)
    defined = re.search(rf"^define (.*?){name}", read, re.MULTILINE)
    if defined is None:
        raise InputError(
            f"{one.file.path} does not define {one.name}",
            place=one.place,
            hint='llvm-nm lists what it defines; in C++, use extern "C"',
        )
    if declared is None:
        return
    wanted = _type_before(declared[1]), _parameters(text, declared.end())
    have = _type_before(defined[1]), _parameters(read, defined.end())
    if wanted != have:
        ours, theirs = (f"{result} ({', '.join(types)})" for result, types in (wanted, have))
        raise InputError(
            f"{one.name} is declared as {ours}, but in {one.file.path} it is {theirs}",
            place=one.place,
            hint="arguments= and result= of fx.ffi.function say its type",
        )


def _type_before(text: str) -> str:
    """The type at the end of a function's line before its name, behind linkage and attributes."""
    match = re.search(r"(<[^<>]*>|\{.*\}|\[.*\]|\S+)$", text.strip())
    return match[0] if match else ""


def _type_of(text: str) -> str:
    """The type at the start of a parameter, before its attributes."""
    match = re.match(r"<[^<>]*>|\{.*\}|\[.*\]|ptr addrspace\(\d+\)|\S+", text)
    return match[0] if match else ""


def _parameters(text: str, start: int) -> list[str]:
    """The types of a function's parameters, whose parenthesis is open at `start`."""
    found, depth, piece = [], 0, start
    for at in range(start, len(text)):
        letter = text[at]
        if depth == 0 and letter in ",)":
            found.append(_type_of(text[piece:at].strip()))
            piece = at + 1
            if letter == ")":
                break
        depth += (letter in "(<[{") - (letter in ")>]}")
    return [one for one in found if one]


def _for_processor(text: str, processor: str) -> str:
    """Gives the functions of a file the processor of the kernels: LLVM inlines only between equal
    ones."""
    numbers = [int(number) for number in re.findall(r"^attributes #(\d+)", text, re.MULTILINE)]
    free = max(numbers, default=-1) + 1
    text = _GROUP.sub(
        lambda match: f"attributes {match[1]} = {{ {_PROCESSOR.sub('', match[2])}{processor} }}",
        text,
    )
    text, count = _BARE.subn(rf"\1 #{free}\2", text)
    return f"{text}\nattributes #{free} = {{ {processor} }}\n" if count else text
