"""Waits for memory: the fields of S_WAITCNT's immediate, and the instructions that replaced it.

Up to gfx11, one instruction waits for several counters; the positions of their fields differ
between generations. Since gfx12, each counter has its own instruction.

Sources: CDNA3 and RDNA3 ISA manuals, S_WAITCNT; RDNA4 ISA manual, S_WAIT_*CNT;
llvm/lib/Target/AMDGPU/Utils: decodeWaitcnt, encodeWaitcnt.
"""

from __future__ import annotations

from fly_common.record import record


@record
class WaitField:
    """A bit field of an immediate, as (shift, width) pieces, least significant first."""

    pieces: tuple[tuple[int, int], ...]

    @property
    def most(self) -> int:
        """The greatest value, which means no wait."""
        return (1 << sum(width for _, width in self.pieces)) - 1

    def read(self, word: int) -> int:
        value = at = 0
        for shift, width in self.pieces:
            value |= (word >> shift & (1 << width) - 1) << at
            at += width
        return value

    def write(self, word: int, value: int) -> int:
        """Returns `word` with this field set to `value`, truncated to the field's width."""
        for shift, width in self.pieces:
            mask = (1 << width) - 1
            word = word & ~(mask << shift) | (value & mask) << shift
            value >>= width
        return word


@record
class Waits:
    """The counters that a wave waits for: vector memory (`vm`), LDS and scalar memory (`lgkm`),
    exports (`exp`).

    `split`: each counter has its own instruction, and LDS (s_wait_dscnt) and scalar memory
    (s_wait_kmcnt) have separate counters. The fields then only give each counter's maximum.
    Otherwise they are those of S_WAITCNT. `stores_apart`: stores have their own counter, and `vm`
    excludes them.
    """

    vm: WaitField
    lgkm: WaitField
    exp: WaitField
    stores_apart: bool = False
    split: bool = False

    def word(self, vm: int | None = None, lgkm: int | None = None, exp: int | None = None) -> int:
        """Returns S_WAITCNT's immediate. None means no wait for that counter."""
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
