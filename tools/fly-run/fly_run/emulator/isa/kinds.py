"""Classifies instructions by the hardware unit they use, from their mnemonics."""

from __future__ import annotations

import functools
import re

# The first match counts. gfx11 has names of its own for loads, stores and LDS.
KINDS: tuple[tuple[str, str], ...] = (
    ("matrix", r"v_(mfma|smfmac|wmma|swmmac)_"),
    ("VALU", r"v_"),
    ("barrier", r"s_barrier"),
    ("wait", r"s_wait"),
    ("branch", r"s_(branch|cbranch|(set|swap|get|add)_?pc|call|subvector_loop)"),
    ("SMEM", r"s_(buffer_)?(load|store|atomic|scratch|dcache|prefetch)"),
    ("LDS", r"ds_"),
    ("VMEM atomic", r"(global|flat|t?buffer|image)_(\w+_)?atomic_"),
    ("VMEM store", r"(global|flat|t?buffer|scratch|image|tensor)_store_"),
    ("VMEM load", r"(global|flat|t?buffer|scratch|image|cluster|tensor)_(\w+_)?load_"),
    ("other", r"s_(endpgm|nop|sleep|setprio|delay_alu|sendmsg|trap|clause|code_end|icache|inst_)"),
    ("other", r"s_(set_vgpr_msb|monitor_sleep)"),
    ("SALU", r"s_"),
    ("other", r""),
)
# Kinds that operate on a wave's active lanes.
VECTOR = frozenset(("matrix", "VALU", "LDS", "VMEM atomic", "VMEM store", "VMEM load"))
MEMORY = frozenset(("SMEM", "LDS", "VMEM atomic", "VMEM store", "VMEM load"))

_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in KINDS)


@functools.cache
def kind(mnemonic: str) -> str:
    """Returns the name in KINDS."""
    return next(name for name, pattern in _PATTERNS if pattern.match(mnemonic))
