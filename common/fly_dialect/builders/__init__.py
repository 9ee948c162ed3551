"""Builders of the dialect's ops: one function per op, with inferred result types."""
