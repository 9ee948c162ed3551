"""The state of a trace: the current trace, its target, locations in the user's Python."""
