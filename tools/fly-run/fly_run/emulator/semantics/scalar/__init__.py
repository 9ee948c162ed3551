"""Scalar operations and control flow."""
