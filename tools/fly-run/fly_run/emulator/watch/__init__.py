"""Observers of a run: their interface, statistics, traces."""
