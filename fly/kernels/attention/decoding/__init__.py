"""The kernels of attention of one query of each sequence, over pages of keys."""
