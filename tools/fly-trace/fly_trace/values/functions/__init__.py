"""Functions of numbers: mathematics, bits of integers, fast-math flags."""
