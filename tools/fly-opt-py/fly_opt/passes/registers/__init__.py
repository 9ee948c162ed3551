"""Memory in registers becomes values."""
