"""Lowering of math functions: selection, and formulas."""
