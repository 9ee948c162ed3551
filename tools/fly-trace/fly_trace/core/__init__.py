"""What a trace is: the one that is running, its target, places in the user's Python."""
