"""Products of matrices on an H200: random shapes, types, layouts and epilogues beside f64.

    python -m h200_products prepare FOLDER        compiles; needs no GPU
    python -m h200_products run FOLDER [COUNT]    COUNT random shapes for each compiled kernel

A kernel is compiled for a plan and an epilogue. It multiplies matrices of any extents, and of any
alignment that the plan allows. What differs from the product in f64 by more than its type rounds is
printed, with the shape.
"""
