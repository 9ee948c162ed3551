"""Emulates AMD GPU machine code on the host processor."""
