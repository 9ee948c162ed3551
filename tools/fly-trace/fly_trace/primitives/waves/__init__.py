"""Primitives of a wave's lanes."""
