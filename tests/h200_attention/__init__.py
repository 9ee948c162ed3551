"""Attention on an H200: random shapes beside f64.

    python -m h200_attention prepare FOLDER        compiles; needs no GPU
    python -m h200_attention run FOLDER [COUNT]    COUNT random shapes for each compiled kernel

Tried are results and gradients, of sequences of one length and of packed ones, of which some have
no rows. What differs from f64 by more than its type rounds is printed, as are logarithms of sums,
with the shape: batches, heads of queries and of keys, and the lengths of queries and of keys.
"""
