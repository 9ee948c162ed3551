"""The part of a kernel that decides which way its work items go: a program of integers.

Code generation's last LLVM IR has the kernel's control flow, with the divergent branches marked by
`llvm.amdgcn.if`, `else`, `if.break` and `loop`. For one lane, these are ordinary conditions: a mask
of lanes is the lane's own bit. What the conditions depend on is followed back to the work item's
and the workgroup's numbers, the sizes of the launch, the kernel's arguments and constants. A
condition that depends on anything else, such as what was loaded from memory, makes a kernel's
counts unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from fly_roofline import llvm
from fly_roofline.instructions import Unknown

_BINARY = re.compile(
    r"(?P<op>add|sub|mul|shl|lshr|ashr|and|or|xor|udiv|sdiv|urem|srem)(?: [a-z]+)*? i(?P<bits>\d+) "
    r"(?P<a>\S+), (?P<b>\S+)$"
)
_COMPARE = re.compile(r"icmp(?: samesign)? (?P<op>\w+) i(?P<bits>\d+) (?P<a>\S+), (?P<b>\S+)$")
_CAST = re.compile(
    r"(?P<op>zext|sext|trunc)(?: [a-z]+)*? i(?P<bits>\d+) (?P<a>\S+) to i(?P<to>\d+)$"
)
_FREEZE = re.compile(r"freeze i(?P<bits>\d+) (?P<a>\S+)$")
_SELECT = re.compile(r"select i1 (?P<c>\S+), i(?P<bits>\d+) (?P<a>\S+), i\d+ (?P<b>\S+)$")
_PHI = re.compile(r"phi i(?P<bits>\d+) (?P<pairs>\[.*\])$")
_PAIR = re.compile(r"\[ (?P<value>\S+), %(?P<block>[\w.$-]+|\"[^\"]*\") \]")
_CALL = re.compile(r"(?:tail |musttail )?call .*?@(?P<name>[\w.$]+)\((?P<arguments>.*)\)[^()]*$")
_EXTRACT = re.compile(r"extractvalue (?P<rest>.*) (?P<a>%[\w.$-]+), (?P<indices>[\d, ]+)$")
_ELEMENT = re.compile(
    r"extractelement <\d+ x i(?P<bits>\d+)> (?P<a>%[\w.$-]+), i(?:32|64) (?P<index>\d+)$"
)
_LOAD = re.compile(r"load (?P<type>.*), ptr addrspace\(4\) (?P<pointer>\S+), align \d+$")
_OFFSET = re.compile(
    r"getelementptr (?:[a-z]+ )*i8, ptr addrspace\(4\) (?P<a>\S+), i(?:32|64) (?P<by>-?\d+)$"
)
_BITCAST = re.compile(r"bitcast ptr addrspace\(4\) (?P<a>\S+) to ptr addrspace\(4\)$")
_BRANCH = re.compile(r"br i1 (?P<c>\S+), label %(?P<yes>\S+), label %(?P<no>\S+)$")

# Intrinsics of two integers.
_TWO = {f"llvm.{name}": name for name in ("umin", "umax", "smin", "smax")}
_IDS = {
    **{f"llvm.amdgcn.workitem.id.{axis}": ("item", n) for n, axis in enumerate("xyz")},
    **{f"llvm.amdgcn.workgroup.id.{axis}": ("group", n) for n, axis in enumerate("xyz")},
}
_SEGMENT, _IMPLICIT, _DISPATCH = (
    f"llvm.amdgcn.{name}.ptr" for name in ("kernarg.segment", "implicitarg", "dispatch")
)
# What the implicit arguments and the dispatch packet have at an offset, by bytes: grid in
# workgroups, block (User Guide for AMDGPU Backend, "Kernel Argument Metadata", "Kernel Dispatch").
_SIZES = {
    _IMPLICIT: {
        **{(4 * n, 4): ("grid", n) for n in range(3)},
        **{(12 + 2 * n, 2): ("block", n) for n in range(3)},
    },
    _DISPATCH: {(4 + 2 * n, 2): ("block", n) for n in range(3)},
}


@dataclass
class Step:
    """A value: `op` of `operands`, which are names or integers. For a phi, `operands` has pairs of
    a block and a value."""

    name: str
    op: str
    bits: int
    operands: list[Any]


@dataclass
class Slice:
    """Blocks by name, the entry first: the steps that are needed there, and how it ends: () for a
    return, a name for a jump, (condition, yes, no) for a branch."""

    steps: dict[str, list[Step]] = field(default_factory=dict)
    ends: dict[str, Any] = field(default_factory=dict)


class Slicer:
    """Slices a function."""

    def __init__(self, function: llvm.Function):
        self.function = function
        self.definitions = function.definitions
        self.made: dict[str, Step] = {}
        self._offsets = _parameter_offsets(function)

    def run(self) -> Slice:
        """Raises Unknown if a branch depends on something else than the launch and its
        arguments."""
        made = Slice()
        for block in self.function.blocks.values():
            made.ends[block.name] = self._end(block)
        for block in self.function.blocks.values():
            own = (self.made.get(line.name) for line in block.lines)
            made.steps[block.name] = [step for step in own if step is not None]
        # Parameters are values of the entry.
        entry = next(iter(self.function.blocks))
        given = (self.made.get(name) for name in self._offsets)
        made.steps[entry][:0] = [step for step in given if step is not None]
        return made

    def _end(self, block: llvm.Block) -> Any:
        text = block.lines[-1].text
        if found := _BRANCH.match(text):
            yes, no = found["yes"], found["no"]
            return yes if yes == no else (self._value(found["c"]), yes, no)
        if text.startswith("br label"):
            return block.successors[0]
        if text.startswith(("ret ", "unreachable")):
            return ()
        raise Unknown(f"it ends a block by {text.partition(' ')[0]}")

    def _value(self, text: str) -> Any:
        """Returns an operand: an integer, or a name whose step is made."""
        if text in ("true", "false"):
            return int(text == "true")
        if text in ("undef", "poison", "zeroinitializer", "null"):
            return 0
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        waiting = [text]
        while waiting:
            name = waiting.pop()
            if name in self.made:
                continue
            step = self.made[name] = self._step(name)
            operands = [one for pair in step.operands for one in pair] if step.op == "phi" else None
            values = operands[1::2] if operands is not None else step.operands
            waiting += [one for one in values if isinstance(one, str)]
        return text

    def _step(self, name: str) -> Step:
        if name in self._offsets:
            type_, offset = self._offsets[name]
            return self._argument(name, type_, offset)
        if name not in self.definitions:
            raise Unknown(f"a branch depends on {name}")
        line = self.definitions[name][1]
        text = line.text
        if found := _BINARY.match(text):
            operands = [_operand(found["a"]), _operand(found["b"])]
            return Step(name, found["op"], int(found["bits"]), operands)
        if found := _COMPARE.match(text):
            operands = [_operand(found["a"]), _operand(found["b"])]
            return Step(name, f"icmp {found['op']}", int(found["bits"]), operands)
        if found := _CAST.match(text):
            bits, to = int(found["bits"]), int(found["to"])
            return Step(name, found["op"], to, [_operand(found["a"]), bits])
        if found := _FREEZE.match(text):
            return Step(name, "copy", int(found["bits"]), [_operand(found["a"])])
        if found := _SELECT.match(text):
            operands = [_operand(found[one]) for one in "cab"]
            return Step(name, "select", int(found["bits"]), operands)
        if found := _PHI.match(text):
            pairs = [(one["block"], _operand(one["value"])) for one in _PAIR.finditer(text)]
            return Step(name, "phi", int(found["bits"]), pairs)
        if found := _EXTRACT.match(text):
            return self._extracted(name, found)
        if found := _ELEMENT.match(text):
            return self._element(name, found)
        if found := _LOAD.match(text):
            return self._loaded(name, found["type"], found["pointer"])
        if found := _CALL.match(text):
            return self._called(name, found["name"], llvm.split(found["arguments"]), text)
        raise self._unknown(name)

    def _unknown(self, name: str) -> Unknown:
        text = self.definitions[name][1].text
        if text.startswith("load"):
            return Unknown("it depends on data: a branch depends on what is loaded from memory")
        return Unknown(f"a branch depends on {text.partition(',')[0][:80]}")

    def _extracted(self, name: str, found: re.Match[str]) -> Step:
        source = self.definitions[found["a"]][1].text
        indices = [int(one) for one in found["indices"].split(",")]
        if loaded := _LOAD.match(source):
            type_, offset = llvm.field_at(loaded["type"], indices)
            return self._loaded(name, type_, loaded["pointer"], offset)
        called = _CALL.match(source)
        if called is not None and called["name"].startswith(
            ("llvm.amdgcn.if.i", "llvm.amdgcn.else.")
        ):
            # The first result: whether the lane goes into the block. The second: the lanes of the
            # wave that are active here and do not; for this lane, the opposite.
            condition = _operand(llvm.split(called["arguments"])[0].split()[-1])
            return Step(name, "copy" if indices == [0] else "not", 1, [condition])
        raise self._unknown(name)

    def _element(self, name: str, found: re.Match[str]) -> Step:
        """An element of a vector that is loaded, as one load of several arguments is."""
        bits, index = int(found["bits"]), int(found["index"])
        loaded = _LOAD.match(self.definitions.get(found["a"], ("", llvm.Line("", "")))[1].text)
        if loaded is None or bits % 8:
            raise self._unknown(name)
        return self._loaded(name, f"i{bits}", loaded["pointer"], index * bits // 8)

    def _pointer(self, name: str) -> tuple[str, int]:
        """What a pointer to constant memory points to: an intrinsic's name, and an offset."""
        offset = 0
        while name in self.definitions:
            text = self.definitions[name][1].text
            if found := _OFFSET.match(text):
                offset += int(found["by"])
            elif not (found := _BITCAST.match(text)):
                called = _CALL.match(text)
                return (called["name"] if called else ""), offset
            name = found["a"]
        return "", offset

    def _loaded(self, name: str, type_: str, pointer: str, more: int = 0) -> Step:
        base, offset = self._pointer(pointer)
        offset += more
        if base == _SEGMENT:
            return self._argument(name, type_, offset)
        size = llvm.size_and_alignment(type_)[0] if re.fullmatch(r"i\d+", type_) else 0
        what = _SIZES.get(base, {}).get((offset, size))
        if what is None:
            raise self._unknown(name)
        return Step(name, what[0], 8 * size, [what[1]])

    def _argument(self, name: str, type_: str, offset: int) -> Step:
        found = re.fullmatch(r"i(\d+)", type_)
        if found is None:
            raise Unknown(f"a branch depends on an argument of type {type_}")
        return Step(name, "argument", int(found[1]), [offset, llvm.size_and_alignment(type_)[0]])

    def _called(self, name: str, function: str, arguments: list[str], text: str) -> Step:
        operands = [_operand(one.split()[-1]) for one in arguments]
        bits = int(found[1]) if (found := re.search(r"\bi(\d+) @", text)) else 0
        stem = re.sub(r"\.i\d+$", "", function)
        if function in _IDS:
            return Step(name, _IDS[function][0], 32, [_IDS[function][1]])
        if stem in _TWO:
            return Step(name, _TWO[stem], bits, operands)
        if stem == "llvm.amdgcn.if.break":
            return Step(name, "or", 1, operands)
        if stem == "llvm.amdgcn.loop":
            return Step(name, "copy", 1, operands)
        if stem == "llvm.amdgcn.readfirstlane":
            return Step(name, "first", bits, operands)
        if stem == "llvm.amdgcn.ballot":
            return Step(name, "ballot", bits, operands)
        if function in ("llvm.amdgcn.mbcnt.lo", "llvm.amdgcn.mbcnt.hi"):
            return Step(name, function.rpartition(".")[2], 32, operands)
        if function in ("llvm.amdgcn.mul.u24.i32", "llvm.amdgcn.mul.i24.i32"):
            return Step(name, "mul24" if ".u24" in function else "muls24", 32, operands)
        if stem in ("llvm.cttz", "llvm.ctpop"):
            return Step(name, stem.removeprefix("llvm."), bits, operands[:1])
        raise Unknown(f"a branch depends on {function}")


def _operand(text: str) -> Any:
    if text in ("true", "false"):
        return int(text == "true")
    if text in ("undef", "poison"):
        return 0
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if text.startswith("%"):
        return text
    raise Unknown(f"a branch depends on {text[:60]}")


def _parameter_offsets(function: llvm.Function) -> dict[str, tuple[str, int]]:
    """The types and offsets of a kernel's parameters in its arguments. Those behind one whose size
    is not known are left out."""
    found, offset = {}, 0
    for type_, name in function.parameters:
        try:
            size, alignment = llvm.size_and_alignment(type_)
        except ValueError:
            break
        offset = -(-offset // alignment) * alignment
        found[name] = (type_, offset)
        offset += size
    return found
