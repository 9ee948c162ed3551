"""Workloads that are bound by memory: ours, in Triton and in torch, and their tables."""
