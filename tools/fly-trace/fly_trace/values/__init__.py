"""Numbers and vectors that a kernel computes with, and their operations."""
