"""Convolutions in two dimensions as matrix products."""
