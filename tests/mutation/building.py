"""Mutants → one shared library, and which of them are no mutants at all.

A mutant that LLVM optimises to the original's code computes the same: it is equivalent, and another
one takes its place.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fly_common import toolchain
from fly_run.emulator import library
from fly_run.emulator.irgen import Function
from fly_run.emulator.semantics import resolve, table

_DEFINE = re.compile(r'define (?:hidden |internal )?(\S+ @)"[^"]*"')
_LOCAL = re.compile(r"%[\w.]+|%\"[^\"]+\"")


def original(handler: str) -> Function:
    """A handler as the emulator's tables make it."""
    operations = table.operations()
    name = handler if handler in operations else handler.rpartition(".")[0]
    operation = operations[name]
    return table._emitters()[operation.form](operation, handler)


def module(texts: Sequence[str], declarations: set[str]) -> str:
    """One module of functions `m0`, `m1`, … with what handlers call beside them."""
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
        f"@mutants = constant [{len(texts)} x ptr] [{pointers}]",
        *sorted(needed),
        *(function.text().replace("define ", "define internal ", 1) for function in helpers),
        *renamed,
        table.ATTRIBUTES,
    ]
    return "\n\n".join(parts) + "\n"


def same(originals: Sequence[str], changed: Sequence[str], declarations: set[str]) -> list[bool]:
    """Which of the pairs are the same function after optimisation."""
    text = module([*originals, *changed], declarations)
    command = [str(toolchain.find_program("opt")), "-O2", "-S", "-mtriple=x86_64-unknown-linux-gnu"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"opt: {done.stderr[:2000]}")
    bodies = {
        int(number): _normal(body)
        for number, body in re.findall(
            r"^define [^\n]*@m(\d+)\([^\n]*\{\n(.*?)^\}", done.stdout, re.DOTALL | re.MULTILINE
        )
    }
    count = len(originals)
    return [bodies[k] == bodies[k + count] for k in range(count)]


def _normal(body: str) -> str:
    """Local names by their order of appearance, without comments."""
    names: dict[str, str] = {}
    body = re.sub(r";.*", "", body)
    body = re.sub(r"^([\w.]+):", r"%\1:", body, flags=re.MULTILINE)
    return _LOCAL.sub(lambda match: names.setdefault(match[0], f"%{len(names)}"), body)


def compiled(texts: Sequence[str], declarations: set[str], folder: Path, name: str) -> list[int]:
    """The functions' addresses in a library of their own, which stays loaded."""
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
    pointers = (ctypes.c_uint64 * len(texts)).in_dll(ctypes.CDLL(str(linked)), "mutants")
    return list(pointers)
