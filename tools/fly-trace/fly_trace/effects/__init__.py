"""Effects of a trace on Python's objects: what it may change, and how a change is noticed."""
