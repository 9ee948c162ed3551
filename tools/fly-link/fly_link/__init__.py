"""Objects → HSACO: `ld.lld -shared`, with the symbols, targets and host program checked first."""

from fly_link.linker import fingerprint, link

__all__ = ["fingerprint", "link"]
