"""Copy and matrix instructions, tiled copies and products, and their execution."""
