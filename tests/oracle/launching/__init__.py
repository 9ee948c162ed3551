"""Kernels built, and launched on the oracle or on a device."""
