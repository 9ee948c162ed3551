"""The dependency hash of a Python function: a digest of everything that it can reach."""
