"""Binds values to a program, and runs the resulting launches."""
