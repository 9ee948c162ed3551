"""The dependency hash of a Python function: all that it can reach, as a digest."""
