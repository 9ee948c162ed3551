"""Functions of random control flow, run by the host: what a pass on control flow must not change.

The functions are AMDGPU's for the pass, whose model of costs decides what it moves, and then the
host's. Each has a chain of blocks with branches ahead, and loops of several blocks or one, in which
branches leave the loop. Three values go through all blocks: a vector, an integer and a counter.
Each block changes them by an operation that costs nothing or by one that costs something.
"""

from __future__ import annotations

import ctypes
import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

COUNT = 60  # functions
INPUTS, WORDS = 24, 64
TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'


class Functions:
    """`llvm` runs a program of LLVM and returns its output."""

    def __init__(self, seed: int, llvm, folder: Path):
        self.random, self.llvm, self.folder = random.Random(seed), llvm, folder
        self.names = [f"k{number}" for number in range(COUNT)]
        self.files = itertools.count()
        texts = [_Function(self.random).text(name) for name in self.names]
        end = 'attributes #0 = { "target-cpu"="gfx942" }\n'
        self.module = TRIPLE + "".join(texts) + end
        self.inputs = [[self.random.randint(0, 1000) for _ in range(WORDS)] for _ in range(INPUTS)]

    def prepared(self) -> str:
        """The module as AMDGPU's passes before the pass leave it."""
        return self._passes("fix-irreducible,unify-loop-exits", self.module)

    def structurized(self, module: str) -> str:
        return self._passes("structurizecfg", module)

    def function(self, module: str, name: str) -> str:
        found = re.search(rf"^define [^\n]*@{name}\(.*?^}}$", module, re.MULTILINE | re.DOTALL)
        assert found
        return found[0]

    def results(self, module: str) -> dict[str, list[tuple[int, ...]]]:
        """What each function stores for each input, compiled for the host."""
        text = re.sub(r" addrspace\(\d\)", "", module).replace("amdgpu_kernel ", "")
        text = re.sub(r"^target .*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"^(attributes #\d+ = ).*$", r"\1{ nounwind }", text, flags=re.MULTILINE)
        words = ("-O0", "-filetype=obj", "-relocation-model=pic")
        stem = self.folder / f"host{next(self.files)}"
        stem.with_suffix(".o").write_bytes(self.llvm("llc", *words, data=text.encode()))
        library = stem.with_suffix(".so")
        self.llvm("ld.lld", "-shared", f"{stem}.o", "-o", str(library), data=b"")
        host = ctypes.CDLL(str(library))
        return {name: [_call(host[name], given) for given in self.inputs] for name in self.names}

    def differing(self, one: dict, other: dict) -> list[str]:
        return [name for name in self.names if one[name] != other[name]]

    def _passes(self, passes: str, module: str) -> str:
        words = ("-S", "-mcpu=gfx942", f"-passes={passes}")
        return self.llvm("opt", *words, data=module.encode()).decode()


def _call(function, given: list[int]) -> tuple[int, ...]:
    stored = (ctypes.c_int32 * 4)()
    function(stored, (ctypes.c_int32 * WORDS)(*given), 77)
    return tuple(stored)


class _Function:
    """`successors` of the blocks, which are numbers; of a block that ends an iteration of a loop,
    the loop's first block in `heads`."""

    def __init__(self, random: random.Random):
        self.random = random
        self.successors: dict[int, list[int]] = {}
        self.heads: dict[int, int] = {}
        self._chain(self._block(), random.randint(3, 8), [], 2)
        waiting, self.blocks = [0], set()
        while waiting:
            if (block := waiting.pop()) not in self.blocks:
                self.blocks.add(block)
                waiting += self.successors[block]

    def _block(self) -> int:
        number = len(self.successors)
        self.successors[number] = []
        return number

    def _chain(self, first: int, size: int, exits: list[int], depth: int) -> int:
        """Blocks that branch to later ones and to `exits`. Returns the last one."""
        ends = {first: first}
        for _ in range(size):
            block = self._block()
            is_loop = depth and self.random.random() < 0.25
            ends[block] = self._loop(block, depth - 1) if is_loop else block
        blocks = list(ends)
        for at, block in enumerate(blocks[:-1]):
            later = blocks[at + 1 :]
            to = later[0] if self.random.random() < 0.6 else self.random.choice(later)
            other = self.random.choice(later + exits) if self.random.random() < 0.72 else to
            self.successors[ends[block]] = self._shuffled(to, other)
        return ends[blocks[-1]]

    def _loop(self, head: int, depth: int) -> int:
        """A loop that begins with a block. Returns the block behind it."""
        behind, last = self._block(), head
        if self.random.random() < 0.65:
            last = self._block()
            self.successors[self._chain(head, self.random.randint(0, 3), [behind], depth)] = [last]
        self.successors[last] = self._shuffled(head, behind)
        self.heads[last] = head
        return behind

    def _shuffled(self, one: int, other: int) -> list[int]:
        return [one] if one == other else self.random.sample([one, other], 2)

    def text(self, name: str) -> str:
        head = f"@{name}(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %x) #0 {{"
        lines = [f"define amdgpu_kernel void {head}"]
        for block in sorted(self.blocks):
            lines += [f"b{block}:", *(f"  {line}" for line in self._lines(block))]
        return "\n".join([*lines, "}", ""])

    def _lines(self, block: int) -> Iterator[str]:
        before = [one for one in sorted(self.blocks) if block in self.successors[one]]
        v, s, c = (f"%p{kind}{block}" for kind in "vsc")
        if block == 0:
            yield "%w = load volatile <2 x i32>, ptr addrspace(1) %in"
            yield "%n = load volatile i32, ptr addrspace(1) %in"
            v, s, c = "%w", "%x", "%n"
        else:
            for into, kind in ((v, "<2 x i32>"), (s, "i32"), (c, "i32")):
                values = ", ".join(f"[ %{into[2]}{one}, %b{one} ]" for one in before)
                yield f"{into} = phi {kind} {values}"
        yield f"%v{block} = {self._vector(block, self.random.choice(('%w', v)), v)}"
        yield f"%s{block} = {self._integer(block, self.random.choice(('%w', v)), s)}"
        yield f"%c{block} = add i32 {c}, 1"
        yield from self._end(block)

    def _vector(self, block: int, any_vector: str, v: str) -> str:
        item = self.random.choice(("%x", str(block + 100)))
        at = self.random.randint(0, 1)
        insert = f"insertelement <2 x i32> {any_vector}, i32 {item}, i64 {at}"
        mask = "<2 x i32> <i32 1, i32 2>"
        others = (
            f"shufflevector <2 x i32> {any_vector}, <2 x i32> {v}, {mask}",
            f"mul <2 x i32> {v}, splat (i32 {block * 2 + 3})",
            f"freeze <2 x i32> {v}",
        )
        return insert if self.random.random() < 0.45 else self.random.choice(others)

    def _integer(self, block: int, any_vector: str, s: str) -> str:
        at = self.random.randint(0, 1)
        return self.random.choice(
            (
                f"extractelement <2 x i32> {any_vector}, i64 {at}",
                f"add i32 {s}, {block * 7 + 1}",
                f"freeze i32 {s}",
            )
        )

    def _end(self, block: int) -> Iterator[str]:
        successors = self.successors[block]
        if not successors:
            yield f"store volatile <2 x i32> %v{block}, ptr addrspace(1) %out"
            yield "%to = getelementptr i8, ptr addrspace(1) %out, i64 8"
            yield f"store volatile i32 %s{block}, ptr addrspace(1) %to"
            yield "ret void"
            return
        if len(successors) == 1:
            yield f"br label %b{successors[0]}"
            return
        yield f"%g{block} = getelementptr i32, ptr addrspace(1) %in, i64 {block % WORDS}"
        yield f"%l{block} = load volatile i32, ptr addrspace(1) %g{block}"
        if block in self.heads:  # it ends after some iterations
            compare = "slt" if successors[0] == self.heads[block] else "sge"
            yield f"%m{block} = and i32 %l{block}, 63"
            yield f"%k{block} = icmp {compare} i32 %c{block}, %m{block}"
        else:
            yield f"%m{block} = add i32 %l{block}, %c{block}"
            yield f"%n{block} = and i32 %m{block}, 2"
            yield f"%k{block} = icmp ne i32 %n{block}, 0"
        yield f"br i1 %k{block}, label %b{successors[0]}, label %b{successors[1]}"


_VALUES = {
    "%i": "i32",
    "%l": "i64",
    "%f": "float",
    "%d": "double",
    "%h": "half",
    "%v": "<2 x i32>",
    "%vh": "<2 x half>",
    "%vf": "<4 x float>",
    "%p": "ptr addrspace(1)",
    "%c": "i1",
}

_ARITHMETIC = (
    *("add", "sub", "mul", "sdiv", "udiv", "srem", "urem"),
    *("shl", "lshr", "ashr", "and", "or", "xor"),
)
_OF_INTEGERS = {
    **dict.fromkeys(("smin", "smax", "umin", "umax"), 2),
    "fshl": 3,
    **dict.fromkeys(("ctpop", "bswap", "bitreverse"), 1),
    **dict.fromkeys(("abs", "cttz", "ctlz"), 2),  # the second one says what is undefined
}  # and the number of arguments
_OF_FLOATS = {
    "fma": 3,
    "minnum": 2,
    "maxnum": 2,
    "copysign": 2,
    **dict.fromkeys(("sqrt", "floor", "fabs", "canonicalize", "rint"), 1),
}


def _operations() -> Iterator[str]:
    for name in ("%i", "%l", "%v"):
        kind = _VALUES[name]
        yield from (f"{word} {kind} {name}, {name}" for word in _ARITHMETIC)
        yield f"icmp slt {kind} {name}, {name}"
        yield f"select i1 %c, {kind} {name}, {kind} {name}"
        for word, arguments in _OF_INTEGERS.items():
            given = [f"{kind} {name}"] * arguments
            if word in ("abs", "cttz", "ctlz"):
                given[1] = "i1 false"
            yield f"call {kind} @llvm.{word}.{_suffix(kind)}({', '.join(given)})"
    for name in ("%f", "%d", "%h", "%vh", "%vf"):
        kind = _VALUES[name]
        yield from (f"{word} {kind} {name}, {name}" for word in ("fadd", "fsub", "fmul", "fdiv"))
        yield from (f"fneg {kind} {name}", f"fcmp olt {kind} {name}, {name}")
        for word, count in _OF_FLOATS.items():
            given = ", ".join([f"{kind} {name}"] * count)
            yield f"call {kind} @llvm.{word}.{_suffix(kind)}({given})"
    yield from ("sitofp i32 %i to float", "fptosi float %f to i32", "fptrunc float %f to half")
    yield from ("bitcast i32 %i to float", "trunc i64 %l to i32", "zext i32 %i to i64")
    yield from ("getelementptr i8, ptr addrspace(1) %p, i64 16", "freeze i32 %i")
    yield from ("load i32, ptr addrspace(1) %p", "extractelement <2 x i32> %v, i64 1")
    yield "insertelement <2 x i32> %v, i32 %i, i64 1"
    yield "call i32 @llvm.amdgcn.readfirstlane.i32(i32 %i)"
    yield "call i32 @llvm.amdgcn.workitem.id.x()"


def _suffix(kind: str) -> str:
    kind = re.sub(r"<(\d) x (\w+)>", r"v\1\2", kind)
    return kind.replace("float", "f32").replace("double", "f64").replace("half", "f16")


def _declarations(lines: list[str]) -> Iterator[str]:
    for line in dict.fromkeys(line for line in lines if line.startswith("call")):
        head, _, given = line.removeprefix("call ").partition("(")
        kinds = [re.sub(r" (?:%\w+|false)$", "", one) for one in given.rstrip(")").split(", ")]
        yield f"declare {head}({', '.join(kinds)})"


_LINES = list(_operations())
# A function with one instruction of each kind.
OPERATIONS = "\n".join(
    [
        TRIPLE,
        *_declarations(_LINES),
        f"define void @f({', '.join(f'{kind} {name}' for name, kind in _VALUES.items())}) {{",
        *(f"  %r{number} = {line}" for number, line in enumerate(_LINES)),
        "  ret void\n}\n",
    ]
)
