"""Conversion of the host function to the launch plan."""
