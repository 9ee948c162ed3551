"""Runs of llc: what it reads, its options, its points, what its words mean."""
