"""Builds a shared library of mutants, and detects equivalent ones.

A mutant that LLVM compiles to the original's machine code is equivalent, and another one replaces
it.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fly_common.programs import toolchain
from fly_run.emulator.engine import library
from fly_run.emulator.irgen import Function
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.operation import SHORT, TO_EXEC, Operation
from fly_run.emulator.semantics.memory import resolve

_DEFINE = re.compile(r'define (?:hidden |internal )?(\S+ @)"[^"]*"')
_LABEL = re.compile(r"\.L\w+")


def original(handler: str) -> Function:
    """Returns a handler as generated from the emulator's tables."""
    operation = operation_of(handler)
    return table._emitters()[operation.form](operation, handler)


def operation_of(handler: str) -> Operation:
    """Returns the operation that a handler belongs to, whichever its kinds and its waves are."""
    operations, name = table.operations(), handler.removesuffix(SHORT).removesuffix(TO_EXEC)
    return operations[name if name in operations else name.rpartition(".")[0]]


def module(texts: Sequence[str], declarations: set[str]) -> str:
    """Returns one module of functions `m0`, `m1`, … and the functions that handlers call."""
    helpers = resolve.functions()
    defined = {function.name for function in helpers}
    needed = {text for function in helpers for text in function.declarations} | declarations
    needed |= {
        text for text in table.SHARED if text.partition("@")[2].partition("(")[0] not in defined
    }
    renamed = [
        _DEFINE.sub(rf'define hidden \1"m{number}"', text, count=1)
        for number, text in enumerate(texts)
    ]
    pointers = ", ".join(f"ptr @m{number}" for number in range(len(texts)))
    parts = [
        f"@count = constant i32 {len(texts)}",
        f"@mutants = constant [{len(texts)} x ptr] [{pointers}]",
        *sorted(needed),
        *(function.text().replace("define ", "define internal ", 1) for function in helpers),
        *renamed,
        table.ATTRIBUTES,
    ]
    return "\n\n".join(parts) + "\n"


def same(originals: Sequence[str], changed: Sequence[str], declarations: set[str]) -> list[bool]:
    """Returns which pairs are the same function after optimisation, in machine code."""
    text = module([*originals, *changed], declarations)
    optimised = _run("opt", ["-O2", "-S", "-mtriple=x86_64-unknown-linux-gnu"], text)
    machine = ["-O2", f"-mcpu={library.host_level()}", "-mtriple=x86_64-unknown-linux-gnu"]
    assembly = _run("llc", machine, optimised)
    bodies = {
        int(number): _normal(body)
        for number, body in re.findall(
            r"^m(\d+):[^\n]*\n(.*?)^\.Lfunc_end", assembly, re.DOTALL | re.MULTILINE
        )
    }
    count = len(originals)
    return [bodies[k] == bodies[k + count] for k in range(count)]


def _run(program: str, options: list[str], text: str) -> str:
    command = [str(toolchain.find_program(program)), *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr[:2000]}")
    return done.stdout


def _normal(body: str) -> str:
    """Normalises labels by order of appearance, and removes comments and addresses."""
    names: dict[str, str] = {}
    body = re.sub(r"\s*#.*|^\s*\.(cfi_|p2align|type|size).*\n", "", body, flags=re.MULTILINE)
    return _LABEL.sub(lambda match: names.setdefault(match[0], f".L{len(names)}"), body)


def compiled(texts: Sequence[str], declarations: set[str], folder: Path, name: str) -> Path:
    """Compiles the functions to a library in `folder`."""
    source, made, linked = (folder / f"{name}.{suffix}" for suffix in ("ll", "o", "so"))
    source.write_text(module(texts, declarations))
    llc = str(toolchain.find_program("llc"))
    subprocess.run(
        [
            *(llc, "-O1", "-filetype=obj", "-relocation-model=pic"),
            *(f"-mcpu={library.host_level()}", "-mtriple=x86_64-unknown-linux-gnu"),
            *("-mattr=-vzeroupper,+fast-gather", str(source), "-o", str(made)),
        ],
        check=True,
    )
    lld = str(toolchain.find_program("ld.lld"))
    subprocess.run([lld, "-shared", "-z", "defs", str(made), "-o", str(linked)], check=True)
    return linked


def addresses(library_: Path) -> list[int]:
    """Returns the functions of a library, in order. The library stays loaded."""
    loaded = ctypes.CDLL(str(library_))
    count = ctypes.c_uint32.in_dll(loaded, "count").value
    return list((ctypes.c_uint64 * count).in_dll(loaded, "mutants"))
