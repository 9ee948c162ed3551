"""Kernels that try one instruction after the other."""
