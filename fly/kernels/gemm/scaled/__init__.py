"""Products of 8-bit floats with scales of blocks."""
