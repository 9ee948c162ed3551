"""Number formats: the element types, and floating-point formats of 8, 6 and 4 bits.

element_types   one table: names, widths, NumPy's names
small_floats    decoding, and encoding by rounding to nearest
"""
