"""Tensors, pointers, shared memory, structs."""
