"""Floats of vector instructions: arithmetic, division, minima, functions, conversions."""
