"""Kernels compiled by Triton, run on the emulator: code of another compiler."""
