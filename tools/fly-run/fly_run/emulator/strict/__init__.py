"""`--strict`: waits, races and uninitialised values."""
