"""Pairs of f32 operations that become one packed instruction: `v_pk_add_f32`, `v_pk_mul_f32`.

LLVM's SLP vectorizer looks for operations to pair at stores, phis and chains of one operation. It
finds none in what kernels do most with two values at once, which is to reduce both over the lanes:

        a1 = a + swizzle(a)            b1 = b + swizzle(b)
        a2 = a1 + swizzle'(a1)         b2 = b1 + swizzle'(b1)

Each of these sums has one operand from another lane, by the same permutation. Such operations are
paired here, as `<2 x float>`, for which LLVM 22 selects the packed instructions. Each pair also
needs one wait for its two permutations, where two sums have one each. The results are the same, bit
for bit. What makes the operands is left alone: pairs of it save little, and need more registers.

A packed operation has its operands in two consecutive registers. The result of a permutation, of a
conversion or of arithmetic gets them there without a copy; that of a load may have its place by its
neighbours, and a number or a scalar register needs a copy. Pairs that are connected are kept if
they are more than the copies that they need.
"""

from __future__ import annotations

import bisect
import re

from fly_common.record import record

from fly_llc.codegen import ir_text
from fly_llc.codegen.ir_text import NAME, Function, Instruction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_llc.codegen.target import Target

# Permutations of lanes that are instructions of their own, with the positions of what they permute.
# `update.dpp` is not: LLVM makes it a part of the operation that reads it, if that is not packed.
_PERMUTATIONS = {
    "ds.swizzle": (0,),
    "ds.bpermute": (1,),
    "ds.bpermute.fi.b32": (1,),
    "permlane16": (0, 1),
    "permlanex16": (0, 1),
    "permlane16.var": (0, 1),
    "permlanex16.var": (0, 1),
    "permlane64": (0,),
}
_PERMUTATION = re.compile(
    r" @llvm\.amdgcn\.(ds\.(?:swizzle|bpermute(?:\.fi\.b32)?)|permlane(?:x?16(?:\.var)?|64))"
    r"(?:\.i32|\.f32)?\((.*?)\)"
)
_OPERATION = re.compile(
    rf"  {NAME} = (f(?:add|sub|mul)) ((?:[a-z]+ )*)float ([^ ,]+), ([^ ,]+?)(, !dbg !\d+)?$"
)
_MOVED = re.compile(
    rf"^  ({NAME}) = [^\n]* @llvm\.amdgcn\.(?:ds\.(?:swizzle|bpermute)|permlane).*", re.MULTILINE
)
_CAST = re.compile(rf"^  ({NAME}) = bitcast i32 ({NAME}) to float$", re.MULTILINE)
_OPERANDS = re.compile(
    rf"^  {NAME} = f(?:add|sub|mul) (?:[a-z]+ )*float ([^ ,]+), ([^ ,\n]+)", re.MULTILINE
)
_RENDERED = re.compile(rf"  {NAME} = (?:tail |notail )?call (?:[a-z]+ )*float @")
_LANES = re.compile(r"amdgcn\.(?:workitem\.id|mbcnt|ds\.|permlane|update\.dpp|mov\.dpp)")
_SCALAR = re.compile(r"amdgcn\.(?:read(?:first)?lane|ballot|wave|s\.|make|icmp|fcmp)")
_MODIFIERS = re.compile(r"llvm\.(?:fabs|amdgcn\.(?:update|mov)\.dpp)")
_CLAMPS = re.compile(r"llvm\.(?:(?:min|max)(?:num|imum)|amdgcn\.fmed3)")
# Arithmetic whose result LLVM puts into any register.
_FREE = ("fadd", "fsub", "fmul", "fdiv", "select", "sitofp", "uitofp", "fpext", "fptrunc")
_FUSIBLE = re.compile(r"contract|reassoc|fast")
_FMA = re.compile(r"llvm\.fma|llvm\.fmuladd")
# With these options and attributes LLVM fuses operations whose flags don't say so.
_FUSES = re.compile(r'-fp-contract|unsafe-fp-math"="true')


@record(eq=False)
class Pair:
    """Two operations of a block. `operands` are the halves of each, in the same order.
    `vector` is the name of the pair's value."""

    low: Instruction
    high: Instruction
    operation: str
    flags: str
    operands: tuple[tuple[str, str], ...]
    location: str
    vector: str


def paired(module: str, target: Target, flags: tuple[str, ...]) -> str | None:
    """Returns the module with pairs of operations as vectors, for a target that has the packed
    instructions. None if there are no such pairs."""
    from fly_target import registry

    if not _PERMUTATION.search(module) or not ir_text.can_rename(module):
        return None
    row = registry.BUILT_IN.get(target.cpu)
    if row is None or row.amd is None or not row.amd.packed_f32:
        return None
    if _FUSES.search(module) or any(_FUSES.match(flag) for flag in flags):
        return None
    pure = ir_text.pure_functions(module)
    return ir_text.rewritten(
        module,
        lambda text: _Search(Function(text), pure).text() if _has_operations(text) else None,
    )


def _has_operations(function: str) -> bool:
    """Whether two operations of a block have operands from other lanes by the same permutation.
    This takes a small part of the time that a function's instructions take to read."""
    moved = {found[1]: _permutation(found[0]) for found in _MOVED.finditer(function)}
    moved |= {to: moved[value] for to, value in _CAST.findall(function) if value in moved}
    blocks = [label.start() for label in ir_text.LABEL.finditer(function)]
    keys = [
        (bisect.bisect(blocks, found.start()), moved[operand])
        for found in _OPERANDS.finditer(function)
        for operand in found.groups()
        if operand in moved
    ]
    return len(keys) != len({*keys})


def _permutation(call: str) -> tuple[str, ...] | None:
    """By which permutation a line calls for values of other lanes: without the values."""
    found = _PERMUTATION.search(call)
    if not found:
        return None
    words = found[2].split(", ")
    data = _PERMUTATIONS[found[1]]
    return found[1], *("" if at in data else word for at, word in enumerate(words))


class _Search:
    """The pairs of a function."""

    def __init__(self, function: Function, pure: set[str]):
        self.function, self.pure = function, pure
        self.half: dict[str, tuple[Pair, int]] = {}  # the pair and the half that a value is
        self.lanes: set[str] = set()  # values that certainly differ between lanes
        self._reach: dict[int, tuple[list[int], dict[str, int]]] = {}
        self._made = 0

    def text(self) -> str | None:
        """Returns the function with its pairs, or None if it has none."""
        rows = [one for block in self.function.blocks for one in block]
        seeds = [(one, key) for one in rows if (key := self._key(one))]
        if len({key for _, key in seeds}) == len(seeds):
            return None
        for one in rows:
            if _LANES.search(one.callee) or (
                not self.lanes.isdisjoint(one.operands) and not _SCALAR.search(one.callee)
            ):
                self.lanes.add(one.name)
        waiting: dict[tuple[object, ...], list[Instruction]] = {}
        for one, key in seeds:
            others = waiting.setdefault(key, [])
            pair = next((found for other in others if (found := self._pair(other, one))), None)
            if pair is None:
                others.append(one)
            else:
                others[:] = [other for other in others if other.name not in self.half]
        self._keep_profitable()
        numbers = {pair.low.block for pair in self._pairs()}
        orders = {number: self._order(number) for number in numbers}
        if not self.half:
            return None
        return self.function.text(
            {
                number: [line for place in order for line in self._lines(number, place)]
                for number, order in orders.items()
            }
        )

    def _key(self, one: Instruction) -> tuple[object, ...] | None:
        """What two operations must have in common, if one operand is from another lane."""
        found = _OPERATION.match(one.text)
        if not found or not self._may_pair(one, found):
            return None
        kinds = tuple(self._permutation(operand) for operand in found.group(3, 4))
        if not any(kinds):
            return None
        if found[1] != "fsub":
            kinds = tuple(sorted(kinds, key=lambda kind: kind is not None))
        return one.block, found[1], found[2], kinds

    def _permutation(self, value: str) -> tuple[str, ...] | None:
        """By which permutation a value comes from another lane."""
        source = self.function.definitions.get(self._root(value))
        return _permutation(source.text) if source and source.operation == "call" else None

    def _root(self, value: str) -> str:
        """The value that a value has the bits of."""
        while (one := self.function.definitions.get(value)) and one.operation == "bitcast":
            value = one.operands[0] if one.operands else ""
        return value

    def _may_pair(self, one: Instruction, found: re.Match[str]) -> bool:
        """Whether an operation computes the same in a pair, without losing what an instruction
        that is not packed does on the way: fused multiply-adds, |x|, a permutation, a clamp."""
        fuses = _FUSIBLE.search(found[2]) is not None
        for operand in found.group(3, 4):
            source = self.function.definitions.get(self._root(operand))
            if source is None or source.operation == "fneg" or _MODIFIERS.search(source.callee):
                return False
            if fuses and found[1] != "fmul":
                inner = [self.function.definitions.get(name) for name in source.operands]
                for made in (source, *inner) if source.operation == "fpext" else (source,):
                    if made and (made.operation == "fmul" or _FMA.search(made.callee)):
                        return False
        for user in self.function.users.get(one.name, ()):
            if _CLAMPS.search(user.callee):
                return False
            if fuses and found[1] == "fmul" and user.operation in ("fadd", "fsub", "fneg"):
                return False
        return True

    def _pair(self, first: Instruction, second: Instruction) -> Pair | None:
        """Pairs two operations of a block, if that is possible."""
        if first.name in self.half or second.name in self.half or first is second:
            return None
        if self._depends(second, first):
            return None
        one, other = _OPERATION.match(first.text), _OPERATION.match(second.text)
        assert one is not None
        assert other is not None
        mine, theirs = list(one.group(3, 4)), list(other.group(3, 4))
        if one[1] != "fsub":  # what is from another lane last
            for both in (mine, theirs):
                both.sort(key=lambda operand: self._permutation(operand) is not None)
        swapped = False
        for a, b in zip(mine, theirs, strict=True):
            pair, at = self.half.get(a, (None, 0))
            if pair is not self.half.get(b, (None, 0))[0] or (pair and a == b):
                return None
            swapped |= pair is not None and at == 1
        if swapped:
            first, second, mine, theirs, one = second, first, theirs, mine, other
        operands = tuple(zip(mine, theirs, strict=True))
        self._made += 1
        vector = f"%fly.pair.{self._made}"
        pair = Pair(first, second, one[1], one[2], operands, one[5] or "", vector)
        self.half[first.name], self.half[second.name] = (pair, 0), (pair, 1)
        return pair

    def _depends(self, later: Instruction, earlier: Instruction) -> bool:
        """Whether an operation needs another one of its block, which precedes it."""
        if later.block not in self._reach:
            block = self.function.blocks[later.block]
            reach: list[int] = []
            for number, needed in enumerate(ir_text.dependences(block, self.pure)):
                bits = 1 << number
                for one in needed:
                    bits |= reach[one]
                reach.append(bits)
            numbers = {one.name: number for number, one in enumerate(block) if one.name}
            self._reach[later.block] = reach, numbers
        reach, numbers = self._reach[later.block]
        return bool(reach[numbers[later.name]] >> numbers[earlier.name] & 1)

    def _pairs(self) -> list[Pair]:
        return [pair for pair, half in self.half.values() if half == 0]

    def _forget(self, pair: Pair) -> None:
        del self.half[pair.low.name], self.half[pair.high.name]

    def _is_pair(self, both: tuple[str, str]) -> bool:
        low, high = (self.half.get(value) for value in both)
        return bool(low and high and low[0] is high[0] and (low[1], high[1]) == (0, 1))

    def _copies(self, pair: Pair, placed: set[str]) -> int:
        """The copies that a pair's operands need. `placed` are values that have a place; the pair's
        are added."""
        copies = 0
        for both in pair.operands:
            if self._is_pair(both):
                continue
            if both[0] == both[1]:
                copies += both[0] not in self.lanes
                continue
            for value in both:
                root = self._root(value)
                copies += root in placed or root in self.half or not self._is_free(root)
                placed.add(root)
        return copies

    def _is_free(self, value: str) -> bool:
        """Whether a value can be put into any vector register without a copy."""
        one = self.function.definitions.get(value)
        if one is None or value not in self.lanes:
            return False
        if one.operation == "call":
            return bool(_PERMUTATION.search(one.text)) or (
                one.callee in self.pure and bool(_RENDERED.match(one.text))
            )
        return one.operation in _FREE

    def _keep_profitable(self) -> None:
        """Forgets pairs that need as many copies as they save instructions, with those that they
        are connected to."""
        pairs = self._pairs()
        leader = {id(pair): pair for pair in pairs}

        def first(pair: Pair) -> Pair:
            while leader[id(pair)] is not pair:
                pair = leader[id(pair)]
            return pair

        for pair in pairs:
            for both in pair.operands:
                if self._is_pair(both):
                    leader[id(first(pair))] = first(self.half[both[0]][0])
        gain: dict[int, int] = {}
        placed: set[str] = set()
        for pair in pairs:
            group = id(first(pair))
            gain[group] = gain.get(group, 0) + 1 - self._copies(pair, placed)
        for pair in pairs:
            if gain[id(first(pair))] < 1:
                self._forget(pair)

    def _order(self, number: int) -> list[int]:
        """An order of a block's instructions in which pairs are together. Forgets pairs for which
        there is none."""
        block = self.function.blocks[number]
        before = ir_text.dependences(block, self.pure)
        at = {one.name: place for place, one in enumerate(block) if one.name}
        groups: dict[tuple[int, ...], Pair] = {
            (at[pair.low.name], at[pair.high.name]): pair
            for pair in self._pairs()
            if pair.low.block == number
        }
        while True:
            order, wrong = ir_text.ordered(before, groups)
            if wrong is None:
                return order
            self._forget(groups.pop(wrong))

    def _lines(self, block: int, place: int) -> list[str]:
        """The lines that an instruction becomes."""
        one = self.function.blocks[block][place]
        pair, half = self.half.get(one.name, (None, 0))
        if pair is None:
            return [one.text]
        element = f"  {one.name} = extractelement <2 x float> {pair.vector}, i64 {half}"
        if half:
            return [element]
        lines, operands = [], []
        for both, word in zip(pair.operands, "xy", strict=True):
            if self._is_pair(both):
                operands.append(self.half[both[0]][0].vector)
                continue
            name = f"{pair.vector}.{word}"
            insert = "insertelement <2 x float>"
            lines.append(f"  {name}.0 = {insert} poison, float {both[0]}, i64 0")
            lines.append(f"  {name} = {insert} {name}.0, float {both[1]}, i64 1")
            operands.append(name)
        flags = f"{pair.operation} {pair.flags}<2 x float>"
        lines.append(f"  {pair.vector} = {flags} {operands[0]}, {operands[1]}{pair.location}")
        return [*lines, element]
