"""`flydsl.runtime`."""
