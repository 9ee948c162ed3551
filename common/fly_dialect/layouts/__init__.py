"""Integer tuples, layouts, swizzles and tiles, and their text."""
