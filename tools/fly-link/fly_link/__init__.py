"""Objects → HSACO: checks symbols, targets and the host program, then runs `ld.lld -shared`."""

from fly_link.linker import fingerprint, link

__all__ = ["fingerprint", "link"]
