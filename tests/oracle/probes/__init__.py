"""Kernels that test single instructions."""
