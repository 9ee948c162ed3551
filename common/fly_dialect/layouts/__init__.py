"""Integer tuples, layouts, swizzles and tiles as data, and their text."""
