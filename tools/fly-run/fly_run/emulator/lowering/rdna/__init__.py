"""Lowers instructions that only gfx11 and gfx12 have."""
