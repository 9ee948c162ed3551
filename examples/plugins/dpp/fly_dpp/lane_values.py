"""What a 32-bit value of MIR in SSA form is in each lane of a wave, as far as it depends on the
number of the lane and on constants.

A value is a list of pairs (bits, known), one for each lane: the bits of `bits` that are set in
`known` are certain. Other values are unknown, and so is the rest of a work item's number above the
lane's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fly_llc.mir import Function, Instruction, Operand

ALL = 0xFFFF_FFFF
Lane = tuple[int, int]
Value = list[Lane]


def _and(a: Lane, b: Lane) -> Lane:
    zero = a[1] & ~a[0] | b[1] & ~b[0]
    return a[0] & b[0], a[1] & b[1] | zero


def _or(a: Lane, b: Lane) -> Lane:
    one = a[1] & a[0] | b[1] & b[0]
    return a[0] | b[0], a[1] & b[1] | one


def _xor(a: Lane, b: Lane) -> Lane:
    return a[0] ^ b[0], a[1] & b[1]


def _add(a: Lane, b: Lane) -> Lane:
    # A carry goes up: the bits below the first unknown one are certain.
    unknown = ~(a[1] & b[1]) & ALL
    below = (unknown & -unknown) - 1 if unknown else ALL
    return a[0] + b[0] & ALL, below


def _shift_left(amount: Lane, a: Lane) -> Lane:
    if amount[1] & 31 != 31:
        return 0, 0
    by = amount[0] & 31
    return a[0] << by & ALL, (a[1] << by | (1 << by) - 1) & ALL


def _shift_right(amount: Lane, a: Lane) -> Lane:
    if amount[1] & 31 != 31:
        return 0, 0
    by = amount[0] & 31
    return a[0] >> by, a[1] >> by | ~(ALL >> by) & ALL


# By opcode, without the suffix of its encoding.
_BINARY: dict[str, Callable[[Lane, Lane], Lane]] = {
    **dict.fromkeys(("V_AND_B32", "S_AND_B32"), _and),
    **dict.fromkeys(("V_OR_B32", "S_OR_B32"), _or),
    **dict.fromkeys(("V_XOR_B32", "S_XOR_B32"), _xor),
    **dict.fromkeys(("V_ADD_U32", "V_ADD_NC_U32", "S_ADD_I32"), _add),
    "V_LSHLREV_B32": _shift_left,
    "V_LSHRREV_B32": _shift_right,
}
_TERNARY: dict[str, Callable[[Lane, Lane, Lane], Lane]] = {
    "V_AND_OR_B32": lambda a, b, c: _or(_and(a, b), c),
    "V_LSHL_OR_B32": lambda a, b, c: _or(_shift_left(b, a), c),
    "V_LSHL_ADD_U32": lambda a, b, c: _add(_shift_left(b, a), c),
    "V_ADD_LSHL_U32": lambda a, b, c: _shift_left(c, _add(a, b)),
    "V_OR3_B32": lambda a, b, c: _or(_or(a, b), c),
    "V_XOR3_B32": lambda a, b, c: _xor(_xor(a, b), c),
}
_MOVES = ("COPY", "V_MOV_B32", "S_MOV_B32")


class LaneValues:
    """The values of a function in SSA form, in a wave of `lanes` lanes.

    `item_is_lane`: the low bits of the work item's x number are the number of the lane, because the
    workgroup's extent along x is a multiple of the wave.
    """

    def __init__(self, function: Function, lanes: int, item_is_lane: bool):
        self.lanes, self.item_is_lane = lanes, item_is_lane
        self._known: dict[str, Value] = {}
        self._definitions: Mapping[str, Instruction] = {
            one.register: instruction
            for block in function.blocks
            for instruction in block.instructions
            for one in instruction.results
            if one.register and one.is_virtual and not one.sub
        }

    def of(self, operand: Operand) -> Value:
        """The value of an operand."""
        if operand.integer is not None:
            return [(operand.integer & ALL, ALL)] * self.lanes
        register = operand.register
        if register == "$vgpr0" and self.item_is_lane:
            return [(lane, self.lanes - 1) for lane in range(self.lanes)]
        if register is None or not operand.is_virtual or operand.sub:
            return self._unknown
        if register not in self._known:
            self._known[register] = self._unknown  # for a value that depends on itself
            found = self._definitions.get(register)
            if found is not None:
                self._known[register] = self._computed(found)
        return self._known[register]

    @property
    def _unknown(self) -> Value:
        return [(0, 0)] * self.lanes

    def _computed(self, one: Instruction) -> Value:
        name = one.opcode.removesuffix("_e64").removesuffix("_e32")
        if len(one.results) != 1:
            return self._unknown
        operands = [operand for operand in one.operands if not operand.implicit]
        if name in _MOVES and len(operands) == 1:
            return self.of(operands[0])
        if name.startswith("V_MBCNT_") and len(operands) == 2:
            return self._counted(name, operands)
        function = {2: _BINARY, 3: _TERNARY}.get(len(operands), {}).get(name)
        if function is None:
            # V_ADD_U32_e64 has a clamp, which is 0.
            function = _BINARY.get(name) if len(operands) == 3 and _is_zero(operands[2]) else None
            operands = operands[:2]
        if function is None:
            return self._unknown
        apply: Callable[..., Lane] = function
        return [apply(*lane) for lane in zip(*map(self.of, operands), strict=True)]

    def _counted(self, name: str, operands: Sequence[Operand]) -> Value:
        """V_MBCNT: the number of lower lanes in half of the wave whose bit is set in the first
        operand, plus the second."""
        mask = self.of(operands[0])[0]
        if mask != (ALL, ALL):
            return self._unknown
        low = name.startswith("V_MBCNT_LO")
        counts = [min(lane, 32) if low else max(0, lane - 32) for lane in range(self.lanes)]
        added = self.of(operands[1])
        return [_add((count, ALL), one) for count, one in zip(counts, added, strict=True)]


def _is_zero(operand: Operand) -> bool:
    return operand.integer == 0
