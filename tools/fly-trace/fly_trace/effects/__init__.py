"""Side effects of a trace on Python objects: which are allowed, and how changes are detected."""
