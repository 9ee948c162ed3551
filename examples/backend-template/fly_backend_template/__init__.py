"""A backend of fly-filters in a distribution of its own."""
