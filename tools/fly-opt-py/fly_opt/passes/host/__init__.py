"""Conversion of the host function to the host program."""
