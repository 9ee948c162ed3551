"""Exact float arithmetic for instructions."""
