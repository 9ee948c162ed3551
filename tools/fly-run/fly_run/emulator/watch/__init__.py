"""Observers of a run: statistics, traces, what an observer is told."""
