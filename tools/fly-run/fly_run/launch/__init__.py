"""Binds values to a plan, and runs the resulting launches."""
