"""Random kernels of the accepted Python, run by CPython and compiled: see `__main__`."""
