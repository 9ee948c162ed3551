"""Loads, stores and atomics of every address space."""
