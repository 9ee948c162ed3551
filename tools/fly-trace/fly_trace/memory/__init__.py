"""Tensors, pointers, shared memory, structures."""
