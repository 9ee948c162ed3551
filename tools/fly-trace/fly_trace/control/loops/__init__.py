"""Loops: which of them Python iterates, and the others as scf.for and scf.while."""
