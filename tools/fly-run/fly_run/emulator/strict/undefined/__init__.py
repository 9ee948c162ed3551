"""Undefined bits of registers and memory: their shadow, propagation and uses."""
