"""Runs llc: its input, options, points of the pipeline, and error messages."""
