"""Calls in rewritten code, and functions that Python calls itself."""
