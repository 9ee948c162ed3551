"""Random rows by kernels that read ahead, and decoding over pages, on an NVIDIA GPU, beside f64.

    python -m h200_rows prepare FOLDER [KERNEL]   compiles; needs no GPU
    python -m h200_rows run FOLDER [COUNT]        compares; 1 if a result is wrong

Widths are those at which plans change, a few elements less, and others; numbers of rows are random.
"""
