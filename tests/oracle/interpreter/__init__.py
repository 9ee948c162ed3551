"""Decodes instructions, and executes kernels."""
