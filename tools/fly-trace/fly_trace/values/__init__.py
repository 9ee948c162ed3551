"""Numbers and vectors of the language, and their operations."""
