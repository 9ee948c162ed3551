"""The types of a host function's parameters, and their syntax."""
