"""Additions of backends to the language."""
