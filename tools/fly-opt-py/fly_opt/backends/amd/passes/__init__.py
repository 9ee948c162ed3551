"""Passes of the backend `rocm`."""
