"""Floats, exact: what instructions are computed with."""
