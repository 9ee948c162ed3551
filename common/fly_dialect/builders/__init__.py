"""Builders of the dialect's ops: one function an op, result types inferred."""
