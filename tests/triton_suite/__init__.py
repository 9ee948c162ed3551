"""Kernels that Triton compiles, on the emulator: another compiler's code, by other rules."""
