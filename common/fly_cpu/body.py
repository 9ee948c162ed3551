"""The lines of a function for the host.

load, store, atomics, memcpy    checks of the memory, before them
division of integers            a divisor that cannot trap
the end of a loop               a poll, so that threads that wait for others let them run
the beginning                   a check of the stack
calls                           the runtime's functions; the number of the place in the code
unreachable                     a trap
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_cpu import assembly
from fly_cpu.operations import intrinsics, matrices
from fly_cpu.operations.generic import COPIES, TRAPS
from fly_cpu.text import closing, operand, size_of, split, take_type, value_of


@dataclass(frozen=True)
class Site:
    """A place in the code that a fault may name. `location` is the number of LLVM's metadata."""

    what: str
    function: str
    location: int | None


class Collector(Protocol):
    atomics: bool
    sanitized: bool
    strict: bool
    used: dict[str, str]

    def site(self, what: str, function: str, location: int | None) -> int: ...


_LABEL = re.compile(r"((?:[\w.$-]+|\"[^\"]+\")):")
_TARGETS = re.compile(r"label %((?:[\w.$-]+|\"[^\"]+\"))")
_DIVISION = re.compile(r"(.*? = )(sdiv|udiv|srem|urem)( exact)? (.*)")
_ORDER = re.compile(r" (?:unordered|monotonic|acquire|release|acq_rel|seq_cst)$")
_ALIGN = re.compile(r", align (\d+)")
_LOCATION = re.compile(r", !dbg !(\d+)")
_ATOMIC = re.compile(r"(?:%\S+ = )?(?:load atomic|store atomic|atomicrmw|cmpxchg) ")
# Pointers to shared memory, and those that may be one: to any memory, and to a cluster's.
_WATCHED = {"ptr addrspace(3)": ".shared", "ptr addrspace(7)": ".generic", "ptr": ".generic"}
_ASM = re.compile(r"\basm\b[^\"]*\"((?:[^\"\\]|\\.)*)\"")


class Body:
    """Rewrites a function's lines, one after another."""

    def __init__(self, module: Collector, function: str):
        self._module, self._function = module, function
        self._labels: set[str] = set()
        self._locals: set[str] = set()
        self._count = 0
        self._location: int | None = None
        self._begun = False

    def line(self, line: str, source: Iterator[str]) -> list[str]:
        """The lines in place of one of the function's. `source` has those that follow."""
        if not line or line.startswith(";"):
            return []
        if (label := _LABEL.match(line)) is not None:
            self._labels.add(label[1])
            return [label[0], *self._beginning()]
        text = re.sub(r" #\d+(?=,|$| \[)", "", line.strip())
        if text.startswith("#dbg_"):
            return [f"  {text}"]
        if text.startswith("switch ") and text.endswith("["):
            for more in source:
                text += f" {more.strip()}"
                if more.strip().startswith("]"):
                    break
        text = re.sub(r' syncscope\("[^"]*"\)', "", text)
        location = _LOCATION.search(text)
        self._location = int(location[1]) if location else None
        return [f"  {one}" for one in [*self._beginning(), *self._rewritten(text)]]

    # -- parts

    def _rewritten(self, text: str) -> list[str]:
        what = text.partition(" = ")[2] if text.startswith("%") else text
        word = what.partition(" ")[0]
        if word in ("tail", "musttail", "notail"):
            text = text.replace(f"{word} call ", "call ", 1)
            word = "call"
        if word == "alloca":
            self._locals.add(text.partition(" ")[0])
            return [text]
        if word == "load":
            return self._load(text, what)
        if word == "store":
            kind, _ = take_type(_without(what, "store"))
            target = split(_without(what, "store"))[1]
            return [*self._check("write", target, size_of(kind), text, f"store {kind}"), text]
        if word in ("atomicrmw", "cmpxchg"):
            return self._update(text, what, word)
        if match := _DIVISION.fullmatch(text):
            return self._division(match)
        if word == "call":
            return self._call(text)
        if word == "unreachable":
            return [f"call void @fly.trap(i32 {self._site('unreachable')})", text]
        if word in ("br", "switch", "indirectbr") and self._goes_back(text):
            return ["call void @fly.poll()", text]
        if word in ("invoke", "callbr", "va_arg"):
            raise InputError(f"the device cpu does not run the instruction {word}")
        return [text]

    def _beginning(self) -> list[str]:
        if self._begun:
            return []
        self._begun = True
        return [f"call void @fly.room(i32 {self._site('the stack')})"]

    def _site(self, what: str) -> int:
        return self._module.site(what, self._function, self._location)

    def _name(self) -> str:
        self._count += 1
        return f"%fly.{self._count}"

    def _goes_back(self, text: str) -> bool:
        return any(label in self._labels for label in _TARGETS.findall(text))

    def _check(self, way: str, pointer: str, size: str, text: str, what: str) -> list[str]:
        """The check of an access at an operand like `ptr addrspace(1) %x`."""
        kind, value = operand(_ORDER.sub("", pointer))
        if value in self._locals and not self._module.sanitized:
            return []
        align = _ALIGN.search(text)
        low = int(align[1]) - 1 if align else 0
        name = self._name()
        given = f"i64 {name}, i64 {size}, i64 {low}, i32 {self._site(what)}"
        is_atomic = self._module.strict and _ATOMIC.match(text)
        watched = self._module.strict and not is_atomic and _WATCHED.get(kind, "")
        return [
            f"{name} = ptrtoint {kind} {value} to i64",
            f"call void @fly.{way}{watched or ''}({given}){self._line()}",
            *(["call void @fly.strict.atomic()"] if is_atomic else []),
        ]

    def _line(self) -> str:
        """The source line of a check, for the stack in the sanitizer's reports."""
        known = self._module.sanitized and self._location is not None
        return f", !dbg !{self._location}" if known else ""

    def _load(self, text: str, what: str) -> list[str]:
        rest = _without(what, "load")
        kind, _ = take_type(rest)
        return [*self._check("read", split(rest)[1], size_of(kind), text, f"load {kind}"), text]

    def _update(self, text: str, what: str, word: str) -> list[str]:
        rest = re.sub(r"^(?:weak |volatile )+", "", what.removeprefix(f"{word} "))
        if word == "atomicrmw":
            rest = re.sub(r"^(?:volatile )?\w+ (?:volatile )?", "", rest)
        pointer, value = split(rest)[:2]
        kind, _ = take_type(value)
        size = size_of(kind)
        if not pointer.startswith("ptr addrspace(3)"):
            self._module.atomics = True
        return [*self._check("write", pointer, size, text, f"{word} {kind}"), text]

    def _division(self, match: re.Match[str]) -> list[str]:
        """A divisor of 0 gives all ones, and the dividend as the remainder: on a GPU, too, the
        result is just not specified. The host would trap, also where the quotient overflows."""
        result, operation, _, rest = match.groups()
        kind, operands = take_type(rest)
        parts = split(operands)
        dividend, divisor = parts[:2]
        end = "".join(f", {one}" for one in parts[2:])
        if re.fullmatch(r"[2-9]|[1-9]\d+", divisor):
            return [match[0]]
        one, zeros = ("1", "0") if not kind.startswith("<") else (_splat(kind), "zeroinitializer")
        flag = re.sub(r"i\d+", "i1", kind)
        zero, safe = self._name(), self._name()
        lines = [f"{zero} = icmp eq {kind} {divisor}, {zeros}"]
        trap = zero
        if operation.startswith("s"):
            least = 1 << int(re.findall(r"i(\d+)", kind)[0]) - 1
            lowest = str(-least) if not kind.startswith("<") else _splat(kind, str(-least))
            minus = "-1" if not kind.startswith("<") else _splat(kind, "-1")
            is_least, is_minus, over, trap = (self._name() for _ in range(4))
            lines += [
                f"{is_least} = icmp eq {kind} {dividend}, {lowest}",
                f"{is_minus} = icmp eq {kind} {divisor}, {minus}",
                f"{over} = and {flag} {is_least}, {is_minus}",
                f"{trap} = or {flag} {zero}, {over}",
            ]
        lines.append(f"{safe} = select {flag} {trap}, {kind} {one}, {kind} {divisor}")
        quotient = self._name()
        lines.append(f"{quotient} = {operation} {kind} {dividend}, {safe}{end}")
        ones = "-1" if not kind.startswith("<") else _splat(kind, "-1")
        undefined = ones if operation.endswith("div") else dividend
        lines.append(f"{result}select {flag} {zero}, {kind} {undefined}, {kind} {quotient}{end}")
        return lines

    def _call(self, text: str) -> list[str]:
        if asm := _ASM.search(text):
            return self._assembly(text, asm)
        text = re.sub(r"\bcall (fastcc|coldcc|ptx_device|ccc) ", "call ", text)
        if match := COPIES.search(text):
            return [*self._copy(text, match), text]
        if any(name in text for name in TRAPS):
            return [f"call void @fly.trap(i32 {self._site('trap')})"]
        match = re.search(r"@(llvm\.nvvm\.[\w.]+|vprintf|__assertfail|__nvvm_reflect)\(", text)
        if match is None:
            return [text]
        name = match[1]
        text = re.sub(r"\brange\(\w+ -?\d+, -?\d+\) ", "", text)
        match = re.search(rf"@{re.escape(name)}\(", text)
        assert match
        if not name.startswith("llvm."):
            text = text.replace(f"@{name}(", f"@fly.known.{name}(")
            return [self._with_site(text) if name == "__assertfail" else text]
        short = name.removeprefix("llvm.nvvm.")
        text = text.replace(f"@{name}(", f"@fly.nvvm.{short}(")
        return [self._with_site(text, short) if short in intrinsics.together() else text]

    def _with_site(self, text: str, what: str = "assert") -> str:
        opening = re.search(r"@fly\.[\w.]+\(", text)
        assert opening
        end = closing(text, opening.end() - 1)
        comma = ", " if text[opening.end() : end].strip() else ""
        return f"{text[:end]}{comma}i32 {self._site(what)}{text[end:]}"

    def _copy(self, text: str, match: re.Match[str]) -> list[str]:
        arguments = split(text[match.end() : closing(text, match.end() - 1)])
        size = value_of(take_type(arguments[2])[1])
        kind = take_type(arguments[2])[0]
        lines = []
        if kind != "i64":
            wide = self._name()
            lines.append(f"{wide} = zext {kind} {size} to i64")
            size = wide
        lines += self._check("write", arguments[0], size, "", match[1])
        if match[1] != "memset":
            lines += self._check("read", arguments[1], size, "", match[1])
        return lines

    def _assembly(self, text: str, asm: re.Match[str]) -> list[str]:
        """PTX can't run, except for texts that are known."""
        opening = text.index('"(', asm.end()) + 1
        operands = split(text[opening + 1 : closing(text, opening)])
        result = text.partition(" = ")[0]
        update = assembly.update(asm[1], operands)
        if update is not None:
            line = f"atomicrmw {update.operation} {update.pointer}, {update.value} monotonic"
            line += f", align {size_of(take_type(update.value)[0])}"
            return self._update(f"{result} = {line}", line, "atomicrmw")
        values = [take_type(one)[1] for one in operands]
        product = matrices.wgmma(asm[1], values, result, self._name(), self._site("wgmma"))
        if product is not None:
            made, functions = product
            self._module.used.update(functions)
            return made
        lines = assembly.lines(asm[1], result, operands, self._name())
        if lines is None:
            raise InputError(
                f"{self._function} has inline assembly, which can't run on the host:"
                f" {quoted(asm[1])}",
                hint="use an intrinsic, or a GPU: --device cuda",
            )
        for name in assembly.CALLED:
            if any(f"@fly.nvvm.{name}(" in line for line in lines):
                self._module.used[f"llvm.nvvm.{name}"] = intrinsics.alone()[name]
        return lines


def _without(what: str, word: str) -> str:
    return re.sub(r"^(?:atomic |volatile )+", "", what.removeprefix(f"{word} "))


def _splat(kind: str, value: str = "1") -> str:
    element = re.findall(r"i\d+", kind)[0]
    return f"splat ({element} {value})"
