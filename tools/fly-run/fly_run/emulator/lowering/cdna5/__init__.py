"""Lowers instructions that only gfx1250 has."""
