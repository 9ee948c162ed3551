"""Lowering of instructions to steps, and encoding of steps as micro-ops."""
