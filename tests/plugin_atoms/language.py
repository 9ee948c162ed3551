"""What kernels see as `fx.twice`."""

from __future__ import annotations

from fly_trace.atoms.atom import element, made

from plugin_atoms import instructions


def Fma(dtype):
    """D = 2·A·B + C."""
    return made(instructions.Fma, "fx.twice.Fma", element(dtype, "fx.twice.Fma"))


def Flip(bits):
    """A copy that inverts all bits."""
    return made(instructions.Flip, "fx.twice.Flip", bits)
