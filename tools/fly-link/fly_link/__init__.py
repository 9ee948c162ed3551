"""Objects → images: checks symbols, targets and the host program, then runs the linker."""

from fly_link.linker import fingerprint, link

__all__ = ["fingerprint", "link"]
