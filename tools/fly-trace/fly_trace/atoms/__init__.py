"""Copy and matrix instructions, tiled copies and multiplications, and their execution."""
