"""Allocations: the axes of tensors, how they become axes of memory, and what follows from that."""
