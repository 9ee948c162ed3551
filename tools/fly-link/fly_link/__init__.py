"""Objects → HSACO: checks symbols, targets and the launch plan, then runs `ld.lld -shared`."""

from fly_link.linker import fingerprint, link

__all__ = ["fingerprint", "link"]
