"""The waits for memory: the fields of S_WAITCNT's immediate, and what came after it.

Until gfx11 one instruction waits for several counters, in fields whose places differ between
generations; since gfx12 there is an instruction for each counter.

Sources: CDNA3 and RDNA3 ISA manuals, S_WAITCNT; RDNA4 ISA manual, S_WAIT_*CNT;
llvm/lib/Target/AMDGPU/Utils: decodeWaitcnt, encodeWaitcnt.
"""

from __future__ import annotations

from fly_common.record import record


@record
class WaitField:
    """Bits of an immediate: (shift, width) pieces, the low one first."""

    pieces: tuple[tuple[int, int], ...]

    @property
    def most(self) -> int:
        """The greatest number, which waits for nothing."""
        return (1 << sum(width for _, width in self.pieces)) - 1

    def read(self, word: int) -> int:
        value = at = 0
        for shift, width in self.pieces:
            value |= (word >> shift & (1 << width) - 1) << at
            at += width
        return value

    def write(self, word: int, value: int) -> int:
        """`word` with this field holding `value`, whose bits beyond the field are dropped."""
        for shift, width in self.pieces:
            mask = (1 << width) - 1
            word = word & ~(mask << shift) | (value & mask) << shift
            value >>= width
        return word


@record
class Waits:
    """What a wave waits for: vector memory (`vm`), LDS and scalar memory (`lgkm`), exports (`exp`).

    `split`: there is an instruction for each counter, which has LDS (s_wait_dscnt) and scalar
    memory (s_wait_kmcnt) apart; the fields then only say how far each counts. Else they are those
    of S_WAITCNT. `stores_apart`: stores have a counter of their own and are none of `vm`'s.
    """

    vm: WaitField
    lgkm: WaitField
    exp: WaitField
    stores_apart: bool = False
    split: bool = False

    def word(self, vm: int | None = None, lgkm: int | None = None, exp: int | None = None) -> int:
        """S_WAITCNT's immediate. None waits for nothing."""
        made = 0
        for field, count in ((self.vm, vm), (self.lgkm, lgkm), (self.exp, exp)):
            made = field.write(made, field.most if count is None else count)
        return made


GFX9 = Waits(WaitField(((0, 4), (14, 2))), WaitField(((8, 4),)), WaitField(((4, 3),)))
GFX11 = Waits(WaitField(((10, 6),)), WaitField(((4, 6),)), WaitField(((0, 3),)), stores_apart=True)
GFX12 = Waits(
    WaitField(((0, 6),)), WaitField(((0, 6),)), WaitField(((0, 3),)), stores_apart=True, split=True
)
# By the major version of the instruction set.
BY_MAJOR = {9: GFX9, 11: GFX11, 12: GFX12}
