"""Reads programs: code objects, and instructions as text."""
