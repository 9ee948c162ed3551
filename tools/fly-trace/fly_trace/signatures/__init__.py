"""The types of a host function's parameters, and how they are written."""
