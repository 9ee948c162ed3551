"""The grid driver, and the micro-ops of observers."""
