"""The stage: which passes run, in which order, and their text."""
