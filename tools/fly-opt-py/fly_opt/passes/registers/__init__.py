"""Promotion of register memory to values."""
