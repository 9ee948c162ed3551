"""Modules shared by all tools."""

__version__ = "0.1.0"
