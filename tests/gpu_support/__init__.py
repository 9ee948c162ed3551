"""Drivers of GPUs for tests: CUDA's and HIP's functions, over memory and kernels in Python."""
