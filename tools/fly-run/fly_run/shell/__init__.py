"""One call of fly-run from the shell."""
