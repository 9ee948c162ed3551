"""Removal of fly types from function boundaries."""
