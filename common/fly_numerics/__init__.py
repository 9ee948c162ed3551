"""Formats of numbers: the element types, and floating point of 8, 6 and 4 bits.

element_types   one table: names, widths, NumPy's names
small_floats    what an encoding means, and the nearest one to a number
"""
