"""Builds kernels, and launches them on the oracle or on a device."""
