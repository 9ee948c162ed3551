"""Products by `mma.sync`, the matrix instruction of a warp."""
