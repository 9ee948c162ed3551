"""Attention on an H200: random shapes beside f64.

    python -m h200_attention prepare FOLDER        compiles; needs no GPU
    python -m h200_attention run FOLDER [COUNT]    COUNT random shapes for each compiled kernel

Results, and the logarithms of sums, that differ by more than their types round are printed, with
the shape: batches, heads of queries and of keys, queries and keys.
"""
