"""Passes of the backend `cuda`."""
