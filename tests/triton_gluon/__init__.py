"""Triton's Gluon examples for gfx1250, on the emulator. `scripts/triton-gluon` runs them."""
