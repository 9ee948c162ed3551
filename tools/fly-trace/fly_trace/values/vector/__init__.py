"""Vectors: the class, its arithmetic, and both together."""
