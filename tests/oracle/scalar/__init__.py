"""Scalar ALU instructions."""
